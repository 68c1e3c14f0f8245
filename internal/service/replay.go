package service

import (
	"context"

	"precis/internal/api/wire"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
)

// Replay requests a replay of a run, from its record or live. The replay is a run of its own, linked to the original;
// once it has ended, GetRun returns it with its comparison.
func (s *Service) Replay(ctx context.Context, ref store.RunRef, req launch.ReplayRequest) (wire.Run, error) {
	if err := s.checkReplay(req); err != nil {
		return wire.Run{}, err
	}
	asked, _, err := launch.AskReplay(ctx, s.Store, s.Config, ref, req)
	if err != nil {
		return wire.Run{}, refused(err)
	}
	return runreport.Of(asked), nil
}

// checkReplay returns an error for the first option that is not valid.
func (s *Service) checkReplay(req launch.ReplayRequest) error {
	if err := req.Validate(); err != nil {
		return refused(err)
	}
	return s.CheckSummarizers(req.Summarizer)
}
