package transcript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

func TestConvertFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		to   transcript.Format
	}{
		{"claude-code/turns.jsonl", transcript.Anthropic},
		{"claude-code/turns.jsonl", transcript.OpenAI},
		{"claude-code/kinds.jsonl", transcript.Anthropic},
		{"anthropic/request.json", transcript.OpenAI},
		{"openai/request.json", transcript.Anthropic},
		{"openai/mini-swe.traj.json", transcript.Anthropic},
	} {
		t.Run(c.path+" to "+string(c.to), func(t *testing.T) {
			t.Parallel()
			conv := readFile(t, filepath.Join("testdata", c.path)).Conversations[0]
			out, err := convert.Conversation(conv.Meta, contextOf(conv.Messages), c.to)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "system %s\ntools %s\nenvelope %s\n", out.Meta.System, out.Meta.Tools, out.Meta.Envelope)
			codec, _ := transcript.CodecFor(c.to)
			for _, m := range out.Messages {
				fmt.Fprintf(&b, "%s\n", m)
				if _, err := codec.Decode(m); err != nil {
					t.Errorf("%v: %s", err, m)
				}
			}
			for _, l := range out.Losses {
				fmt.Fprintf(&b, "loss of %s, item %d: %s\n", l.What, l.Item, l.Why)
			}
			golden(t, c.path+"."+string(c.to)+".out", b.String())
		})
	}
}

// All conversions between the APIs' formats, on small files written by hand: the output equals the golden file, and
// is a request that its vendor takes.
func TestConvertBetweenAPIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		to   []transcript.Format
	}{
		{"anthropic/request.json", []transcript.Format{transcript.OpenAIResponses, transcript.Google}},
		{"openai/request.json", []transcript.Format{transcript.OpenAIResponses, transcript.Google}},
		{
			"openai-responses/request.json",
			[]transcript.Format{transcript.Anthropic, transcript.OpenAI, transcript.Google},
		},
		{
			"openai-responses/vendor-tools.json",
			[]transcript.Format{transcript.Anthropic, transcript.OpenAI, transcript.Google},
		},
		{"google/request.json", []transcript.Format{
			transcript.Anthropic, transcript.OpenAI,
			transcript.OpenAIResponses,
		}},
		{"codex/session.jsonl", []transcript.Format{
			transcript.OpenAIResponses, transcript.Anthropic, transcript.OpenAI,
			transcript.Google,
		}},
		{"gemini-cli/session.json", []transcript.Format{
			transcript.Google, transcript.Anthropic, transcript.OpenAI,
			transcript.OpenAIResponses,
		}},
		{"claude-stream-json/tools.jsonl", []transcript.Format{transcript.Anthropic, transcript.OpenAIResponses}},
		{"claude-code/turns.jsonl", []transcript.Format{transcript.OpenAIResponses, transcript.Google}},
		{"langchain/dumpd.json", []transcript.Format{transcript.OpenAIResponses, transcript.Google}},
	} {
		for _, to := range c.to {
			t.Run(c.path+" to "+string(to), func(t *testing.T) {
				t.Parallel()
				convertsTo(t, c.path, to)
			})
		}
	}
}

// convertsTo compares a conversion with its golden file, and validates the written request for its vendor.
func convertsTo(t *testing.T, path string, to transcript.Format) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conv := file.Conversations[0]
	context := must(pipeline.BuildContext(t.Context(), pipeline.ContextInput{
		Live: conv.Messages, Settings: pipeline.DefaultSettings(), Vendor: string(conv.Format.API()),
	}))
	out, err := convert.Conversation(conv.Meta, context.Items, to)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "system %s\ntools %s\nenvelope %s\n", out.Meta.System, out.Meta.Tools,
		out.Meta.Envelope)
	for _, m := range out.Messages {
		fmt.Fprintf(&b, "%s\n", bytes.ReplaceAll(m, []byte("\n"), []byte("⏎")))
	}
	for _, l := range out.Losses {
		fmt.Fprintf(&b, "loss of %s, item %d: %s\n", l.What, l.Item, l.Why)
	}
	golden(t, path+"."+string(to)+".out", b.String())

	var written bytes.Buffer
	if _, err := convert.WriteFile(&written, to,
		transcript.Output{Meta: conv.Meta, Items: context.Items}); err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		if target.format != to {
			continue
		}
		if err := target.validate(written.Bytes()); err != nil {
			t.Errorf("%v:\n%s", err, written.Bytes())
		}
	}
	if path != "anthropic/request.json" { // has what the vendor ran, which is left out
		pairsStay(t, "written", context, written.Bytes(), to)
	}
}
