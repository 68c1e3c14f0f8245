package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

// ContextQuery is part of the input of the operations that return a context.
type ContextQuery struct {
	Format         string `query:"format" limit:"word" doc:"Format of the messages. Left out: the conversation's own."`
	MaxInputTokens int    `query:"max_input_tokens" minimum:"0" doc:"Maximum size of the whole request in tokens, instead of the setting. The oldest turns that do not fit are left out."`
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
		Tags: []string{tagLoop}, Summary: "Read what the model is sent next",
		Description: "Ready to send: system prompt, tools and messages in the requested format, with their figures.",
	}, traits{}, func(ctx context.Context, q *request, in *contextInput) (*contextOutput, error) {
		c, err := s.service.Context(ctx, in.ref(q), in.service())
		if err != nil {
			return nil, err
		}
		return &contextOutput{Body: c}, nil
	})
}
