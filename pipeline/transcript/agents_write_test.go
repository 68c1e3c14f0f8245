package transcript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// agentFormats are the formats of agents and frameworks whose messages no API takes as they are.
func agentFormats() []transcript.Format {
	var out []transcript.Format
	for f := range agentMessages {
		out = append(out, f)
	}
	return out
}

// fixtures are the files of a format in testdata.
func fixtures(t *testing.T, f transcript.Format) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", string(f), "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		if !strings.HasSuffix(path, ".golden") && !strings.HasSuffix(path, ".out") {
			out = append(out, path)
		}
	}
	return out
}

// compactedContext is what stands after a compaction that kept the last messages.
func compactedContext(c transcript.Conversation) []pipeline.ContextItem {
	live := c.Messages
	split := max(len(live)-3, 0)
	for split > 0 && (live[split].Role == pipeline.RoleTool || pipeline.Pair(live).OpenAfter(split-1)) {
		split--
	}
	var kept []pipeline.Message
	for _, m := range live {
		if m.Role == pipeline.RoleSystem {
			kept = append(kept, m)
		}
	}
	for _, m := range live[split:] {
		if m.Role != pipeline.RoleSystem {
			kept = append(kept, m)
		}
	}
	return pipeline.BuildContext(pipeline.ContextInput{
		Live: kept, Settings: pipeline.DefaultSettings(),
		SummaryText: "<conversation_summary>\nAll of it.\n</conversation_summary>\n\nGo on.",
		Enrichments: []pipeline.Enrichment{{Key: "todo", Text: "one thing"}},
	}).Items
}

// Each file is compacted and written in its own format, and as requests, which a person can look at.
func TestWriteFilesOfAgents(t *testing.T) {
	t.Parallel()
	for _, f := range agentFormats() {
		for _, path := range fixtures(t, f) {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				file := readFile(t, path)
				var all []transcript.Output
				for _, c := range file.Conversations {
					all = append(all, transcript.Output{
						Meta: c.Meta, Items: compactedContext(c), Trigger: "auto",
						TokensBefore: 1000,
					})
				}
				name, _ := filepath.Rel("testdata", path)
				var b, again bytes.Buffer
				if losses, err := convert.WriteFile(&b, f, all...); err != nil || len(losses) > 0 {
					t.Fatalf("%v, losses %+v", err, losses)
				}
				golden(t, name+".compacted.out", b.String())
				if _, err := convert.WriteFile(&again, f, all...); err != nil ||
					!bytes.Equal(b.Bytes(), again.Bytes()) {
					t.Errorf("written twice it is another file: %v", err)
				}
				back, err := transcript.Read(bytes.NewReader(b.Bytes()), transcript.Options{})
				if err != nil || back.Format != f || len(back.Conversations) != len(all) {
					t.Fatalf("read back: %v, format %s, %d conversations", err, back.Format, len(back.Conversations))
				}
				for i, c := range back.Conversations {
					summarized(t, c)
					// stands beside the messages
					if (f == transcript.Vercel || f == transcript.MSAgent) && c.Model != file.Conversations[i].Model {
						t.Errorf("the model was %q and is %q", file.Conversations[i].Model, c.Model)
					}
				}
				for target, validate := range map[transcript.Format]func([]byte, vendorserver.ValidateOptions) error{
					transcript.Anthropic:       vendorserver.ValidateAnthropicRequest,
					transcript.OpenAI:          vendorserver.ValidateOpenAIRequest,
					transcript.OpenAIResponses: vendorserver.ValidateOpenAIResponsesRequest,
					transcript.Google:          vendorserver.ValidateGoogleRequest,
				} {
					var s strings.Builder
					for i, out := range all {
						var b bytes.Buffer
						losses, err := convert.WriteFile(&b, target,
							transcript.Output{Meta: out.Meta, Items: contextOf(file.Conversations[i].Messages)})
						if err != nil {
							t.Fatal(err)
						}
						fmt.Fprintf(&s, "%s", b.String())
						for _, l := range losses {
							fmt.Fprintf(&s, "loss of %s, item %d: %s\n", l.What, l.Item, l.Why)
						}
						b.Reset()
						if _, err := convert.WriteFile(&b, target, out); err != nil {
							t.Fatal(err)
						}
						if err := validate(b.Bytes(), vendorserver.ValidateOptions{}); err != nil {
							t.Errorf("as %s: %v\n%s", target, err, b.Bytes())
						}
					}
					if target == transcript.Anthropic || target == transcript.OpenAI {
						golden(t, name+"."+string(target)+".out", s.String())
					}
				}
			})
		}
	}
}

// summarized checks that the summary of a written file is known for one.
func summarized(t *testing.T, c transcript.Conversation) {
	t.Helper()
	n := len(c.Compactions)
	for _, m := range c.Messages {
		if m.Kind == pipeline.KindSummary {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d summaries in the file that was written", n)
	}
}

// A name may say no more than how a file is read.
func TestSWEAgentName(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"openai/swe.traj", "openai/swe-old.traj", "openai/mini-swe.traj.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", path))
		if err != nil {
			t.Fatal(err)
		}
		auto, err := items(t, bytes.NewReader(data), transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		named, err := items(t, bytes.NewReader(data), transcript.Options{Format: transcript.SWEAgent})
		if err != nil || dump(named) != dump(auto) {
			t.Errorf("%s: named, it reads as another: %v\n%s", path, err, dump(named))
		}
	}
	// A file that shows nothing of what it is.
	bare := `{"messages":[{"role":"user","content":"fix it"},{"role":"assistant","content":"ok","extra":{` +
		`"cost":1}},{"role":"exit","content":"x"}]}`
	f, err := transcript.Read(strings.NewReader(bare), transcript.Options{Format: transcript.SWEAgent})
	if err != nil || f.Format != transcript.OpenAI || len(f.Conversations[0].Messages) != 2 ||
		f.Conversations[0].Source != transcript.SourceMiniSWE {
		t.Fatalf("%v: %+v", err, f)
	}
	var b bytes.Buffer
	if _, err := convert.WriteFile(&b, transcript.SWEAgent,
		transcript.Output{Meta: f.Conversations[0].Meta, Items: contextOf(f.Conversations[0].Messages)}); err != nil {
		t.Fatal(err)
	}
	if err := vendorserver.ValidateOpenAIRequest(b.Bytes(), vendorserver.ValidateOptions{}); err != nil {
		t.Errorf("%v: %s", err, b.Bytes())
	}
	if codec, err := transcript.CodecFor(transcript.SWEAgent); err != nil || codec.Format() != transcript.OpenAI {
		t.Errorf("%v", err)
	}
}
