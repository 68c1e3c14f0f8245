package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/service"
	"precis/internal/store"
)

// The groups of operations on the page.
const (
	tagConversations = "Conversations"
	tagLoop          = "An agent's loop"
	tagCompactions   = "Compactions"
	tagState         = "Live state"
	tagSettings      = "Settings"
	tagEvents        = "Events"
	tagMemory        = "Memory"
	tagAudit         = "Runs and usage"
	tagServer        = "The server"
)

// ConversationPath is part of the input of every operation on a conversation.
type ConversationPath struct {
	ID string `path:"id" maxLength:"160" doc:"The conversation's id."`
}

func (p ConversationPath) ref(q *request) store.ConversationRef {
	return store.ConversationRef{Tenant: q.tenant, ID: p.ID}
}

// Page is part of the input of every list.
type Page struct {
	Cursor string `query:"cursor" doc:"What the page before gave as next; empty for the first page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Most entries of a page."`
}

// Model of a request, as the service takes it.
type modelBody struct {
	Vendor        string `json:"vendor" minLength:"1" doc:"Vendor as the configuration calls it: anthropic, openai, xai, google or one of your own."`
	Name          string `json:"name" minLength:"1" doc:"The vendor's own name of the model."`
	ContextWindow int    `json:"context_window,omitempty" minimum:"0" doc:"Window in tokens. 0: what is known of the model."`
	MaxOutput     int    `json:"max_output,omitempty" minimum:"0" doc:"Output that the agent asks for, in tokens; so much is kept free."`
}

func (m modelBody) service() service.Model {
	return service.Model{Vendor: m.Vendor, Name: m.Name, ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutput}
}

type newConversation struct {
	ID       string          `json:"id,omitempty" maxLength:"160" doc:"The client's own id. The same one again with the same body gives the conversation that is there. Left out: one is made."`
	Format   string          `json:"format" minLength:"1" doc:"Wire format of every message to come: anthropic, openai, claude-code…"`
	Model    modelBody       `json:"model" doc:"The agent's model."`
	System   json.RawMessage `json:"system,omitempty" doc:"The agent's system prompt, in the format's own form."`
	Tools    json.RawMessage `json:"tools,omitempty" doc:"The agent's tool definitions, in the format's own form."`
	Settings object          `json:"settings,omitempty" doc:"What this conversation sets of the settings."`
	Metadata object          `json:"metadata,omitempty" doc:"The client's own; nothing reads it."`
}

type createInput struct {
	Payload payload[newConversation]
}

type createOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     service.Conversation
}

type conversationOutput struct{ Body service.Conversation }

type listConversationsOutput struct {
	Body struct {
		Conversations []service.Conversation `json:"conversations"`
		Next          string                 `json:"next,omitempty" doc:"Cursor of the next page; left out after the last."`
	}
}

type modelPatch struct {
	Vendor        *string `json:"vendor,omitempty" minLength:"1"`
	Name          *string `json:"name,omitempty" minLength:"1"`
	ContextWindow *int    `json:"context_window,omitempty" minimum:"0" doc:"Window in tokens. A new vendor or name without it takes the window of the old one away."`
	MaxOutput     *int    `json:"max_output,omitempty" minimum:"0"`
}

type conversationPatch struct {
	Model    *modelPatch     `json:"model,omitempty" doc:"What changes of the model."`
	System   json.RawMessage `json:"system,omitempty" doc:"The new system prompt; null: none."`
	Tools    json.RawMessage `json:"tools,omitempty" doc:"The new tool definitions; null: none."`
	Settings object          `json:"settings,omitempty" doc:"Merged key by key (RFC 7396): null takes a key away."`
	Metadata object          `json:"metadata,omitempty" doc:"Merged key by key, as settings."`
}

type patchInput struct {
	ConversationPath
	Payload payload[conversationPatch]
}

func (s *Server) conversations() {
	register(s, huma.Operation{
		OperationID: "create-conversation", Method: http.MethodPost, Path: "/v1/conversations",
		Tags: []string{tagConversations}, DefaultStatus: http.StatusCreated, Summary: "Make a conversation",
		Description: "201 for a new one; 200 for one that is there already and was made with the same body. " +
			"Another body under the same id is a `conflict`.",
	}, traits{repeatable: true, also: http.StatusOK, codes: []service.Code{service.CodeConflict}}, s.createConversation)
	register(s, huma.Operation{
		OperationID: "list-conversations", Method: http.MethodGet, Path: "/v1/conversations",
		Tags: []string{tagConversations}, Summary: "List conversations",
		Description: "Newest first, without their state.",
	}, traits{}, s.listConversations)
	register(s, huma.Operation{
		OperationID: "get-conversation", Method: http.MethodGet, Path: "/v1/conversations/{id}",
		Tags: []string{tagConversations}, Summary: "Read a conversation and where it stands",
	}, traits{}, s.getConversation)
	register(s, huma.Operation{
		OperationID: "patch-conversation", Method: http.MethodPatch, Path: "/v1/conversations/{id}",
		Tags: []string{tagConversations}, Summary: "Change model, system prompt, tools or settings",
		Description: "The trigger is looked at again: a smaller window is enough to start a compaction.",
	}, traits{repeatable: true}, s.patchConversation)
}

func (s *Server) createConversation(ctx context.Context, q *request, in *createInput) (*createOutput, error) {
	b := in.Payload.value
	c, created, err := s.service.CreateConversation(ctx, q.tenant, service.NewConversation{
		ID: b.ID, Format: b.Format, Model: b.Model.service(), System: given(b.System), Tools: given(b.Tools),
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
	out := &listConversationsOutput{}
	out.Body.Conversations, out.Body.Next = list, next
	return out, nil
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
			Vendor: m.Vendor, Name: m.Name, ContextWindow: m.ContextWindow,
			MaxOutput: m.MaxOutput,
		}
	}
	c, err := s.service.PatchConversation(ctx, in.ref(q), patch)
	if err != nil {
		return nil, err
	}
	return &conversationOutput{Body: c}, nil
}

// given is raw JSON, nil for null: the client left it out in so many words.
func given(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return raw
}

// replaced tells what was left out, nil, from what is to be taken away, a pointer to nil.
func replaced(raw json.RawMessage) *json.RawMessage {
	if raw == nil {
		return nil
	}
	value := given(raw)
	return &value
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }
