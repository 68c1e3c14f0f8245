package service

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/conversations"
	"precis/internal/store/triggers"
	"precis/pipeline/transcript"
)

// NewConversation is a conversation to create. Raw JSON is stored byte for byte.
type NewConversation struct {
	// ID is the client's id, see store.IDProblem. If it is "", one is generated.
	ID     string
	Format string
	Model  wire.Model
	// System and Tools are the agent's, as the format has them, nil if unknown.
	System, Tools json.RawMessage
	// Settings are the conversation's own settings, a JSON object.
	Settings json.RawMessage
	// Metadata belongs to the client, a JSON object.
	Metadata json.RawMessage
}

// ConversationPatch changes the fields that are not nil. Settings and Metadata are merge patches (RFC 7396): null
// removes a key.
type ConversationPatch struct {
	Model         *ModelPatch
	System, Tools *json.RawMessage
	Settings      json.RawMessage
	Metadata      json.RawMessage
}

// ModelPatch changes the fields of the model that are not nil. A new vendor or name also removes the old model's
// window.
type ModelPatch struct {
	Vendor, Name             *string
	ContextWindow, MaxOutput *int
}

// CreateConversation creates a conversation. If one was created before with the same id and body, it returns that one
// and created is false.
func (s *Service) CreateConversation(ctx context.Context, tenant string,
	req NewConversation,
) (out wire.Conversation, created bool, err error) {
	n, err := s.newConversation(ctx, tenant, req)
	if err != nil {
		return out, false, refused(err)
	}
	c, created, err := s.Store.Conversations.Create(ctx, tenant, n)
	if store.ConflictReasonOf(err) == store.ConflictDifferent {
		return out, false, &Error{
			Code: CodeConflict, Field: "id",
			Detail: "is taken by a conversation that was created with another body", Cause: err,
		}
	}
	if err != nil {
		return out, false, refused(err)
	}
	out, err = s.GetConversation(ctx, c.Ref)
	return out, created, err
}

// create creates a conversation for the service itself.
func (s *Service) create(ctx context.Context, tenant string, req NewConversation,
	ephemeral bool,
) (conversations.Conversation, error) {
	n, err := s.newConversation(ctx, tenant, req)
	if err != nil {
		return conversations.Conversation{}, err
	}
	n.Ephemeral = ephemeral
	c, _, err := s.Store.Conversations.Create(ctx, tenant, n)
	return c, err
}

// newConversation validates a request to create a conversation.
func (s *Service) newConversation(ctx context.Context, tenant string,
	req NewConversation,
) (conversations.NewConversation, error) {
	n := conversations.NewConversation{
		ID: req.ID, Format: req.Format, Vendor: req.Model.Vendor, Model: req.Model.Name,
		Window: req.Model.ContextWindow, MaxOutput: req.Model.MaxOutput,
		System: given(req.System), Tools: given(req.Tools), Settings: given(req.Settings),
		Metadata: given(req.Metadata),
	}
	if problem := store.IDProblem(n.ID, conversations.MaxID); n.ID != "" && problem != "" {
		return n, invalid("id", "%s", problem)
	}
	if _, err := transcript.CodecFor(transcript.Format(req.Format)); err != nil {
		return n, &Error{Code: CodeInvalid, Field: "format", Detail: plain(err), Cause: err}
	}
	if err := checkJSON(n.System, n.Tools, n.Metadata); err != nil {
		return n, err
	}
	tenantSettings, err := s.Store.Tenants.Settings(ctx, tenant)
	if err != nil {
		return n, err
	}
	return n, s.checkSettings(conversations.Conversation{
		Vendor: n.Vendor, Model: n.Model, Window: n.Window, Settings: n.Settings, TenantSettings: tenantSettings,
	})
}

// given returns raw, nil if it is empty or null.
func given(raw json.RawMessage) json.RawMessage {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	return raw
}

// checkJSON returns an error for a value that is not JSON or of the wrong type.
func checkJSON(system, tools, metadata json.RawMessage) error {
	for _, f := range []struct {
		name  string
		raw   json.RawMessage
		begin string
	}{{"system", system, `"[{`}, {"tools", tools, `[`}, {"metadata", metadata, `{`}} {
		raw := bytes.TrimSpace(f.raw)
		switch {
		case len(raw) == 0:
		case !json.Valid(raw):
			return invalid(f.name, "is not valid JSON")
		case !strings.ContainsRune(f.begin, rune(raw[0])):
			return invalid(f.name, "is of the wrong type: it begins with %q", raw[0])
		}
	}
	return nil
}

// tenantOnly are the settings that a conversation cannot have.
var tenantOnly = []string{"tenant_daily_token_budget"}

// checkSettings returns an error that names the first setting that is not valid for the conversation.
func (s *Service) checkSettings(c conversations.Conversation) error {
	if len(c.Settings) == 0 {
		return nil
	}
	keys, err := settingsObject(c.Settings)
	if err != nil {
		return err
	}
	for _, key := range tenantOnly {
		if _, ok := keys[key]; ok {
			return invalid("settings."+key, "is for the installation and for a tenant to set, not for a conversation")
		}
	}
	base, err := conversation.Overlay(s.Config.Settings, c.TenantSettings)
	if err != nil { // not an error of this conversation: use the settings of the installation
		s.Log.Warn("a tenant's stored settings are not valid", "tenant", c.Ref.Tenant, "error", err)
	}
	settings, err := overlay(base, c.Settings)
	if err != nil {
		return err
	}
	if _, own := keys["run_time_budget_seconds"]; own {
		if err := s.checkBounds(settings); err != nil {
			return err
		}
	}
	return settings.ValidateForWindow(conversation.Window(c, s.installation().Models))
}

// GetConversation returns a conversation with its state.
func (s *Service) GetConversation(ctx context.Context, ref store.ConversationRef) (wire.Conversation, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return wire.Conversation{}, refused(err)
	}
	out := conversationOf(c)
	if out.ContentDeleted {
		return out, nil
	}
	out.State, err = s.state(ctx, ref)
	return out, refused(err)
}

func conversationOf(c conversations.Conversation) wire.Conversation {
	return wire.Conversation{
		ID: c.Ref.ID, Format: c.Format,
		Model:  wire.Model{Vendor: c.Vendor, Name: c.Model, ContextWindow: c.Window, MaxOutput: c.MaxOutput},
		System: c.System, Tools: c.Tools, Settings: c.Settings, Metadata: c.Metadata,
		HeadSeq: c.HeadSeq, Turns: c.Sums.Turns, Created: c.Created.UTC(), ContentDeleted: !c.ContentDeleted.IsZero(),
	}
}

