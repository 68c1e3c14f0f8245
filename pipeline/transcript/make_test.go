package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// A makeCase is a message that the pipeline makes in a format, or the error that refuses it.
type makeCase struct {
	format transcript.Format
	made   pipeline.Made
	out    string
	err    string
}

// A message that the pipeline makes is read back with its role, or is refused.
func TestMake(t *testing.T) {
	t.Parallel()
	for _, c := range makeCases {
		t.Run(fmt.Sprintf("%s/%s %s %.10q", c.format, c.made.Role, c.made.Type, c.made.Text), func(t *testing.T) {
			t.Parallel()
			codec := codecOf(t, c.format)
			out, err := codec.Make(c.made)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := c.out
			if c.format == transcript.ClaudeCode { // its uuid is a hash: only that it is the same every time matters
				want = want[:strings.LastIndex(want, `"uuid"`)]
				out = out[:min(len(out), len(want))]
			}
			if diff := cmp.Diff(want, string(out)); diff != "" {
				t.Errorf("the message differs (-want +got):\n%s", diff)
			}
			again, err := codec.Make(c.made)
			if err != nil || !bytes.HasPrefix(again, out) || !json.Valid(again) {
				t.Errorf("made again: %v: %s", err, again)
			}
			m, err := codec.Decode(again)
			if err != nil || m.Role != c.made.Role {
				t.Errorf("read back it has role %q: %v", m.Role, err)
			}
		})
	}
}

// The id of an entry of Gemini CLI is a hash of its content.
func TestMakeNamesEntriesByTheirContent(t *testing.T) {
	t.Parallel()
	codec := codecOf(t, transcript.GeminiCLI)
	one, err := codec.Make(madeQuoted)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := codec.Make(madeQuoted)
	if !bytes.Equal(one, two) || !bytes.HasSuffix(one, []byte(`,"type":"user","content":[{"text":"S \"x\""}]}`)) {
		t.Errorf("got %s and %s", one, two)
	}
}

// A message that the pipeline makes is read back unchanged, or is refused.
func TestMakeOfAgents(t *testing.T) {
	t.Parallel()
	made := []pipeline.Made{
		{
			Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
			Text: "<conversation_summary>\nall\n</conversation_summary>",
		},
		{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: `todo: "x"`},
		{Role: pipeline.RoleUser, Text: "summarise"},
		{Role: pipeline.RoleTool, CallID: "t1", Name: "n", Text: "none", IsError: true},
		{Role: pipeline.RoleTool, CallID: "t1", Name: "n", Text: "some"},
		{Role: pipeline.RoleSystem, Text: "be brief"},
		{Role: pipeline.RoleAssistant, Text: "said"},
		{Role: pipeline.RoleUser, Text: " \n"},
	}
	var b strings.Builder
	for _, f := range []transcript.Format{
		transcript.Vercel, transcript.LangChain, transcript.OpenCode, transcript.Pi,
		transcript.OpenHands, transcript.Roo, transcript.Kimi, transcript.Cursor, transcript.Copilot, transcript.ADK,
		transcript.MSAgent,
	} {
		codec, err := transcript.CodecFor(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made {
			out, err := codec.Make(m)
			b.WriteString(string(f) + " " + string(m.Role) + "/" + string(m.Kind) + " ")
			if err != nil {
				b.WriteString("refused: " + err.Error() + "\n")
				continue
			}
			b.WriteString(string(out) + "\n")
			if again, _ := codec.Make(m); !bytes.Equal(out, again) {
				t.Errorf("%s: made twice: %s and %s", f, out, again)
			}
			if out == nil {
				continue // the format cannot hold it
			}
			back, err := codec.Decode(out)
			switch {
			case !json.Valid(out) || err != nil || back.Role != m.Role:
				t.Errorf("%s: read back it has role %q: %v: %s", f, back.Role, err, out)
			case m.Role == pipeline.RoleTool &&
				(back.Parts[0].CallID != m.CallID || back.Parts[0].IsError != m.IsError && f != transcript.Kimi):
				t.Errorf("%s: read back it is another result: %+v", f, back.Parts[0])
			case m.Role == pipeline.RoleTool && back.Parts[0].Content[0].Text != m.Text:
				t.Errorf("%s: read back it says %q", f, back.Parts[0].Content[0].Text)
			}
		}
	}
	golden(t, "make-agents.out", b.String())
}
