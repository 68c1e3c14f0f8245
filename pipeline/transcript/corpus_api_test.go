package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// apiCorpus are the sections of the collection whose files are of these formats, and the format of each file.
var apiCorpus = map[string]map[string]transcript.Format{
	"openai-responses":         {"responses-thinking-tools.json": transcript.OpenAIResponses},
	"codex-rollout-jsonl":      {"": transcript.Codex},
	"gemini-cli":               {"": transcript.GeminiCLI},
	"gemini-compression-evals": {"": transcript.GeminiCLI},
	"provider-compaction":      {"openai-responses-compact.json": transcript.OpenAIResponses, "": transcript.Anthropic},
	"claude-stream-json":       {"": transcript.ClaudeStream},
}

// Files for which the index counts differently from the reader, and why.
var apiCounted = map[string]struct {
	figures
	why string
}{
	"responses-thinking-tools.json": {
		figures{calls: 1, results: 1, reasoning: 1},
		"the index counts both requests",
	},
	"openai-responses-compact.json": {
		figures{compactions: 1},
		"the index counts the item where it is sent back as well",
	},
	"anthropic-compaction-end-to-end.json": {
		figures{compactions: 1},
		"the index counts the block where it is sent back as well",
	},
	"gemini-session-v2.jsonl": {
		figures{calls: 12, results: 12, reasoning: 7},
		"the index counts what a later line replaces as well",
	},
	"codex-large-compacted.jsonl": {
		figures{calls: 424, results: 424, reasoning: 179, compactions: 1},
		"two web searches of the vendor's have call and result in one",
	},
}

func TestAPICorpus(t *testing.T) {
	t.Parallel()
	for section, formats := range apiCorpus {
		eachCorpusFile(t, section, index, func(t *testing.T, f corpus.File, expected figures) {
			format, ok := formats[f.Name]
			if !ok {
				format = formats[""]
			}
			if c, ok := apiCounted[f.Name]; ok {
				expected = c.figures
			}
			data := f.Read(t)
			file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if file.Format != format {
				t.Fatalf("it is taken for %s", file.Format)
			}
			if got := count(file); got != expected {
				t.Errorf("counted %+v, the index says %+v", got, expected)
			}
			messages := 0
			for _, c := range file.Conversations {
				messages += len(c.Messages)
				comesBack(t, c)
				tiedUsage(t, c)
				writtenEverywhere(t, file.Format, c)
			}
			if messages == 0 {
				t.Error("there is no message in it")
			}
		})
	}
}

// comesBack checks that every message keeps its bytes.
func comesBack(t *testing.T, c transcript.Conversation) {
	t.Helper()
	codec, err := transcript.CodecFor(c.Format)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Messages {
		back, err := codec.Decode(m.Native)
		if err != nil {
			t.Fatalf("message %d: %v", m.Seq, err)
		}
		if out, err := codec.Encode(back, nil); err != nil || !bytes.Equal(out, m.Native) {
			t.Errorf("message %d does not come back: %v", m.Seq, err)
		}
		if back.Role != m.Role || len(back.Parts) != len(m.Parts) {
			t.Errorf("message %d is decoded as another", m.Seq)
		}
	}
}

// tiedUsage checks that every figure belongs to a message of the assistant.
func tiedUsage(t *testing.T, c transcript.Conversation) {
	t.Helper()
	for _, u := range c.Usage {
		if u.Covers < 1 || u.Covers > len(c.Messages) || c.Messages[u.Covers-1].Role != pipeline.RoleAssistant {
			t.Errorf("usage %+v is tied to message %d", u.Usage, u.Covers)
		}
		if u.Used <= 0 {
			t.Errorf("usage %+v says nothing", u.Usage)
		}
	}
}

// targets are the formats of the APIs, each with its validator.
var targets = []struct {
	format   transcript.Format
	validate func([]byte) error
}{
	{transcript.Anthropic, vendorserver.ValidateAnthropic},
	{transcript.OpenAI, vendorserver.ValidateOpenAI},
	{transcript.OpenAIResponses, vendorserver.ValidateOpenAIResponses},
	{transcript.Google, vendorserver.ValidateGoogle},
}

