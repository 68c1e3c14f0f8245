package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	readyTimeout = 30 * time.Second
	// retention is how long closed runs are kept.
	retention = 7 * 24 * time.Hour
)

var services = []primitives.ServiceName{
	primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService,
}

type server struct {
	temporal.Server
	address string // host:port of the frontend
	ports   *portFinder
}

func (s *server) stop() error {
	if err := s.Stop(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return nil
}

// startServer returns when the server answers for every namespace of the options.
func startServer(ctx context.Context, opts options) (*server, error) {
	ports := newPortFinder()
	store, err := openStore(opts.database)
	if err != nil {
		return nil, err
	}
	cfg, hosts, err := configure(opts, store, ports)
	if err != nil {
		return nil, err
	}
	if err := makeNamespaces(store, cfg.ClusterMetadata.CurrentClusterName, opts); err != nil {
		return nil, err
	}

	s, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "warn"}))), // to standard error
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(
			func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
		temporal.WithDynamicConfigClient(tuning),
	)
	if err != nil {
		return nil, fmt.Errorf("assemble the server: %w", err)
	}
	if err := s.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	srv := &server{Server: s, address: cfg.PublicClient.HostPort, ports: ports}
	if err := srv.waitReady(ctx, opts.namespaces); err != nil {
		return nil, errors.Join(err, srv.stop())
	}
	return srv, nil
}

// openStore describes the SQLite database and creates its tables. A file has another name until it is complete, so that
// an interrupted start leaves no incomplete schema.
func openStore(file string) (*config.SQL, error) {
	if file == "" {
		return &config.SQL{
			PluginName:        sqliteplugin.PluginName,
			DatabaseName:      "precis",
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}, nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		fresh := file + ".new"
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove the remains of an interrupted start: %w", err)
		}
		// SQLite gives the files that it makes beside a database the permissions of the database.
		if err := os.WriteFile(fresh, nil, 0o600); err != nil {
			return nil, fmt.Errorf("create the database of Temporal: %w", err)
		}
		if err := sqlite.SetupSchema(fileStore(fresh)); err != nil {
			return nil, fmt.Errorf("create the tables of Temporal in %s: %w", fresh, err)
		}
		if err := os.Rename(fresh, file); err != nil {
			return nil, fmt.Errorf("move the new database into place: %w", err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("open the database of Temporal: %w", err)
	}
	store := fileStore(file)
	store.ConnectAttributes["journal_mode"] = "wal" // a commit is one append
	// NORMAL: a crash of the machine may lose the last commits, never consistency
	store.ConnectAttributes["synchronous"] = "1"
	return store, nil
}

func fileStore(file string) *config.SQL {
	return &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      file,
		ConnectAttributes: map[string]string{"mode": "rwc"},
	}
}

// configure returns what a configuration file would contain: everything on loopback, one shard, no archival.
func configure(opts options, store *config.SQL,
	ports *portFinder,
) (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	cfg := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     sqliteplugin.PluginName,
			VisibilityStore:  sqliteplugin.PluginName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{sqliteplugin.PluginName: {SQL: store}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		Services: map[string]config.Service{},
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for _, name := range services {
		wanted := 0
		if name == primitives.FrontendService {
			wanted = opts.grpcPort
		}
		port, err := ports.find(wanted)
		if err != nil {
			return nil, nil, err
		}
		rpc := config.RPC{GRPCPort: port, BindOnLocalHost: true}
		if name == primitives.FrontendService {
			cfg.PublicClient.HostPort = loopback(port)
			if rpc.HTTPPort, err = ports.find(0); err != nil {
				return nil, nil, err
			}
		}
		cfg.Services[string(name)] = config.Service{RPC: rpc}
		hosts[name] = static.SingleLocalHost(loopback(port))
	}
	cfg.ClusterMetadata = &cluster.Config{
		FailoverVersionIncrement: 10,
		MasterClusterName:        "active",
		CurrentClusterName:       "active",
		ClusterInformation: map[string]cluster.ClusterInformation{
			"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: cfg.PublicClient.HostPort},
		},
	}
	return cfg, hosts, nil
}

// makeNamespaces writes the namespaces into the database before the server starts, so that they exist from its first
// answer. Existing ones are not changed.
func makeNamespaces(store *config.SQL, clusterName string, opts options) error {
	attributes := map[string]enumspb.IndexedValueType{}
	for _, name := range opts.searchAttributes {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	configs := make([]*sqlite.NamespaceConfig, 0, len(opts.namespaces))
	for _, name := range opts.namespaces {
		cfg, err := sqlite.NewNamespaceConfig(clusterName, name, false, attributes)
		if err != nil {
			return fmt.Errorf("describe namespace %q: %w", name, err)
		}
		cfg.Detail.Config.Retention = durationpb.New(retention)
		configs = append(configs, cfg)
	}
	if err := sqlite.CreateNamespaces(store, configs...); err != nil {
		return fmt.Errorf("create the namespaces: %w", err)
	}
	return nil
}

// waitReady queries every namespace and returns when the frontend has answered.
func (s *server) waitReady(ctx context.Context, namespaces []string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reach the server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	frontend := workflowservice.NewWorkflowServiceClient(conn)
	for _, name := range namespaces {
		_, err := frontend.CountWorkflowExecutions(ctx,
			&workflowservice.CountWorkflowExecutionsRequest{Namespace: name}, grpc.WaitForReady(true))
		if err != nil {
			return fmt.Errorf("the server does not answer for namespace %q: %w", name, err)
		}
	}
	return nil
}
