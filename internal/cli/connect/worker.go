package connect

import (
	"context"
	"log/slog"

	"precis/internal/telemetry"
	"precis/internal/worker"
)

// WorkerOptions returns the options of a worker with the connections of the session. ready is called once it polls. tel
// may be nil.
func (s *Session) WorkerOptions(log *slog.Logger, tel *telemetry.Telemetry, ready func()) worker.Options {
	return worker.Options{
		Store: s.store, Client: s.Client, Config: s.Config, Log: log, Telemetry: tel, Ready: ready,
	}
}

// Serve makes this process a worker until the session is closed. It does not process the outbox, which may hold runs of
// other commands: their workflows would be interrupted when this command ends.
func (s *Session) Serve(ctx context.Context, log *slog.Logger) error {
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	o := s.WorkerOptions(log, nil, func() { close(ready) })
	o.NoOutbox = true
	// When the command ends, its runs have ended: there is hardly anything to drain.
	o.Config.Worker.DrainSeconds = min(o.Config.Worker.DrainSeconds, 2)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(run, o) }()
	select {
	case err := <-ended:
		stop()
		return err
	case <-ready:
	}
	s.OnClose(func(context.Context) error {
		stop()
		return <-ended
	})
	return nil
}
