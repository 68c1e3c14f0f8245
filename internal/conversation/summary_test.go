package conversation

import (
	"encoding/json"
	"testing"

	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
)

// The pointer names tools only where the agent has them, and says nothing where nothing is kept.
func TestMemoryHint(t *testing.T) {
	t.Parallel()
	tail := []conversations.Message{{Seq: 7}}
	for _, tt := range []struct {
		name, tools string
		ephemeral   bool
		want        string
	}{
		{"no tools", ``, false, "messages 1 to 7, over the API of precis: GET " +
			"/v1/conversations/a%2Fb/segments/INDEX.md, and …/search with q=WORDS."},
		{"other tools", `[{"name":"read","description":"search_transcript"}]`, false, "messages 1 to 7, over the " +
			"API of precis: GET /v1/conversations/a%2Fb/segments/INDEX.md, and …/search with q=WORDS."},
		{"ours", `[{"name":"search_transcript"}]`, false, "conversation a/b, messages 1 to 7. Find what was said " +
			"with search_transcript, read it with read_messages or read_segment (INDEX.md)."},
		{
			"ours, named by the client", `[{"type":"function","function":{"name": "mcp__precis__search_transcript"}}]`,
			false, "conversation a/b, messages 1 to 7. Find what was said with mcp__precis__search_transcript, " +
				"read it with mcp__precis__read_messages or mcp__precis__read_segment (INDEX.md).",
		},
		{"nothing is kept", `[{"name":"search_transcript"}]`, true, ""},
	} {
		v := View{Source: contexts.Source{Tail: tail, Conversation: conversations.Conversation{
			Ref: store.ConversationRef{Tenant: "t", ID: "a/b"}, Tools: json.RawMessage(tt.tools),
			Ephemeral: tt.ephemeral,
		}}}
		if got := v.MemoryHint(); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