// writtenEverywhere writes a conversation as a context, whole and divided, for every API and as its own kind of file.
func writtenEverywhere(t *testing.T, own transcript.Format, c transcript.Conversation) {
	t.Helper()
	settings := pipeline.DefaultSettings()
	vendor := string(c.Format.API())
	whole := must(pipeline.BuildContext(t.Context(), pipeline.ContextInput{
		Live: c.Messages, Settings: settings, Window: 200_000,
		Vendor: vendor,
	}))
	contexts := map[string]pipeline.Context{"whole": whole}
	for _, full := range []bool{false, true} {
		p := must(pipeline.PartitionMessages(t.Context(), pipeline.PartitionInput{
			Messages: c.Messages, Settings: settings, Full: full,
			Window: 40_000,
		}))
		if p.Nothing != "" {
			continue
		}
		var live []pipeline.Message
		for _, i := range slices.Concat(p.System, p.UserInfo, p.Carried, p.Tail) {
			live = append(live, c.Messages[i])
		}
		contexts[fmt.Sprintf("divided, full %v", full)] = must(pipeline.BuildContext(t.Context(), pipeline.ContextInput{
			Live: live, Settings: settings, Window: 40_000, Vendor: vendor,
			SummaryText: pipeline.SummaryText(pipeline.SummaryTextInput{Summary: "It went well.", TailKept: true}),
			Enrichments: []pipeline.Enrichment{{Key: "todo", Text: "rest"}},
		}))
	}
	for name, context := range contexts {
		for _, target := range targets {
			var b bytes.Buffer
			losses, err := convert.WriteFile(&b, target.format,
				transcript.Output{Meta: c.Meta, Items: context.Items})
			if err != nil {
				t.Fatalf("%s, as %s: %v", name, target.format, err)
			}
			if err := target.validate(b.Bytes()); err != nil {
				t.Errorf("%s, as %s: %v", name, target.format, err)
			}
			if target.format == c.Format && len(losses) > 0 {
				t.Errorf("%s, in its own format it loses %+v", name, losses)
			}
			pairsStay(t, name+", as "+string(target.format), context, b.Bytes(), target.format)
		}
		var b bytes.Buffer
		if _, err := convert.WriteFile(&b, own,
			transcript.Output{Meta: c.Meta, Items: context.Items, TokensBefore: 1000}); err != nil {
			t.Fatalf("%s, as %s: %v", name, own, err)
		}
		back, err := transcript.Read(bytes.NewReader(b.Bytes()), transcript.Options{})
		if err != nil || len(back.Conversations) != 1 {
			t.Fatalf("%s, written as %s it cannot be read: %v", name, own, err)
		}
		// No program loads a stream, so it is written as a request.
		want := own
		if own == transcript.ClaudeStream {
			want = transcript.Anthropic
		}
		if back.Format != want {
			t.Errorf("%s, written as %s it is taken for %s", name, own, back.Format)
		}
	}
}

// pairsStay counts the calls and results of a context and of what was written of it.
func pairsStay(t *testing.T, name string, context pipeline.Context, written []byte, f transcript.Format) {
	t.Helper()
	calls, results := 0, 0
	for _, it := range context.Items {
		if it.Made != nil {
			if it.Made.Role == pipeline.RoleTool {
				results++
			}
			continue
		}
		dropped := map[int]bool{}
		for _, e := range it.Edits {
			dropped[e.Part] = dropped[e.Part] || e.Content < 0 && e.Op == pipeline.EditDrop
		}
		for i, p := range it.Message.Parts {
			switch {
			case dropped[i]:
			case p.Kind == pipeline.PartToolCall:
				calls++
			case p.Kind == pipeline.PartToolResult:
				results++
			}
		}
	}
	file, err := transcript.Read(bytes.NewReader(written), transcript.Options{Format: f})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if got := count(file); got.calls != calls || got.results != results {
		t.Errorf("%s: %d calls and %d results became %d and %d", name, calls, results, got.calls, got.results)
	}
}

// A session of Gemini CLI without changes is written with the same bytes.
func TestGeminiSessionsComeBackWhole(t *testing.T) {
	t.Parallel()
	recorded, ok := corpus.Open(t, "gemini-cli/gemini-session-legacy.json")
	if !ok {
		return
	}
	data := recorded.Read(t)
	file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := file.Conversations[0]
	var items []pipeline.ContextItem
	for i := range c.Messages {
		items = append(items, pipeline.ContextItem{Message: &c.Messages[i]})
	}
	var b bytes.Buffer
	if _, err := convert.WriteFile(&b, transcript.GeminiCLI,
		transcript.Output{Meta: c.Meta, Items: items}); err != nil {
		t.Fatal(err)
	}
	var before, after struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(data, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &after); err != nil {
		t.Fatal(err)
	}
	if len(before.Messages) != len(after.Messages) {
		t.Fatalf("%d entries became %d", len(before.Messages), len(after.Messages))
	}
	for i := range before.Messages {
		if !bytes.Equal(before.Messages[i], after.Messages[i]) {
			t.Errorf("entry %d is another", i)
		}
	}
}
