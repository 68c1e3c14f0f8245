package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"precis/internal/contract"
	"precis/internal/service"
	"precis/internal/testkit/scenario"
)

// keyed sends a key with every request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(k))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// agent is an MCP client of the SDK's, connected to a path of the server.
func (b *bench) agent(t *testing.T, path, key string) *sdk.ClientSession {
	t.Helper()
	session, err := b.connect(t.Context(), path, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func (b *bench) connect(ctx context.Context, path, key string) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	return client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint:   b.url + path,
		HTTPClient: &http.Client{Transport: keyed(key)}, MaxRetries: -1,
	}, nil)
}

// use calls a tool and gives its text, and whether it failed.
func use(t *testing.T, s *sdk.ClientSession, tool string, args arguments) (string, bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: map[string]any(args)})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var b strings.Builder
	for _, c := range r.Content {
		text, ok := c.(*sdk.TextContent)
		if !ok {
			t.Fatalf("%s: %T", tool, c)
		}
		b.WriteString(text.Text)
	}
	return b.String(), r.IsError
}

// arguments are those of a tool call.
type arguments map[string]any

// TestMCPOverHTTP calls every tool at the two paths: that of one conversation, and that of all.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	ours, theirs := b.newKey("default", true), b.newKey("mallory", true)
	b.key = ours
	c := b.create("c", "")
	b.add(c, scenario.Turns(3, 300)...)
	b.add(c, scenario.User("look at foo_bar/baz.go"), scenario.Assistant("it is fine"), scenario.User("go on"))
	head := b.send("GET", c, "").is(200).get("head_seq")
	b.send("POST", c+"/markers", `{"summary":`+scenario.User("THE SUMMARY")+`,"covers_to":`+
		fmt.Sprint(mustInt(t, head)-1)+`}`).is(201)

	t.Run("OneConversation", func(t *testing.T) {
		session := b.agent(t, c+"/mcp", ours)
		checkTools(t, session, false)
		callTools(t, session, arguments{}, "bound.md")
	})
	t.Run("AllConversations", func(t *testing.T) {
		session := b.agent(t, "/mcp", ours)
		checkTools(t, session, true)
		callTools(t, session, arguments{"conversation": "c"}, "free.md")
	})
	t.Run("OtherTenant", func(t *testing.T) { callToolsOfOthers(t, b.agent(t, "/mcp", theirs)) })
	t.Run("Refused", func(t *testing.T) {
		b := b.on(t)
		for path, key := range map[string]string{
			c + "/mcp": theirs, "/mcp": "", "/v1/conversations/nope/mcp": ours,
		} {
			if s, err := b.connect(t.Context(), path, key); err == nil {
				_ = s.Close()
				t.Errorf("%s accepts key %q", path, key)
			}
		}
		b.key = theirs
		b.send("POST", c+"/mcp", `{}`).fails(404, service.CodeNotFound)
		b.key = ""
		b.send("POST", "/mcp", `{}`).fails(401, codeUnauthorized)
		b.key = ours
		b.send("POST", "/mcp", `"`+strings.Repeat("x", contract.MaxMCPBody)+`"`).fails(413, service.CodeTooLarge)
		b.send("GET", "/mcp", "", "Accept", "text/event-stream").is(http.StatusMethodNotAllowed)
	})
	if strings.Contains(b.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has an error: %s", b.log.String())
	}
}

// checkTools checks which tools there are, and whether each call names its conversation.
func checkTools(t *testing.T, s *sdk.ClientSession, named bool) {
	t.Helper()
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range tools.Tools {
		got = append(got, tool.Name)
		if schema := fmt.Sprint(tool.InputSchema); strings.Contains(schema, "conversation") != named {
			t.Errorf("the input of %s is %s", tool.Name, schema)
		}
	}
	slices.Sort(got)
	want := []string{
		"add_note", "last_summary", "list_segments", "read_messages", "read_segment", "search_transcript",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// callTools calls each tool with the arguments that name the conversation, and writes a note.
func callTools(t *testing.T, s *sdk.ClientSession, conversation arguments, note string) {
	t.Helper()
	for _, call := range []struct {
		tool   string
		args   arguments
		want   string
		failed bool
	}{
		{
			"search_transcript",
			arguments{"query": "baz.go"},
			"(user, in segment_0001.md, offset 16, compacted): look at foo_bar/**baz.go**", false,
		},
		{"search_transcript", arguments{"query": "unheardof"}, "Nothing matches", false},
		{"search_transcript", arguments{"query": "-x"}, "invalid_request: query: ", true},
		{"search_transcript", arguments{"query": "go", "cursor": "x"}, "invalid_request: cursor: ", true},
		{"list_segments", nil, "- segment_0001.md: messages 1 to ", false},
		{"read_segment", arguments{"name": "segment_0001.md"}, "look at foo_bar/baz.go", false},
		{"read_segment", arguments{"name": "INDEX.md"}, "# Memory of conversation c", false},
		{"read_segment", arguments{"name": "segment_0009.md"}, "not_found: ", true},
		{"read_messages", arguments{"from": 1, "max_bytes": 1024}, "[More follows: call again with from ", false},
		{"read_messages", arguments{"from": 1, "to": 1}, `<message seq="1" role="user">`, false},
		{"read_messages", arguments{"from": 0}, "invalid_request: from: ", true},
		{"read_messages", arguments{"from": 999}, "not_found: ", true},
		{"read_messages", arguments{"from": 3, "to": 2}, "invalid_request: to: ", true},
		{"read_messages", arguments{"from": "one"}, "from", true},
		{"last_summary", nil, "THE SUMMARY", false},
		{"add_note", arguments{"text": "a note", "name": note}, "The note was saved as " + note + ".", false},
		{"add_note", arguments{"text": "other", "name": note}, "conflict: ", true},
		{"add_note", arguments{"text": "other", "name": note, "replace": true}, "now has this text", false},
		{"add_note", arguments{"text": "x", "name": "segment_0001.md"}, "invalid_request: name: ", true},
		{"add_note", arguments{"text": " "}, "invalid_request: text: ", true},
		{"read_segment", arguments{"name": note}, "other", false},
	} {
		args := maps.Clone(conversation)
		maps.Copy(args, call.args)
		got, failed := use(t, s, call.tool, args)
		if failed != call.failed || !strings.Contains(got, call.want) {
			t.Errorf("%s %v: failed %t with %q, want failed %t with %q", call.tool, args, failed, got, call.failed,
				call.want)
		}
	}
}

// callToolsOfOthers calls each tool for a conversation of another tenant, and for none.
func callToolsOfOthers(t *testing.T, s *sdk.ClientSession) {
	t.Helper()
	for tool, args := range map[string]arguments{
		"search_transcript": {"query": "look"}, "list_segments": {}, "read_segment": {"name": "segment_0001.md"},
		"read_messages": {"from": 1}, "last_summary": {}, "add_note": {"text": "x"},
	} {
		if got, failed := use(t, s, tool, args); !failed || !strings.Contains(got, "conversation") {
			t.Errorf("%s without a conversation: %s", tool, got)
		}
		args["conversation"] = "c"
		got, failed := use(t, s, tool, args)
		if !failed || !strings.HasPrefix(got, "not_found: ") || strings.Contains(got, "baz") {
			t.Errorf("%s for a conversation of another tenant: %s", tool, got)
		}
	}
}

func mustInt(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
