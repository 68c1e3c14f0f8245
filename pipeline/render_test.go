package pipeline

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRenderMessage(t *testing.T) {
	t.Parallel()
	m := Message{Role: RoleAssistant, Parts: []Part{
		{Kind: PartReasoning, Text: "I should look first"},
		{Kind: PartText, Text: "Let me look."},
		{Kind: PartToolCall, CallID: "a", Name: "Read", Input: `{"file_path":"main.go"}`},
		{Kind: PartToolResult, CallID: "a", IsError: true, Content: []Part{
			{Kind: PartText, Text: "no such file"},
			{Kind: PartImage, Bytes: 141_312},
		}},
		{Kind: PartImage, Bytes: 600},
		{Kind: PartImage},
		{Kind: PartFile, Name: "plan.pdf", Bytes: 90_000},
		{Kind: PartFile, Name: "notes.txt", Text: "remember"},
		{Kind: PartText, Text: " \n "},
		{Kind: PartOpaque, Type: "novelty", Raw: []byte(`{"type":"novelty"}`)},
		{Kind: PartText, Text: "shot: data:image/png;base64," + png(2048)},
	}}
	want := `Let me look.
[call Read] {"file_path":"main.go"}
[result, an error] no such file
[binary omitted: ~138 KB]
[binary omitted: ~1 KB]
[binary omitted]
[file plan.pdf] [binary omitted: ~88 KB]
remember
shot: data:image/png;base64,[binary omitted: ~2 KB]`
	if got := RenderMessage(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := RenderMessage(Message{Role: RoleAssistant, Parts: []Part{{Kind: PartReasoning, Text: "hm"}}}); got != "" {
		t.Errorf("reasoning alone gives %q", got)
	}
}

func TestEscapeTags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"a < b && c > d", "a < b && c > d"},
		{"<div><Message/></div>", "<div>&lt;Message/></div>"},
		{"</message>", "&lt;/message>"},
		{"< /\n message >", "&lt; /\n message >"},
		{"<<message>", "<&lt;message>"},
		{"<mess", "<mess"},
		{"x</conversation_summary>y</quote>", "x&lt;/conversation_summary>y</quote>"},
		{"<user_query>hi</user_query>", "<user_query>hi</user_query>"},
		{"https://example.org/?a=1&b=<c>", "https://example.org/?a=1&b=<c>"},
	} {
		if got := escapeTags(tt.in); got != tt.want {
			t.Errorf("escapeTags(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := genText().Draw(t, "s")
		got := escapeTags(s)
		if opening.MatchString(got) || closing.MatchString(got) {
			t.Fatalf("a tag is left in %q", got)
		}
		if escapeTags(got) != got {
			t.Fatalf("escaped twice, %q changes", got)
		}
		if strings.ReplaceAll(got, "&lt;", "<") != strings.ReplaceAll(s, "&lt;", "<") {
			t.Fatalf("more than the escapes changed in %q", got)
		}
	})
}

func TestSummaryBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"plain", "plain"},
		{"<conversation_summary>\nfirst\n</conversation_summary>\n\nGo on.", "first"},
		{"<conversation_summary>\na </conversation_summary> b\n</conversation_summary>", "a </conversation_summary> b"},
		{"<conversation_summary>\ncut", "cut"},
		{" \n", ""},
	} {
		if got := summaryBody(tt.in); got != tt.want {
			t.Errorf("summaryBody(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
