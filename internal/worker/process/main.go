// Package process is the command worker: a worker with its configuration, logs, metrics and signals.
package process

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"precis/internal/api"
	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/telemetry"
	"precis/internal/temporalclient"
	"precis/internal/worker"
)

// Main is the command worker: it serves with the configured database and Temporal until SIGTERM or SIGINT, and then
// drains.
func Main() (err error) {
	cfg, _, err := config.Load(config.LoadOptions{})
	if err != nil {
		return err
	}
	log := telemetry.Logger(os.Stderr, cfg.Log)
	if cfg.DatabaseURL == "" {
		return errors.New("database_url is not set: give PRECIS_DATABASE_URL, or use `precis up` for a local stack")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	options := store.Options{AppName: "precis-worker"}
	if options.SigningKey, options.VerifyKey, err = cfg.Audit.Keys(); err != nil {
		return err
	}
	st, err := store.Open(ctx, cfg.DatabaseURL, options)
	if err != nil {
		return err
	}
	defer st.Close()
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "precis-worker"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Stop(context.WithoutCancel(ctx))) }()
	client, err := temporalclient.Lazy(cfg.Temporal, log, tel.Temporal)
	if err != nil {
		return err
	}
	defer client.Close()

	group, ctx := errgroup.WithContext(ctx)
	if cfg.Worker.MetricsAddr != "" {
		group.Go(func() error {
			return api.ServeObserved(ctx, cfg.Worker.MetricsAddr, api.NewProbe(st, client, cfg), tel)
		})
	}
	group.Go(func() error {
		// Until Temporal answers, /readyz says that it does not, and nothing is polled.
		if err := temporalclient.Await(ctx, client, cfg.Temporal, log); err != nil || ctx.Err() != nil {
			return err
		}
		return worker.Run(ctx, worker.Options{
			Store: st, Client: client, Config: cfg, Log: log, Telemetry: tel,
			Ready: func() { worker.LogReady(log, cfg) },
		})
	})
	return group.Wait()
}
