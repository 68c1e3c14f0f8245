package service

import (
	"context"

	"precis/internal/api/wire"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
)

// Replay asks for a run to be repeated, from its record or live. The replay is a run of its own, linked to the other;
// GetRun has its comparison when it has ended.
func (s *Service) Replay(ctx context.Context, ref store.RunRef, req launch.ReplayRequest) (wire.Run, error) {
	switch {
	case req.Apply && !req.Live:
		return wire.Run{}, invalid("apply", "apply goes with live: what comes out of the record is there already")
	case !req.Live && req.Changes():
		return wire.Run{}, invalid("live", "is needed for changes: from the record everything is as it was")
	}
	if err := s.checkCompact(CompactRequest{Prompt: req.Prompt, Summarizer: req.Summarizer}); err != nil {
		return wire.Run{}, err
	}
	asked, _, err := launch.AskReplay(ctx, s.Store, s.Config, ref, req)
	if err != nil {
		return wire.Run{}, refused(err)
	}
	return runreport.Of(asked), nil
}
