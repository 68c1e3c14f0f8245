package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/launch"
)

type replayInput struct {
	RunPath
	Payload payload[wire.NewReplayInput]
}

func (s *Server) replays() {
	register(s, huma.Operation{
		OperationID: "replay-run", Method: http.MethodPost, Path: "/v1/runs/{run}/replay", Tags: []string{tagAudit},
		DefaultStatus: http.StatusOK, Summary: "Replay a run",
		Description: "From its record: no model is called, every stage is executed again and compared, and " +
			"`comparison` says identical or where they differ. " +
			"Or live: a new run on what the conversation was then, linked by `replay_of`, not applied " +
			"unless requested, and shown side by side with the original. " +
			"202 with the run while it is in progress, or 200 if it ended within the wait.",
	}, traits{waits: true, also: http.StatusAccepted}, s.replay)
}

func (s *Server) replay(ctx context.Context, q *request, in *replayInput) (*runOutput, error) {
	b := in.Payload.value
	ask, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	run, err := s.service.Replay(ask, in.ref(q), launch.ReplayRequest{
		Live: b.Live, Apply: b.Apply, Summarizer: b.Summarizer, Prompt: b.Prompt, MaxChars: b.MaxChars, Focus: b.Focus,
	})
	if err != nil {
		return nil, err
	}
	if b.WaitSeconds > 0 {
		if run, err = s.await(ctx, q, run, time.Duration(b.WaitSeconds)*time.Second); err != nil {
			return nil, err
		}
	}
	return runAnswer(run), nil
}
