package scenario

import (
	"encoding/json"

	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/pipeline/transcript"
)

// Conversation is a conversation to be created. The tenant defaults to Tenant, the id to a new one, the format to
// Anthropic's, vendor and model to those of New.
type Conversation struct {
	Tenant   string
	ID       string
	Format   transcript.Format
	Vendor   string
	Model    string
	Window   int
	System   json.RawMessage
	Tools    json.RawMessage
	Settings map[string]any
	// Messages are native JSON, in order.
	Messages []string
}

// Create stores a conversation with its messages.
func (s *System) Create(c Conversation) store.ConversationRef {
	s.T.Helper()
	if c.Tenant == "" {
		c.Tenant = Tenant
	}
	if c.Format == "" {
		c.Format = transcript.Anthropic
	}
	if c.Vendor == "" {
		c.Vendor = "anthropic"
	}
	if c.Model == "" {
		c.Model = "test-agent"
	}
	var settings json.RawMessage
	if c.Settings != nil {
		var err error
		if settings, err = json.Marshal(c.Settings); err != nil {
			s.T.Fatal(err)
		}
	}
	created, _, err := s.Store.Conversations.Create(s.T.Context(), c.Tenant, conversations.NewConversation{
		ID: c.ID, Format: string(c.Format), Vendor: c.Vendor, Model: c.Model, Window: c.Window,
		System: c.System, Tools: c.Tools, Settings: settings,
	})
	if err != nil {
		s.T.Fatal(err)
	}
	s.Append(created.Ref, c.Messages...)
	return created.Ref
}

// Append appends native messages.
func (s *System) Append(ref store.ConversationRef, natives ...string) {
	s.T.Helper()
	c, err := s.Store.Conversations.Get(s.T.Context(), ref)
	if err != nil {
		s.T.Fatal(err)
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		s.T.Fatal(err)
	}
	var batch []conversations.NewMessage
	for _, native := range natives {
		m, err := codec.Decode([]byte(native))
		if err != nil {
			s.T.Fatalf("%s: %v", native, err)
		}
		stored := conversation.Stored(m)
		stored.ClientID = ""
		batch = append(batch, stored)
	}
	if _, err := s.Store.Changes.Append(s.T.Context(), ref, batch, changes.AppendOptions{}); err != nil {
		s.T.Fatal(err)
	}
}

// View loads a conversation.
func (s *System) View(ref store.ConversationRef) conversation.View {
	s.T.Helper()
	v, err := conversation.Load(s.T.Context(), s.Store, ref, conversation.InstallationOf(s.Config), 0)
	if err != nil {
		s.T.Fatal(err)
	}
	return v
}

// Context returns the context of a conversation as native messages.
func (s *System) Context(ref store.ConversationRef) []string {
	s.T.Helper()
	v := s.View(ref)
	current, err := v.Context(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	messages, err := transcript.EncodeItems(v.Codec, current.Items)
	if err != nil {
		s.T.Fatal(err)
	}
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = string(m)
	}
	return out
}
