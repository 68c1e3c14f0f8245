package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"precis"
	"precis/internal/cli/fail"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// precisCommand returns the precis command as a user would start it. It runs the binary of this test under that name.
func precisCommand(t *testing.T, s *scenario.System, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"precis"}, args...)
	cmd.Env = append(os.Environ(), "PRECIS_DATABASE_URL="+s.Config.DatabaseURL, "PRECIS_DIR="+t.TempDir())
	stderr := &bytes.Buffer{}
	cmd.Stderr = stderr
	return cmd, stderr
}

// An agent's client starts `precis mcp`, and reads back what a compaction by a real run has covered.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	s := scenario.New(
		t, vendorserver.Script{Default: &vendorserver.Answer{Text: "<summary>The parts were read one by " +
			"one.</summary>"}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Window:   20_000,
		Messages: append([]string{scenario.User("remember foo_bar/baz.go:17")}, scenario.Turns(4, 400)...),
	})
	if run := s.Compact(ref, runs.Request{}); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s\n%s", run.Reason, s.Attempts(run))
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	cmd, stderr := precisCommand(t, s, "mcp", "--conversation", ref.ID)
	session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second},
		nil)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if got := session.InitializeResult(); got.ServerInfo.Name != "precis" ||
		!strings.Contains(got.Instructions, "search_transcript") {
		t.Errorf("%+v", got)
	}
	for _, tt := range []struct {
		tool   string
		args   map[string]any
		want   string
		failed bool
	}{
		{
			"search_transcript",
			map[string]any{"query": "baz.go:17"},
			"message 1 (user, in segment_0001.md, offset 17, compacted): remember foo_bar/**baz.go:17**", false,
		},
		{"read_segment", map[string]any{"name": "segment_0001.md"}, "remember foo_bar/baz.go:17", false},
		{
			"read_messages",
			map[string]any{"from": 1, "to": 1},
			"<message seq=\"1\" role=\"user\">\nremember foo_bar/baz.go:17\n</message>", false,
		},
		{"last_summary", map[string]any{}, "The parts were read one by one.", false},
		{"add_note", map[string]any{"text": "line 17 matters"}, "note_0001.md", false},
		{"list_segments", map[string]any{}, "- note_0001.md: 15 bytes", false},
		{"read_segment", map[string]any{"name": "nope"}, "not_found: ", true},
	} {
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tt.tool, Arguments: tt.args})
		if err != nil {
			t.Fatal(err)
		}
		text, ok := r.Content[0].(*sdk.TextContent)
		if !ok || r.IsError != tt.failed || !strings.Contains(text.Text, tt.want) {
			t.Errorf("%s: failed %t: %+v", tt.tool, r.IsError, r.Content[0])
		}
	}
	if err := session.Close(); err != nil {
		t.Errorf("precis mcp ended with %v: %s", err, stderr)
	}
	if stderr.Len() > 0 {
		t.Errorf("unexpected standard error: %s", stderr)
	}

	cmd, stderr = precisCommand(t, s, "mcp", "--conversation", "nope")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != fail.ExitFailed ||
		!strings.Contains(stderr.String(), `there is no conversation "nope"`) {
		t.Errorf("%v: %s", err, stderr)
	}
	cmd, stderr = precisCommand(t, s, "--tenant", "mallory", "mcp", "--conversation", ref.ID)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != fail.ExitFailed ||
		!strings.Contains(stderr.String(), "there is no conversation") {
		t.Errorf("another tenant: %v: %s", err, stderr)
	}
}
