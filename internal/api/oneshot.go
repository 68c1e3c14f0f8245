package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/service"
)

type oneShot struct {
	Format   string                `json:"format" minLength:"1" doc:"Format of the messages; auto: found out."`
	Model    modelBody             `json:"model" doc:"The model that the list is for."`
	Messages []json.RawMessage     `json:"messages" doc:"Native messages, in order."`
	Meta     []messageMeta         `json:"meta,omitempty" doc:"One entry a message, as with an append."`
	System   json.RawMessage       `json:"system,omitempty" doc:"The agent's system prompt, in the format's own form."`
	Tools    json.RawMessage       `json:"tools,omitempty" doc:"The agent's tool definitions, in the format's own form."`
	Settings object                `json:"settings,omitempty" doc:"Settings of this compaction."`
	State    map[string]stateValue `json:"state,omitempty" doc:"Live state by key."`
	Focus    string                `json:"focus,omitempty" doc:"What matters most, in the user's words."`
	Keep     bool                  `json:"keep,omitempty" doc:"Keep the conversation, to be read under the run's conversation id."`
}

type oneShotInput struct{ Payload payload[oneShot] }

type oneShotOutput struct{ Body service.OneShot }

func (s *Server) oneShot() {
	register(s, huma.Operation{
		OperationID: "compact-once", Method: http.MethodPost, Path: "/v1/compact", Tags: []string{tagCompactions},
		DefaultStatus: http.StatusOK, Summary: "A list of messages in, a compacted list out",
		Description: "For clients that keep their messages themselves. Nothing of what was said is kept unless " +
			"`keep` is set, and so no answer for an idempotency key either.",
	}, traits{waits: true, unkept: true}, s.compactOnce)
}

func (s *Server) compactOnce(ctx context.Context, q *request, in *oneShotInput) (*oneShotOutput, error) {
	b := in.Payload.value
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	state := make(map[string]service.StateValue, len(b.State))
	for key, value := range b.State {
		state[key] = value.service()
	}
	done, err := s.service.CompactOnce(ctx, q.tenant, service.OneShotRequest{
		Format: b.Format, Model: b.Model.service(), Messages: b.Messages, Meta: metas(b.Meta), System: given(b.System),
		Tools: given(b.Tools), Settings: json.RawMessage(b.Settings), State: state, Focus: b.Focus, Keep: b.Keep,
	})
	if err != nil && s.stopping.Err() != nil {
		return nil, problem(service.CodeUnavailable, "the server is stopping: send the list again")
	}
	if err != nil {
		return nil, err
	}
	return &oneShotOutput{Body: done}, nil
}
