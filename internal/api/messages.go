package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

func metas(list []wire.MessageMetaInput) []service.Meta {
	out := make([]service.Meta, len(list))
	for i, m := range list {
		out[i] = service.Meta{ID: m.ID, Kind: m.Kind}
	}
	return out
}

type appendInput struct {
	ConversationPath
	Payload payload[wire.NewMessagesInput]
}

type appendOutput struct{ Body wire.Appended }

type syncInput struct {
	ConversationPath
	Payload payload[wire.WholeListInput]
}

type syncOutput struct{ Body wire.Synced }

type listMessagesInput struct {
	ConversationPath
	After int64 `query:"after" minimum:"0" doc:"Only messages after this number."`
	Limit int   `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Maximum number of messages of a page. A page of large messages has fewer."`
}

type listMessagesOutput struct{ Body wire.MessageList }

func (s *Server) messages() {
	register(s, huma.Operation{
		OperationID: "append-messages", Method: http.MethodPost, Path: "/v1/conversations/{id}/messages",
		Tags: []string{tagLoop}, Summary: "Append messages",
		Description: "All of them or none. The answer says whether a compaction is due, with every number that " +
			"was compared; " +
			"a compaction that is due starts.",
	}, traits{codes: []wire.Code{service.CodeStale}}, s.appendMessages)
	register(s, huma.Operation{
		OperationID: "sync-messages", Method: http.MethodPost, Path: "/v1/conversations/{id}/sync",
		Tags: []string{tagLoop}, Summary: "Append the new messages of the client's whole list",
		Description: "For clients that keep the list of messages themselves. A list whose past differs from what " +
			"is stored is `stale_sequence`.",
	}, traits{repeatable: true, codes: []wire.Code{service.CodeStale}}, s.syncMessages)
	register(s, huma.Operation{
		OperationID: "list-messages", Method: http.MethodGet, Path: "/v1/conversations/{id}/messages",
		Tags: []string{tagConversations}, Summary: "Read the transcript as stored",
		Description: "Every message, also those that a summary stands for.",
	}, traits{}, s.listMessages)
}

func (s *Server) appendMessages(ctx context.Context, q *request, in *appendInput) (*appendOutput, error) {
	b := in.Payload.value
	done, err := s.service.Append(ctx, in.ref(q), service.AppendRequest{
		Messages: b.Messages, Meta: metas(b.Meta), Usage: given(b.Usage), IfSeq: b.IfSeq,
		ContextVersion: b.ContextVersion,
	})
	if err != nil {
		return nil, err
	}
	return &appendOutput{Body: done}, nil
}

func (s *Server) syncMessages(ctx context.Context, q *request, in *syncInput) (*syncOutput, error) {
	b := in.Payload.value
	done, err := s.service.Sync(ctx, in.ref(q),
		service.SyncRequest{Messages: b.Messages, Usage: given(b.Usage), ContextVersion: b.ContextVersion})
	if err != nil {
		return nil, err
	}
	return &syncOutput{Body: done}, nil
}

func (s *Server) listMessages(ctx context.Context, q *request, in *listMessagesInput) (*listMessagesOutput, error) {
	list, more, err := s.service.Messages(ctx, in.ref(q), in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &listMessagesOutput{}
	out.Body.Messages, out.Body.More = list, more
	for i := range list {
		if !json.Valid(list[i].Native) {
			// A message of claude-code can be several lines of a file, which is not a JSON value: it is returned as
			// text.
			if list[i].Native, err = json.Marshal(string(list[i].Native)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
