package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type oneShotInput struct{ Payload payload[wire.OneShotInput] }

type oneShotOutput struct{ Body wire.OneShot }

func (s *Server) oneShot() {
	register(s, huma.Operation{
		OperationID: "compact-once", Method: http.MethodPost, Path: "/v1/compact", Tags: []string{tagCompactions},
		DefaultStatus: http.StatusOK, Summary: "Compact a list of messages",
		Description: "For clients that keep their messages themselves. No message is kept unless " +
			"`keep` is set, and therefore no answer for an idempotency key either.",
	}, traits{waits: true, unkept: true}, s.compactOnce)
}

func (s *Server) compactOnce(ctx context.Context, q *request, in *oneShotInput) (*oneShotOutput, error) {
	b := in.Payload.value
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	done, err := s.service.CompactOnce(ctx, q.tenant, service.OneShotRequest{
		Format: b.Format, Model: wire.Model(b.Model), Messages: b.Messages, Meta: metas(b.Meta),
		System: given(b.System), Tools: given(b.Tools), Settings: json.RawMessage(b.Settings), State: b.State,
		Focus: b.Focus, Keep: b.Keep,
	})
	if err != nil && s.stopping.Err() != nil {
		return nil, problem(service.CodeUnavailable, "the server is stopping: send the list again")
	}
	if err != nil {
		return nil, err
	}
	return &oneShotOutput{Body: done}, nil
}
