package memory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/memory"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/internal/store/schema"
	"precis/internal/store/segments"
	"precis/internal/testkit/stacktest"
	"precis/pipeline/transcript"
)

// The statistics of a library of the vendors' run as long as the program.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(stacktest.Main{M: m}, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func newMemory(t testing.TB) memory.Memory {
	t.Helper()
	m, _ := open(t)
	return m
}

// open gives a memory on a schema of its own, and the URL for a look past it.
func open(t testing.TB) (memory.Memory, string) {
	t.Helper()
	url := stacktest.DatabaseURL(t)
	if err := schema.Migrate(t.Context(), url, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return memory.Memory{Store: s}, url
}

func create(t testing.TB, m memory.Memory, id string) store.ConversationRef {
	t.Helper()
	c, _, err := m.Store.Conversations.Create(t.Context(), store.DefaultTenant,
		conversations.NewConversation{ID: id, Format: string(transcript.OpenAI)})
	if err != nil {
		t.Fatal(err)
	}
	return c.Ref
}

func add(t testing.TB, m memory.Memory, ref store.ConversationRef, natives ...string) {
	t.Helper()
	codec, err := transcript.CodecFor(transcript.OpenAI)
	if err != nil {
		t.Fatal(err)
	}
	var list []conversations.NewMessage
	for _, n := range natives {
		d, err := codec.Decode([]byte(n))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, conversation.Stored(d))
	}
	if _, err := m.Store.Changes.Append(t.Context(), ref, list, changes.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

// compacted covers everything up to a message.
func compacted(t testing.TB, m memory.Memory, ref store.ConversationRef, upTo int64) markers.Marker {
	t.Helper()
	marker, err := m.Store.Markers.Report(t.Context(), ref,
		markers.Reported{Origin: markers.OriginAgent, CoversTo: upTo, Summary: []byte("SUMMARY")})
	if err != nil {
		t.Fatal(err)
	}
	return marker
}

func said(role, text string) string {
	b, err := json.Marshal(map[string]string{"role": role, "content": text})
	if err != nil {
		panic(err) // strings
	}
	return string(b)
}

func call(name, args string) string {
	a, err := json.Marshal(args)
	if err != nil {
		panic(err) // a string
	}
	return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{`+
		`"name":%q,"arguments":%s}}]}`, name, a)
}

func result(text string) string {
	b, err := json.Marshal(map[string]string{"role": "tool", "tool_call_id": "c1", "content": text})
	if err != nil {
		panic(err) // strings
	}
	return string(b)
}

func read(t testing.TB, m memory.Memory, ref store.ConversationRef, name string) string {
	t.Helper()
	_, text, err := m.Read(t.Context(), ref, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func names(entries []wire.MemoryEntry) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Name)
	}
	return strings.Join(list, " ")
}

func list(t testing.TB, m memory.Memory, ref store.ConversationRef) []wire.MemoryEntry {
	t.Helper()
	entries, err := m.Entries(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// note writes a note.
func note(t testing.TB, m memory.Memory, ref store.ConversationRef, n segments.NewNote) {
	t.Helper()
	if _, _, err := m.Store.Segments.PutNote(t.Context(), ref, n); err != nil {
		t.Fatal(err)
	}
}
