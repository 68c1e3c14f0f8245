// Command worker serves compactions: the workflow and the activities of both task queues, and the outbox.
// Run as many as are needed; each is told to stop by SIGTERM or SIGINT and drains.
package main

import (
	"context"
	"errors"
	"fmt"
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run() (err error) {
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
	st, err := store.Open(ctx, cfg.DatabaseURL, store.Options{AppName: "precis-worker"})
	if err != nil {
		return err
	}
	defer st.Close()
	tel, err := telemetry.Start(ctx, telemetry.Options{Service: "precis-worker"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Stop(context.WithoutCancel(ctx))) }()
	client, err := temporalclient.Dial(ctx, cfg.Temporal, log, tel.Temporal)
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
		return worker.Run(ctx, worker.Options{
			Store: st, Client: client, Config: cfg, Log: log, Telemetry: tel,
			Ready: func() {
				log.Info("the worker polls", "queues", []string{cfg.Worker.TaskQueue, cfg.Worker.LLMTaskQueue},
					"namespace",
					cfg.Temporal.Namespace)
			},
		})
	})
	return group.Wait()
}
