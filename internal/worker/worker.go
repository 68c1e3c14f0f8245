// Package worker is a worker process: it polls both task queues, starts the workflows that wait in the outbox, and
// writes the memory of conversations to its folder. The command worker runs it alone (package process), the commands
// precis up and precis worker run it beside the API.
//
//	worker.go      what a worker needs, and its life
//	queues.go      the task queues, with their workflows and activities
//	dispatcher.go  the outbox
//	folder.go      the memory folder
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"precis/internal/config"
	"precis/internal/memory"
	"precis/internal/store"
	"precis/internal/telemetry"
)

// Options are what a worker needs.
type Options struct {
	Store  *store.Store
	Client client.Client
	Config config.Config
	Log    *slog.Logger
	// Telemetry measures and traces; nil does neither.
	Telemetry *telemetry.Telemetry
	// Interceptors are around every activity: tests stop a worker with them.
	Interceptors []interceptor.WorkerInterceptor
	// Ready, if set, is called once the worker polls.
	Ready func()
	// NoOutbox leaves the outbox and the memory folder to other workers: for a process that ends with the runs that it
	// started itself.
	NoOutbox bool
}

// Run serves until the context ends. It then drains: activities that are running have worker.drain_seconds to finish;
// what does not finish is taken over by another worker.
func Run(ctx context.Context, o Options) error {
	stop, err := o.poll()
	if err != nil {
		return err
	}
	defer stop()
	if o.Ready != nil {
		o.Ready()
	}
	if o.NoOutbox {
		<-ctx.Done()
	} else {
		var folder sync.WaitGroup
		folder.Go(func() { folderKeeper{memory.Memory{Store: o.Store}, o.Config.Memory.Folder, o.Log}.run(ctx) })
		dispatcher{store: o.Store, client: o.Client, queue: o.Config.Worker.TaskQueue, log: o.Log}.run(ctx)
		folder.Wait()
	}
	o.Log.Info("the worker drains", "at most", o.drain())
	return nil
}

func (o Options) drain() time.Duration {
	return time.Duration(o.Config.Worker.DrainSeconds) * time.Second
}

// LogReady logs that a worker polls its task queues. attrs are logged with them.
func LogReady(log *slog.Logger, cfg config.Config, attrs ...any) {
	log.Info("the worker polls", append([]any{
		"queues", []string{cfg.Worker.TaskQueue, cfg.Worker.LLMTaskQueue}, "namespace", cfg.Temporal.Namespace,
	}, attrs...)...)
}

// identity names the process in Temporal and in the record of attempts.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s", os.Getpid(), host)
}
