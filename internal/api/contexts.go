package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

// ContextQuery says how a context is wanted.
type ContextQuery struct {
	Format         string `query:"format" doc:"Format of the messages; left out: the conversation's own."`
	MaxInputTokens int    `query:"max_input_tokens" minimum:"0" doc:"Most tokens of the whole request, in the place of the setting: beyond it the oldest turns are left out."`
}

func (c ContextQuery) service() service.ContextRequest {
	return service.ContextRequest{Format: c.Format, MaxInputTokens: c.MaxInputTokens}
}

type contextInput struct {
	ConversationPath
	ContextQuery
}

type contextOutput struct{ Body wire.Context }

func (s *Server) contexts() {
	register(s, huma.Operation{
		OperationID: "get-context", Method: http.MethodGet, Path: "/v1/conversations/{id}/context",
		Tags: []string{tagLoop}, Summary: "What the model sees next",
		Description: "Ready to send: system prompt, tools and messages in the wanted format, with their figures.",
	}, traits{}, func(ctx context.Context, q *request, in *contextInput) (*contextOutput, error) {
		c, err := s.service.Context(ctx, in.ref(q), in.service())
		if err != nil {
			return nil, err
		}
		return &contextOutput{Body: c}, nil
	})
}
