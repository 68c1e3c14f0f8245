package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type openReplyInput struct {
	ConversationPath
	ContextQuery
	Payload payload[wire.NewReplyInput]
}

type openReplyOutput struct {
	Status int
	Body   wire.Reply
}

type endReplyInput struct {
	ConversationPath
	Reply   string `path:"reply" limit:"run_id" doc:"The reply's id."`
	Payload payload[wire.ReplyEndInput]
}

func (s *Server) replies() {
	register(s, huma.Operation{
		OperationID: "open-reply", Method: http.MethodPost, Path: "/v1/conversations/{id}/replies",
		Tags: []string{tagLoop}, DefaultStatus: http.StatusCreated, Summary: "Open a reply",
		Description: "The agent's model starts to generate. Returns the context to send. Until the reply is ended " +
			"or its lease expires, no " +
			"compaction takes effect.",
	}, traits{codes: []wire.Code{service.CodeReplyOpen}}, s.openReply)
	register(s, huma.Operation{
		OperationID: "end-reply", Method: http.MethodPost, Path: "/v1/conversations/{id}/replies/{reply}/end",
		Tags: []string{tagLoop}, Summary: "End a reply",
		Description: "The agent's model has generated. Appends the messages, starts a compaction that is due and " +
			"applies a prepared summary.",
	}, traits{codes: []wire.Code{service.CodeReplyEnded}}, s.endReply)
}

func (s *Server) openReply(ctx context.Context, q *request, in *openReplyInput) (*openReplyOutput, error) {
	ttl := time.Duration(in.Payload.value.TTLSeconds) * time.Second
	r, err := s.service.OpenReply(ctx, in.ref(q), ttl, in.service())
	if err != nil {
		return nil, err
	}
	return &openReplyOutput{Status: http.StatusCreated, Body: r}, nil
}

func (s *Server) endReply(ctx context.Context, q *request, in *endReplyInput) (*appendOutput, error) {
	b := in.Payload.value
	end := service.ReplyEnd{Messages: b.Messages, Meta: metas(b.Meta), Usage: given(b.Usage)}
	if b.Error != nil {
		end.Error = &service.ReplyError{Status: b.Error.Status, Body: textOf(b.Error.Body)}
	}
	done, err := s.service.EndReply(ctx, in.ref(q), in.Reply, end)
	if err != nil {
		return nil, err
	}
	return &appendOutput{Body: done}, nil
}

// textOf returns the text of a JSON string, and any other JSON value unchanged.
func textOf(raw json.RawMessage) []byte {
	var text string
	if json.Unmarshal(raw, &text) == nil && !isNull(raw) {
		return []byte(text)
	}
	return given(raw)
}
