package service

import (
	"context"
	"sync"
	"time"

	"precis/internal/api/wire"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/runs"
)

// pollInterval is how often the row of a run is read: for its progress, and to wait for it without Temporal.
const pollInterval = 250 * time.Millisecond

// Follower is what a caller that waits for a run is called with meanwhile. Each function may be nil.
type Follower struct {
	// Progress is called with the run as it is recorded, four times a second until it has ended.
	Progress func(wire.Run)
	// Cancelling is called if the caller's context has ended, before the run is cancelled.
	Cancelling func(run string)
}

// Follow waits for the end of a run and returns it. If the context ends first, the run is cancelled: the result is the
// run as it ended then, and the error is that of the context.
func (s *Service) Follow(ctx context.Context, ref store.RunRef, f Follower) (wire.Run, error) {
	run, err := s.Store.Runs.Get(ctx, ref)
	if err != nil {
		return wire.Run{}, refused(err)
	}
	ended, err := s.followRun(ctx, run, f)
	return runreport.Of(ended), refused(err)
}

func (s *Service) followRun(ctx context.Context, run runs.Run, f Follower) (runs.Run, error) {
	stop := s.progress(ctx, run.Ref, f.Progress)
	ended, err := s.wait(ctx, run)
	stop()
	// Without Temporal a run cannot be cancelled: it continues.
	if err == nil || ctx.Err() == nil || s.Temporal == nil {
		return ended, err
	}
	if f.Cancelling != nil {
		f.Cancelling(run.Ref.ID)
	}
	if ended, err = s.launcher().Cancel(context.WithoutCancel(ctx), run); err != nil {
		s.Log.Warn("a run was not cancelled after its caller had disconnected", "run", run.Ref.ID, "error", err)
		return ended, err
	}
	return ended, ctx.Err()
}

// progress calls show with the run's record until stop is called, which returns after the last call.
func (s *Service) progress(ctx context.Context, ref store.RunRef, show func(wire.Run)) (stop func()) {
	if show == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() {
		tick := time.NewTicker(pollInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now, err := s.Store.Runs.Get(ctx, ref); err == nil {
				show(runreport.Of(now))
			}
		}
	})
	return func() {
		cancel()
		shown.Wait()
	}
}

// wait waits for the end of a run and returns it. If the context ends first, the run continues.
func (s *Service) wait(ctx context.Context, run runs.Run) (runs.Run, error) {
	if s.Temporal != nil {
		return s.launcher().Wait(ctx, run)
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		now, err := s.Store.Runs.Get(ctx, run.Ref)
		if err != nil || now.Outcome != "" {
			return now, err
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-tick.C:
		}
	}
}
