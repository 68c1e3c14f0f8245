package transcript_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// An editCase is a message of a format, edits, and the bytes that they leave.
type editCase struct {
	name   string
	format transcript.Format
	in     string
	edits  []pipeline.Edit
	out    string
}

// Edits change only the values that they name.
func TestEncodeWithEdits(t *testing.T) {
	t.Parallel()
	for _, c := range editCases {
		t.Run(string(c.format)+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			codec := codecOf(t, c.format)
			m, err := codec.Decode([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			out, err := codec.Encode(m, c.edits)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.out, string(out)); diff != "" {
				t.Errorf("the edited message differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.in, string(m.Native)); diff != "" {
				t.Errorf("Encode changed the message itself (-want +got):\n%s", diff)
			}
			again, err := codec.Encode(m, nil)
			if diff := cmp.Diff(c.in, string(again)); err != nil || diff != "" {
				t.Errorf("encoded without edits the message differs: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestEditsThatCannotBe(t *testing.T) {
	t.Parallel()
	in := `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use",` +
		`"id":"t","name":"n","input":{}}]}`
	m, err := codecOf(t, transcript.Anthropic).Decode([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit pipeline.Edit
		err  string
	}{
		{replace(2, -1, "x"), "names part 2 of a message with 2"},
		{replace(0, 0, "x"), "names content 0 of a part with 0"},
		{replace(0, -1, "x"), "reasoning is kept as it is or dropped"},
		{replace(1, -1, "x"), "must be a JSON object"},
		{replace(1, -1, `[1]`), "must be a JSON object"},
		{pipeline.Edit{Part: 1, Content: -1, Op: "paint"}, `unknown edit "paint"`},
	} {
		if _, err := codecOf(t, transcript.Anthropic).Encode(m, []pipeline.Edit{c.edit}); err == nil ||
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v; want %q", c.edit, err, c.err)
		}
	}
}

// Where an API has an object for an input, no other text can replace it.
func TestInputsThatMustBeObjects(t *testing.T) {
	t.Parallel()
	codec := codecOf(t, transcript.OpenAIResponses)
	m, err := codec.Decode([]byte(`{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = codec.Encode(m, []pipeline.Edit{replace(0, -1, "ls")})
	if err == nil || !strings.Contains(err.Error(), "must be a JSON object") {
		t.Errorf("got %v", err)
	}
}

// Every edit yields a valid message, and values that it does not name keep their bytes.
func TestEditsLeaveTheRestAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(transcript.Formats()).Draw(t, "format")
		codec, _ := transcript.CodecFor(f)
		native := drawMessage(f).Draw(t, "message")
		m, err := codec.Decode(native)
		if err != nil {
			t.Fatalf("%v: %s", err, native)
		}
		edits := drawEdits(m).Draw(t, "edits")
		out, err := codec.Encode(m, edits)
		if err != nil {
			t.Fatal(err)
		}
		touched, gone := map[int]bool{}, map[int]bool{}
		dropped := 0
		for i := range m.Parts {
			last := -1
			for k, e := range edits {
				if e.Part == i && e.Content < 0 {
					last = k
				}
				touched[i] = touched[i] || e.Part == i
			}
			gone[i] = last >= 0 && (edits[last].Op == pipeline.EditDrop || edits[last].Text == "" &&
				m.Parts[i].Kind != pipeline.PartToolResult)
			// If a call and its result are one entry, dropping the call removes the result.
			if f == transcript.OpenCode && i > 0 && m.Parts[i].Kind == pipeline.PartToolResult && gone[i-1] {
				gone[i], touched[i] = true, true
			}
			if gone[i] {
				dropped++
			}
		}
		if dropped == len(m.Parts) {
			if len(m.Parts) > 0 && out != nil {
				t.Fatalf("nothing is left, yet there is %s", out)
			}
			return
		}
		back, err := codec.Decode(out)
		if err != nil {
			t.Fatalf("%v edits %+v of\n%s\ngave\n%s", err, edits, native, out)
		}
		if len(back.Parts) != len(m.Parts)-dropped {
			t.Fatalf("%d parts less %d are %d: edits %+v of\n%s\ngave\n%s", len(m.Parts), dropped, len(back.Parts),
				edits, native, out)
		}
		for i, p := range m.Parts {
			if !touched[i] && !slices.ContainsFunc(back.Parts,
				func(q pipeline.Part) bool { return bytes.Equal(p.Raw, q.Raw) && p.Text == q.Text }) {
				t.Fatalf("part %d was not named and is gone: edits %+v of\n%s\ngave\n%s", i, edits, native, out)
			}
		}
	})
}

func drawEdits(m pipeline.Message) *rapid.Generator[[]pipeline.Edit] {
	one := rapid.Custom(func(t *rapid.T) pipeline.Edit {
		e := pipeline.Edit{Part: rapid.IntRange(0, len(m.Parts)-1).Draw(t, "part"), Content: -1, Op: pipeline.EditDrop}
		p := m.Parts[e.Part]
		if len(p.Content) > 0 && rapid.Bool().Draw(t, "inside") {
			e.Content = rapid.IntRange(0, len(p.Content)-1).Draw(t, "content")
			p = p.Content[e.Content]
		}
		if p.Kind != pipeline.PartReasoning && rapid.Bool().Draw(t, "replace") {
			e.Op, e.Text = pipeline.EditReplace, rapid.SampledFrom([]string{"x", "<a>\n\"", ""}).Draw(t, "text")
			if p.Kind == pipeline.PartToolCall {
				e.Text = `{"short":true}`
			}
		}
		return e
	})
	if len(m.Parts) == 0 {
		return rapid.Just([]pipeline.Edit(nil))
	}
	return rapid.SliceOfN(one, 1, 4)
}