// state returns the state of a conversation. It changes nothing.
func (s *Service) state(ctx context.Context, ref store.ConversationRef) (*wire.State, error) {
	tc := &triggerCheck{s: s, dryRun: true}
	var breaker breakers.Breaker
	err := s.Store.Triggers.Inspect(ctx, ref, func(ctx context.Context, m triggers.State) error {
		if _, err := tc.evaluate(ctx, m); err != nil {
			return err
		}
		var err error
		breaker, err = m.Breaker(ctx, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := tc.state
	out := &wire.State{
		UsedTokens: tc.decision.Used, Estimated: tc.decision.Estimated, Trigger: wire.TriggerDecision(tc.decision),
		Hold: tc.hold, LearnedWindow: m.Conversation.LearnedWindow, Marker: conversation.MarkerOf(m.Marker),
		Run: tc.active, ReplyOpen: m.ReplyOpen,
		Breaker: wire.Breaker{
			Open: breaker.Open(), Failures: breaker.Failures, Opened: timeOrNull(breaker.Opened),
			ErrorKind: breaker.ErrorKind, Reason: breaker.Reason,
		},
	}
	if m.Prepared != nil {
		out.Prepared = m.Prepared.Run
	}
	return out, nil
}

// ListConversations returns a page of a tenant's conversations, newest first, at most limit (1 to 1000) of them,
// without their state. cursor is "" for the first page, and then the next of the page before; next is "" on the last
// page.
func (s *Service) ListConversations(ctx context.Context, tenant, cursor string,
	limit int,
) (list []wire.Conversation, next string, err error) {
	found, next, err := s.Store.Conversations.List(ctx, tenant, cursor, limit)
	if err != nil {
		return nil, "", refused(err)
	}
	list = make([]wire.Conversation, len(found))
	for i, c := range found {
		list[i] = conversationOf(c)
	}
	return list, next, nil
}

// PatchConversation changes model, system prompt, tools, settings or metadata. It evaluates the trigger, because a
// smaller window may start a compaction.
func (s *Service) PatchConversation(ctx context.Context, ref store.ConversationRef,
	p ConversationPatch,
) (wire.Conversation, error) {
	tc := &triggerCheck{s: s, changed: true}
	_, result, err := s.Store.Changes.Change(ctx, ref,
		func(c conversations.Conversation) (conversations.Patch, error) {
			return s.patch(c, p)
		}, tc.evaluate)
	if err != nil {
		return wire.Conversation{}, refused(err)
	}
	s.follow(ctx, ref, tc, result)
	return s.GetConversation(ctx, ref)
}

// patch returns a client's patch in the form that the store applies.
func (s *Service) patch(c conversations.Conversation, p ConversationPatch) (conversations.Patch, error) {
	if !c.ContentDeleted.IsZero() {
		return conversations.Patch{}, store.ErrContentDeleted
	}
	out := conversations.Patch{System: cleared(p.System), Tools: cleared(p.Tools)}
	if m := p.Model; m != nil {
		out.Vendor, out.Model, out.Window, out.MaxOutput = m.Vendor, m.Name, m.ContextWindow, m.MaxOutput
		other := m.Vendor != nil && *m.Vendor != c.Vendor || m.Name != nil && *m.Name != c.Model
		if other && m.ContextWindow == nil {
			out.Window = new(int) // the window of the new model in the registry
		}
	}
	var system, tools json.RawMessage
	if out.System != nil {
		system = *out.System
	}
	if out.Tools != nil {
		tools = *out.Tools
	}
	var err error
	if out.Settings, err = merged(c.Settings, p.Settings, "settings"); err != nil {
		return out, err
	}
	if out.Metadata, err = merged(c.Metadata, p.Metadata, "metadata"); err != nil {
		return out, err
	}
	if out.Settings != nil {
		if err := checkMerged("settings", c.Settings, *out.Settings); err != nil {
			return out, err
		}
	}
	if out.Metadata != nil {
		if err := checkMerged("metadata", c.Metadata, *out.Metadata); err != nil {
			return out, err
		}
	}
	if err := checkJSON(system, tools, nil); err != nil {
		return out, err
	}
	if out.Settings != nil {
		after := c
		after.Settings = *out.Settings
		if out.Window != nil {
			after.Window, after.LearnedWindow = *out.Window, 0
		}
		err = s.checkSettings(after)
	}
	return out, err
}

// cleared returns a pointer to nil for null, and nil for no change.
func cleared(raw *json.RawMessage) *json.RawMessage {
	if raw == nil {
		return nil
	}
	value := given(*raw)
	return &value
}

// merged applies a merge patch (RFC 7396) to a stored object. It returns nil if there is no patch.
func merged(have, patch json.RawMessage, field string) (*json.RawMessage, error) {
	if given(patch) == nil {
		return nil, nil
	}
	p, err := object(patch)
	if err != nil {
		return nil, invalid(field, "is not a JSON object")
	}
	base, err := object(have)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(mergePatch(base, p))
	if err != nil {
		return nil, err
	}
	raw := json.RawMessage(out)
	return &raw, nil
}

// object decodes a JSON object and keeps its numbers as they are written. It returns an empty one if raw is empty.
func object(raw json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	if len(raw) == 0 {
		return out, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return out, d.Decode(&out)
}

func mergePatch(base, patch map[string]any) map[string]any {
	if base == nil {
		base = map[string]any{}
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(base, key)
		case map[string]any:
			inner, _ := base[key].(map[string]any)
			base[key] = mergePatch(inner, v)
		default:
			base[key] = v
		}
	}
	return base
}
