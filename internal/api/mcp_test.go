package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
func use(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (string, bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
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

func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	ours, theirs := b.newKey("default", true), b.newKey("mallory", true)
	b.key = ours
	c := b.create("c", "")
	b.add(c, scenario.Talk(3, 300)...)
	b.add(c, scenario.User("look at foo_bar/baz.go"), scenario.Assistant("it is fine"), scenario.User("go on"))
	head := b.send("GET", c, "").is(200).get("head_seq")
	b.send("POST", c+"/markers", `{"summary":`+scenario.User("THE SUMMARY")+`,"covers_to":`+
		fmt.Sprint(mustInt(t, head)-1)+`}`).is(201)

	for _, s := range []struct {
		name    string
		session *sdk.ClientSession
		args    map[string]any
	}{
		{"bound", b.agent(t, c+"/mcp", ours), map[string]any{}},
		{"free", b.agent(t, "/mcp", ours), map[string]any{"conversation": "c"}},
	} {
		with := func(more ...any) map[string]any {
			args := map[string]any{}
			for k, v := range s.args {
				args[k] = v
			}
			for i := 0; i < len(more); i += 2 {
				args[more[i].(string)] = more[i+1]
			}
			return args
		}
		tools, err := s.session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
			schema := fmt.Sprint(tool.InputSchema)
			if strings.Contains(schema, "conversation") != (s.name == "free") {
				t.Errorf("%s %s: %s", s.name, tool.Name, schema)
			}
		}
		slices.Sort(names)
		if want := "add_note last_summary list_segments read_messages read_segment search_transcript"; strings.Join(
			names, " ") != want {
			t.Errorf("%s: %v", s.name, names)
		}
		for _, tt := range []struct {
			tool   string
			args   map[string]any
			want   string
			failed bool
		}{
			{
				"search_transcript", with("query", "baz.go"),
				"(user, in segment_0001.md, offset 16, compacted): look at foo_bar/**baz.go**", false,
			},
			{"search_transcript", with("query", "unheardof"), "Nothing fits", false},
			{"search_transcript", with("query", "-x"), "invalid_request: query: ", true},
			{"search_transcript", with("query", "go", "cursor", "x"), "invalid_request: cursor: ", true},
			{"list_segments", with(), "- segment_0001.md: messages 1 to ", false},
			{"read_segment", with("name", "segment_0001.md"), "look at foo_bar/baz.go", false},
			{"read_segment", with("name", "INDEX.md"), "# Memory of conversation c", false},
			{"read_segment", with("name", "segment_0009.md"), "not_found: ", true},
			{"read_messages", with("from", 1, "max_bytes", 1024), "[It goes on: call again with from ", false},
			{"read_messages", with("from", 1, "to", 1), `<message seq="1" role="user">`, false},
			{"read_messages", with("from", 0), "invalid_request: from: ", true},
			{"read_messages", with("from", 999), "not_found: ", true},
			{"read_messages", with("from", 3, "to", 2), "invalid_request: to: ", true},
			{"read_messages", with("from", "one"), "from", true},
			{"last_summary", with(), "THE SUMMARY", false},
			{
				"add_note", with("text", "note of "+s.name, "name", s.name+".md"),
				"The note is kept as " + s.name + ".md.", false,
			},
			{"add_note", with("text", "other", "name", s.name+".md"), "conflict: ", true},
			{"add_note", with("text", "other", "name", s.name+".md", "replace", true), "holds this text now", false},
			{"add_note", with("text", "x", "name", "segment_0001.md"), "invalid_request: name: ", true},
			{"add_note", with("text", " "), "invalid_request: text: ", true},
			{"read_segment", with("name", s.name+".md"), "other", false},
		} {
			got, failed := use(t, s.session, tt.tool, tt.args)
			if failed != tt.failed || !strings.Contains(got, tt.want) {
				t.Errorf("%s: %s %v: failed %t: %s", s.name, tt.tool, tt.args, failed, got)
			}
		}
	}

	// Another tenant's key meets nothing, and neither does one without.
	stranger := b.agent(t, "/mcp", theirs)
	for tool, args := range map[string]map[string]any{
		"search_transcript": {"query": "look"}, "list_segments": {}, "read_segment": {"name": "segment_0001.md"},
		"read_messages": {"from": 1}, "last_summary": {}, "add_note": {"text": "x"},
	} {
		args["conversation"] = "c"
		if got, failed := use(t, stranger, tool, args); !failed || !strings.HasPrefix(got, "not_found: ") ||
			strings.Contains(got, "baz") {
			t.Errorf("%s: %s", tool, got)
		}
		delete(args, "conversation")
		if got, failed := use(t, stranger, tool, args); !failed || !strings.Contains(got, "conversation") {
			t.Errorf("%s without a conversation: %s", tool, got)
		}
	}
	for path, key := range map[string]string{c + "/mcp": theirs, "/mcp": "", "/v1/conversations/nope/mcp": ours} {
		if s, err := b.connect(t.Context(), path, key); err == nil {
			_ = s.Close()
			t.Errorf("%s let %q in", path, key)
		}
	}
	b.key = theirs
	b.send("POST", c+"/mcp", `{}`).fails(404, service.CodeNotFound)
	b.key = ""
	b.send("POST", "/mcp", `{}`).fails(401, codeUnauthorized)
	b.key = ours
	b.send("POST", "/mcp", `"`+strings.Repeat("x", maxMCPBody)+`"`).fails(413, service.CodeTooLarge)
	if got := b.send("GET", "/mcp", "", "Accept", "text/event-stream"); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET is %d", got.status)
	}
	if strings.Contains(b.log.String(), `"level":"ERROR"`) {
		t.Errorf("%s", b.log.String())
	}
}

func mustInt(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
