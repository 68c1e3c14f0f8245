package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMentionsOf(t *testing.T) {
	t.Parallel()
	messages := numbered(
		textMessage(RoleUser, "Fix the parser in src/parse.go. Never touch "+
			"vendor/lib.go!\n<system-reminder>Always greet.</system-reminder>"),
		callMessage("I look at `parseDate`, it takes 30 ms.", "a", "Read",
			`{"file_path":"src/parse.go","limit":50,"order_id":"ORD-4711"}`),
		resultMessage("a", "only here: docs/never_used.md"),
		textMessage(RoleUser, "Fix the parser in src/parse.go."),
	)
	var got []string
	for _, m := range mentionsOf(nil, messages) {
		got = append(got, fmt.Sprintf("%d %s %s", m.Seq, m.Kind, m.Text))
	}
	want := []string{
		"1 intent Fix the parser in src/parse.go.", "1 constraint Never touch vendor/lib.go!", "1 path src/parse.go",
		"1 path vendor/lib.go", "2 number 30 ms", "2 identifier parseDate", "2 identifier ORD-4711",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMentionedIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind     MentionKind
		text, in string
		want     bool
	}{
		{MentionConstraint, "Never push to main.", "- never  push\n  to main. More", true},
		{MentionConstraint, "Never push to main.", "push to main", false},
		{MentionConstraint, "Never:\n- push\n- pull", "He said never:\n  - push\n  - pull", true},
		{MentionIntent, `Say "hello" now`, `{"text":"Say \"hello\" now"}`, true},
		{MentionIntent, "Close the <message> tag", "Close the &lt;message> tag", true},
		{MentionPath, "src/a.go", "see src/a.go:12", true},
		{MentionPath, "src/a.go", "see src/b.go", false},
		{MentionNumber, "5 MB", "took 5MB", true},
		{MentionIdentifier, `C:\x\y`, `{"p":"C:\\x\\y"}`, true},
		{MentionTask, "Write the tests", "## Open todos\n- Write the tests", true},
	} {
		if got := mentionedIn(nil, []Mention{{Kind: tt.kind, Text: tt.text}}, "before", tt.in)[0]; got != tt.want {
			t.Errorf("%s %q in %q: %t", tt.kind, tt.text, tt.in, got)
		}
	}
}

func TestOpenTasks(t *testing.T) {
	t.Parallel()
	older := callMessage("", "a", "TodoWrite", `{"todos":[{"content":"old","status":"pending"}]}`)
	for _, tt := range []struct {
		name, tool, input string
		want              []string
		listed            bool
	}{
		{"Claude Code", "TodoWrite", `{"todos":[{"content":"A","status":"completed"},{"content":"B",` +
			`"status":"in_progress"},{"content":"C","status":"pending"}]}`, []string{"B", "C"}, true},
		{"Codex", "update_plan", `{"plan":[{"step":"A","status":"pending"}]}`, []string{"A"}, true},
		{"all done", "TodoWrite", `{"todos":[{"content":"A","status":"completed"}]}`, nil, true},
		{"emptied", "TodoWrite", `{"todos":[]}`, nil, true},
		{"another tool", "Write", `{"todos":[{"content":"A","status":"pending"}]}`, []string{"old"}, true},
		{"damaged", "TodoWrite", `{"todos":`, []string{"old"}, true},
		{"no list", "update_plan", `{"explanation":"x"}`, []string{"old"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			open, listed := openTasks(nil, []Message{older, callMessage("", "b", tt.tool, tt.input)})
			if !slices.Equal(open, tt.want) || listed != tt.listed {
				t.Errorf("got %q, %t", open, listed)
			}
		})
	}
	if open, listed := openTasks(nil, []Message{textMessage(RoleUser, "todo: nothing")}); listed || open != nil {
		t.Errorf("without a list: %q, %t", open, listed)
	}
}

// Every mention of messages is found in these messages.
func TestMentionsAreInTheirSource(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		messages := genMessages(6).Draw(t, "messages")
		var all strings.Builder
		for _, m := range messages {
			all.WriteString(RenderMessage(m) + "\n")
		}
		mentions := mentionsOf(nil, messages)
		for i, there := range mentionedIn(nil, mentions, all.String()) {
			if m := mentions[i]; !there && (m.Kind == MentionConstraint || m.Kind == MentionIntent) &&
				!strings.Contains(all.String(), "[binary omitted") {
				t.Fatalf("%s %q is not in %q", m.Kind, m.Text, all.String())
			}
		}
	})
}
