package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"precis/internal/api/wire"
	"precis/internal/store"
)

// runOutput is a run: 202 while it is in progress.
type runOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     wire.Run
}

func runAnswer(run wire.Run) *runOutput {
	out := &runOutput{Status: http.StatusAccepted, Location: "/v1/runs/" + run.ID, Body: run}
	if run.Outcome != "" {
		out.Status = http.StatusOK
	}
	return out
}

// await waits for the end of a run for at most wait, or until the server stops. The run continues in any case.
func (s *Server) await(ctx context.Context, q *request, run wire.Run, wait time.Duration) (wire.Run, error) {
	if s.launcher.Client == nil {
		return run, nil
	}
	ref := store.RunRef{Tenant: q.tenant, ID: run.ID}
	stored, err := s.store.Runs.Get(ctx, ref)
	if err != nil {
		s.log.Warn("a run that was requested cannot be read", "run", run.ID, "error", err)
		return run, ctx.Err()
	}
	waitCtx, cancel := context.WithTimeout(ctx, min(wait, time.Duration(s.config.MaxWaitSeconds)*time.Second))
	defer cancel()
	if q.client != nil { // the answer is kept for a client that has disconnected, and need not wait for it
		defer context.AfterFunc(q.client, cancel)()
	}
	defer context.AfterFunc(s.stopping, cancel)()
	_, waited := s.launcher.Wait(waitCtx, stored)
	if ctx.Err() != nil {
		return run, ctx.Err()
	}
	if waited != nil && waitCtx.Err() == nil {
		// Temporal is not reachable. The run was requested, and its row has its state.
		s.log.Warn("a run cannot be waited for", "run", run.ID, "error", waited)
	}
	now, err := s.service.GetRun(ctx, ref, nil)
	switch {
	case errors.Is(err, context.Canceled):
		return run, err
	case err != nil:
		// The run was requested: an error would say that it was not.
		s.log.Warn("a run that was requested cannot be read", "run", run.ID, "error", err)
		return run, nil
	}
	return now, nil
}
