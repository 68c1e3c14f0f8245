package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"precis/internal/api"
	"precis/internal/cli/fail"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/telemetry"
	"precis/internal/worker"
)

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		GroupID: groupStack,
		Short:   "Serve the HTTP API, without a worker",
		Long: `Serves the HTTP API and its page, for production: workers are separate processes (bin/worker). It uses
the configured database and Temporal, or else the local stack. If other machines can reach http.addr it starts
only when there is an API key (` + "`precis keys create`" + `). It ends with Ctrl-C or SIGTERM, after open requests
have finished.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd) },
	}
}

// served is the JSON of `precis serve`: where the API listens.
type served struct {
	URL  string `json:"url"`
	Docs string `json:"docs"`
}

func (a *app) serve(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	s, err := a.attach(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	h, err := a.openAPI(ctx, s, "precis-api", s.OpenTemporalLazily)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(served{h.url(), h.url() + "/docs"})
	} else {
		err = a.print(h.url() + "\n")
	}
	if err != nil {
		return errors.Join(err, h.listener.Close())
	}
	h.log.Info("the API is served", "url", h.url())
	return h.server.Serve(ctx, h.listener)
}

// attach opens the database: the configured one, or that of the local stack, which must be running. The caller closes
// the session.
func (a *app) attach(ctx context.Context, cmd *cobra.Command) (s *session, err error) {
	s = &session{}
	if s.Config, s.Origins, err = a.config(cmd); err != nil {
		return nil, err
	}
	if !configured(s.Config) {
		stack, err := devstack.Attach(ctx, stackOptions(s.Config))
		if err != nil {
			return nil, notRunning(err)
		}
		s.Use(stack)
	}
	if err := s.OpenStore(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// openAPI opens everything that serving the API needs besides the database: log, metrics and traces under the given
// name, Temporal by connect, and the address of the API.
func (a *app) openAPI(ctx context.Context, s *session, name string,
	connect func(context.Context, *slog.Logger, ...func(*client.Options) error) error,
) (httpAPI, error) {
	log := telemetry.Logger(a.err, s.Config.Log)
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: name})
	if err != nil {
		return httpAPI{}, err
	}
	s.OnClose(tel.Stop)
	if err := connect(ctx, log, tel.Temporal); err != nil {
		return httpAPI{}, err
	}
	return s.listen(ctx, log, tel)
}

// httpAPI is a listening API.
type httpAPI struct {
	server   *api.Server
	listener net.Listener
	log      *slog.Logger
	tel      *telemetry.Telemetry
}

func (h httpAPI) url() string { return "http://" + h.listener.Addr().String() }

// listen opens the address of the API. If the default address is in use, a local stack takes a free port instead.
func (s *session) listen(ctx context.Context, log *slog.Logger, tel *telemetry.Telemetry) (httpAPI, error) {
	open := func() (httpAPI, error) {
		server := api.New(api.Options{
			Service: s.Service(log, tel.Metrics()), Telemetry: tel,
		})
		l, err := server.Listen(ctx)
		if errors.Is(err, api.ErrNoKeys) || errors.Is(err, api.ErrAddress) {
			err = fail.Usage(err) // an error of the configuration
		}
		return httpAPI{server, l, log, tel}, err
	}
	h, err := open()
	if errors.Is(err, syscall.EADDRINUSE) && s.Stack != nil &&
		s.Origins.Of("http.addr").Source == config.SourceDefault {
		s.Config.HTTP.Addr = "127.0.0.1:0"
		return open()
	}
	return h, err
}

// serveAll runs a worker and the API in this process. The API answers once the worker polls; either ends the other.
func serveAll(ctx context.Context, options worker.Options, h httpAPI) error {
	group, ctx := errgroup.WithContext(ctx)
	ready := options.Ready
	options.Ready = func() {
		group.Go(func() error { return h.server.Serve(ctx, h.listener) })
		ready()
	}
	group.Go(func() error {
		if err := worker.Run(ctx, options); err != nil {
			return errors.Join(err, h.listener.Close())
		}
		return nil
	})
	return group.Wait()
}
