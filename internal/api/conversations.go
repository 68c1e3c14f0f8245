package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/store"
)

// ConversationPath is part of the input of every operation on a conversation.
type ConversationPath struct {
	ID string `path:"id" limit:"conversation_id" doc:"The conversation's id."`
}

func (p ConversationPath) ref(q *request) store.ConversationRef {
	return store.ConversationRef{Tenant: q.tenant, ID: p.ID}
}

// Page is part of the input of every list with cursors.
type Page struct {
	Cursor string `query:"cursor" limit:"cursor" doc:"next of the previous page. Empty for the first page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Maximum number of entries of a page."`
}

type createInput struct {
	Payload payload[wire.NewConversationInput]
}

type createOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     wire.Conversation
}

type conversationOutput struct{ Body wire.Conversation }

type listConversationsOutput struct{ Body wire.ConversationList }

type patchInput struct {
	ConversationPath
	Payload payload[wire.ConversationPatchInput]
}

func (s *Server) conversations() {
	register(s, huma.Operation{
		OperationID: "create-conversation", Method: http.MethodPost, Path: "/v1/conversations",
		Tags: []string{tagConversations}, DefaultStatus: http.StatusCreated, Summary: "Make a conversation",
		Description: "201 for a new conversation; 200 if it exists and was made with the same body. " +
			"Another body with the same id is a `conflict`.",
	}, traits{repeatable: true, also: http.StatusOK, codes: []wire.Code{service.CodeConflict}}, s.createConversation)
	register(s, huma.Operation{
		OperationID: "list-conversations", Method: http.MethodGet, Path: "/v1/conversations",
		Tags: []string{tagConversations}, Summary: "List conversations",
		Description: "Newest first, without their state.",
	}, traits{}, s.listConversations)
	register(s, huma.Operation{
		OperationID: "get-conversation", Method: http.MethodGet, Path: "/v1/conversations/{id}",
		Tags: []string{tagConversations}, Summary: "Read a conversation and its state",
	}, traits{}, s.getConversation)
	register(s, huma.Operation{
		OperationID: "patch-conversation", Method: http.MethodPatch, Path: "/v1/conversations/{id}",
		Tags: []string{tagConversations}, Summary: "Change model, system prompt, tools or settings",
		Description: "The trigger is evaluated again: a smaller window may start a compaction.",
	}, traits{repeatable: true}, s.patchConversation)
}

func (s *Server) createConversation(ctx context.Context, q *request, in *createInput) (*createOutput, error) {
	b := in.Payload.value
	c, created, err := s.service.CreateConversation(ctx, q.tenant, service.NewConversation{
		ID: b.ID, Format: b.Format, Model: wire.Model(b.Model), System: given(b.System), Tools: given(b.Tools),
		Settings: json.RawMessage(b.Settings), Metadata: json.RawMessage(b.Metadata),
	})
	if err != nil {
		return nil, err
	}
	out := &createOutput{Status: http.StatusOK, Location: "/v1/conversations/" + url.PathEscape(c.ID), Body: c}
	if created {
		out.Status = http.StatusCreated
	}
	return out, nil
}

func (s *Server) listConversations(ctx context.Context, q *request, in *Page) (*listConversationsOutput, error) {
	list, next, err := s.service.ListConversations(ctx, q.tenant, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return &listConversationsOutput{wire.ConversationList{Conversations: list, Next: next}}, nil
}

func (s *Server) getConversation(ctx context.Context, q *request, in *ConversationPath) (*conversationOutput, error) {
	c, err := s.service.GetConversation(ctx, in.ref(q))
	if err != nil {
		return nil, err
	}
	return &conversationOutput{Body: c}, nil
}

func (s *Server) patchConversation(ctx context.Context, q *request, in *patchInput) (*conversationOutput, error) {
	b := in.Payload.value
	patch := service.ConversationPatch{
		System: replaced(b.System), Tools: replaced(b.Tools), Settings: json.RawMessage(b.Settings),
		Metadata: json.RawMessage(b.Metadata),
	}
	if m := b.Model; m != nil {
		patch.Model = &service.ModelPatch{
			Vendor: m.Vendor, Name: m.Name, ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutput,
		}
	}
	c, err := s.service.PatchConversation(ctx, in.ref(q), patch)
	if err != nil {
		return nil, err
	}
	return &conversationOutput{Body: c}, nil
}

// given returns raw, or nil for null.
func given(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return raw
}

// replaced returns nil for a field that was left out, and a pointer to nil for null, which removes the value.
func replaced(raw json.RawMessage) *json.RawMessage {
	if raw == nil {
		return nil
	}
	value := given(raw)
	return &value
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }
