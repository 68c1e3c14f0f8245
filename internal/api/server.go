// Package api serves the service over HTTP: huma on net/http, OpenAPI 3.1, problem documents. It holds no behavior of
// its own; each route reads its request, calls one method of the service and writes what comes back.
//
//	server.go       what a Server is made of, listening and stopping
//	request.go      a request's name, its log line, deadlines of writing
//	operation.go    what all operations share: registering, timeouts
//	auth.go         keys and tenants; limits.go rates and what may be open at once
//	idempotency.go  the body, and answers that are kept for those who ask again
//	payload.go      a body checked against its schema, raw JSON taken as it stands; encode.go writes it back
//	problem.go      failures
//	hub.go          who follows which conversation's events
//	health.go       alive, ready, metrics; observed.go the same for a worker
//	document.go     what of the OpenAPI document huma leaves open
//	docs.go         the readable page of the OpenAPI document
//	mcp.go          the memory of conversations as an MCP server
//
// and a file for each group of routes: conversations, messages, replies, compactions, state, memory, events, runs,
// oneshot, usage, settings.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/launch"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/telemetry"
	"precis/internal/version"
)

const (
	// headerPatience is how long a client may take for the head of a request.
	headerPatience = 10 * time.Second
	// idlePatience is how long a connection without a request is kept.
	idlePatience = 2 * time.Minute
	maxHeader    = 64 << 10
)

// Options are what a Server needs.
type Options struct {
	// Service has the store, the client of Temporal and the configuration as well.
	Service *service.Service
	// Telemetry measures and traces, nil: nothing does.
	Telemetry *telemetry.Telemetry
}

// Server is the HTTP API.
type Server struct {
	service   *service.Service
	store     *store.Store
	config    config.HTTP
	launcher  launch.Launcher
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	api       huma.API
	mux       *http.ServeMux
	handler   http.Handler
	hub       *hub
	limits    limits
	// local says that only this machine can reach the server: without keys it is open then.
	local atomic.Bool
	// stopping ends what would wait.
	stopping context.Context
	stop     context.CancelFunc
	// heartbeat is how often a silent event stream says that it lives.
	heartbeat time.Duration
}

// New makes a server. It neither listens nor asks anybody anything.
func New(o Options) *Server {
	cfg := o.Service.Config
	s := &Server{
		service: o.Service, store: o.Service.Store, config: cfg.HTTP, log: o.Service.Log, telemetry: o.Telemetry,
		launcher:  launch.Launcher{Store: o.Service.Store, Client: o.Service.Temporal, Config: cfg},
		mux:       http.NewServeMux(),
		heartbeat: heartbeat,
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.limits.config = cfg.HTTP
	s.hub = newHub(s.store, s.log)
	s.api = humago.New(s.mux, apiConfig())
	s.api.UseMiddleware(s.begin, s.authenticate, s.limit, s.readBody, s.keepAnswer)
	for _, routes := range []func(){
		s.conversations, s.messages, s.contexts, s.replies, s.compactions, s.state, s.memory, s.events, s.runs,
		s.oneShot, s.usage, s.settings, s.health,
	} {
		routes()
	}
	finishDocument(s.api.OpenAPI())
	s.docs()
	s.mcp()
	s.mux.HandleFunc("/", s.unknown)
	s.handler = s.entry(s.telemetry.Server(s.mux))
	return s
}

func apiConfig() huma.Config {
	schemas := huma.NewMapRegistry(refPrefix, schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[Problem](), reflect.TypeFor[wire.Problem]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "precis", Version: version.Code(),
				Description: "Durable context compaction for agents. Messages go in and come out byte for byte, " +
					"in the format of the agent's own model API.",
			},
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"key": {Type: "http", Scheme: "bearer", Description: "An API key, made by `precis keys " +
						"create`. Without any the server listens on loopback only and asks for none."},
				},
			},
			Security: []map[string][]string{{"key": {}}},
		},
		OpenAPIPath:   "/openapi",
		Formats:       map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat: "application/json",
	}
}

// Handler serves everything.
func (s *Server) Handler() http.Handler { return s.handler }

// ErrNoKeys is why Listen refuses an address that others can reach.
var ErrNoKeys = errors.New(
	"there is no API key, and without one everybody who reaches the server could read and change everything")

// ErrAddress is why Listen could not open the configured address.
var ErrAddress = errors.New("the API cannot listen there")

// Listen opens the configured address. One that is not on loopback is refused as ErrNoKeys while there is no API key.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.config.Addr)
	if err != nil {
		return nil, fmt.Errorf("http.addr: %w: %w", ErrAddress, err)
	}
	if err := s.mayServe(ctx, l.Addr()); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (s *Server) mayServe(ctx context.Context, addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	local := ok && tcp.IP.IsLoopback()
	s.local.Store(local)
	if local {
		return nil
	}
	has, err := s.store.Keys.Any(ctx)
	if err != nil {
		return err
	}
	if !has {
		return fmt.Errorf("http.addr is %s, which other machines can reach: %w. Make one with `precis keys "+
			"create`, or listen on 127.0.0.1", s.config.Addr, ErrNoKeys)
	}
	return nil
}

// Serve answers until the context ends. It then tells those who wait to come back, lets the rest finish for
// http.shutdown_seconds, and closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerPatience,
		IdleTimeout:       idlePatience,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		s.Close()
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.Close()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx),
		time.Duration(s.config.ShutdownSeconds)*time.Second)
	defer cancel()
	if err := srv.Shutdown(patience); err != nil {
		s.log.Warn("requests were cut off: they took longer than http.shutdown_seconds", "seconds",
			s.config.ShutdownSeconds)
		_ = srv.Close()
	}
	<-ended
	return nil
}

// Close ends event streams and waits, and makes the server say that it is not ready. Serve does it by itself; it is for
// who serves Handler in another way.
func (s *Server) Close() {
	s.stop()
	s.hub.close()
}

// unknown answers paths that are not there, and methods that a path does not have.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete,
	} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		problem(service.CodeNotFound, "there is nothing at %s; /docs lists what there is", r.URL.Path).write(w, r)
		return
	}
	p := problem(codeMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, join(allowed), r.Method)
	w.Header().Set("Allow", join(allowed))
	p.write(w, r)
}
