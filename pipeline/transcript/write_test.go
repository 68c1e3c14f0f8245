package transcript_test

import (
	"bytes"
	"context"
	"errors"
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

func TestWriteFile(t *testing.T) {
	t.Parallel()
	summary := pipeline.Made{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Text: "<conversation_summary>\nearlier\n</conversation_summary>",
	}
	state := pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: "todo: none"}
	for _, c := range []struct {
		name, path string
		to         transcript.Format
		tail       int // messages that are kept behind the summary; all, and no summary, when negative
	}{
		{"anthropic", "anthropic/request.json", transcript.Anthropic, 3},
		{"anthropic-all", "anthropic/recorded.json", transcript.Anthropic, -1},
		{"openai", "openai/request.json", transcript.OpenAI, 2},
		{"openai-array", "openai/array.json", transcript.OpenAI, -1},
		{"openai-several", "openai/tau.json", transcript.OpenAI, -1},
		{"claude-code", "claude-code/turns.jsonl", transcript.ClaudeCode, 2},
		{"claude-code-nothing-kept", "claude-code/turns.jsonl", transcript.ClaudeCode, 0},
		{"claude-code-from-its-root", "claude-code/turns.jsonl", transcript.ClaudeCode, 5},
		{"claude-code-all", "claude-code/turns.jsonl", transcript.ClaudeCode, -1},
		{"claude-code-to-anthropic", "claude-code/turns.jsonl", transcript.Anthropic, 2},
		{"starts-with-assistant", "claude-code/turns.jsonl", transcript.Anthropic, -2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var all []transcript.Output
			for _, conv := range readFile(t, filepath.Join("testdata", c.path)).Conversations {
				items := contextOf(conv.Messages)
				switch {
				case c.tail >= 0:
					items = append([]pipeline.ContextItem{{Made: &summary}, {Made: &state}},
						items[len(items)-c.tail:]...)
				case c.tail == -2:
					items = items[1:]
				}
				all = append(all, transcript.Output{
					Meta: conv.Meta, Items: items, Trigger: "auto",
					TokensBefore: 12345,
				})
			}
			var b, again bytes.Buffer
			if _, err := convert.WriteFile(&b, c.to, all...); err != nil {
				t.Fatal(err)
			}
			golden(t, "write-"+c.name+".out", b.String())
			if _, err := convert.WriteFile(&again, c.to, all...); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
				t.Errorf("written twice it is another file: %v", err)
			}
			back, err := transcript.Read(&b, transcript.Options{})
			if err != nil || back.Format != c.to || len(back.Conversations) != len(all) {
				t.Fatalf("read back: %v, format %s, %d conversations", err, back.Format, len(back.Conversations))
			}
		})
	}
}

func TestWriteFileErrors(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if _, err := convert.WriteFile(&b, transcript.ClaudeCode,
		transcript.Output{Meta: transcript.Meta{Format: transcript.OpenAI}}); err == nil ||
		!strings.Contains(err.Error(), "conversation 1: bad_request: messages of format") {
		t.Errorf("got %v", err)
	}
	full := errors.New("disk full")
	if _, err := convert.WriteFile(failingWriter{full}, transcript.OpenAI,
		transcript.Output{Meta: transcript.Meta{Format: transcript.OpenAI}}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	broken := pipeline.Message{Native: []byte("{")}
	for _, f := range transcript.Formats() {
		o := transcript.Output{
			Meta:  transcript.Meta{Format: f},
			Items: []pipeline.ContextItem{{Message: &broken, Edits: []pipeline.Edit{drop(0, -1)}}},
		}
		if _, err := convert.WriteFile(&b, f, o); err == nil ||
			!strings.Contains(err.Error(), "entry 0 of the context") {
			t.Errorf("%s: %v", f, err)
		}
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// A compacted context as a file of its own format: the summary, state, and the tail's bytes.
func TestWriteAPIFiles(t *testing.T) {
	t.Parallel()
	summary := pipeline.Made{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Text: "<conversation_summary>\nearlier\n</conversation_summary>",
	}
	state := pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: "todo: none"}
	for _, c := range []struct {
		path string
		// tail is how many messages are kept behind the summary, head how many before it; a negative tail keeps all
		// and makes no summary.
		head, tail int
		back       transcript.Format
	}{
		{"openai-responses/request.json", 1, 2, transcript.OpenAIResponses},
		{"openai-responses/recorded.json", 0, 3, transcript.OpenAIResponses},
		{"openai-responses/response.jsonl", 0, 1, transcript.OpenAIResponses},
		{"google/request.json", 1, 2, transcript.Google},
		{"google/sdk.json", 0, -1, transcript.Google},
		{"codex/session.jsonl", 2, 6, transcript.Codex},
		{"codex/readable.jsonl", 0, 1, transcript.Codex},
		{"gemini-cli/session.json", 0, 4, transcript.GeminiCLI},
		{"gemini-cli/log.jsonl", 0, 4, transcript.GeminiCLI},
		{"gemini-cli/chat.json", 1, 3, transcript.GeminiCLI},
		{"gemini-cli/scenario.json", 0, 1, transcript.GeminiCLI},
		{"claude-stream-json/tools.jsonl", 0, 2, transcript.Anthropic},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			f := readFile(t, filepath.Join("testdata", c.path))
			conv := f.Conversations[0]
			all := contextOf(conv.Messages)
			items := all
			if c.tail >= 0 {
				items = append(append([]pipeline.ContextItem(nil), all[:c.head]...),
					pipeline.ContextItem{Made: &summary}, pipeline.ContextItem{Made: &state})
				items = append(items, all[len(all)-c.tail:]...)
			}
			out := transcript.Output{Meta: conv.Meta, Items: items, Trigger: "auto", TokensBefore: 12345}
			var b, again bytes.Buffer
			if _, err := convert.WriteFile(&b, f.Format, out); err != nil {
				t.Fatal(err)
			}
			golden(t, c.path+".compacted.out", b.String())
			if _, err := convert.WriteFile(&again, f.Format, out); err != nil ||
				!bytes.Equal(b.Bytes(), again.Bytes()) {
				t.Errorf("written twice it is another file: %v", err)
			}
			back, err := transcript.Read(&b, transcript.Options{})
			if err != nil || back.Format != c.back || len(back.Conversations) != 1 {
				t.Fatalf("read back: %v, format %s", err, back.Format)
			}
			if c.tail < 0 {
				return
			}
			// The summary is one again, and the tail is what it was.
			read := back.Conversations[0]
			summaries := len(read.Compactions)
			for _, m := range read.Messages {
				if m.Kind == pipeline.KindSummary {
					summaries++
				}
			}
			if summaries != 1 {
				t.Errorf("%d summaries were read back", summaries)
			}
			for i := range c.tail {
				was, is := conv.Messages[len(conv.Messages)-1-i], read.Messages[len(read.Messages)-1-i]
				if c.back == back.Format && was.Role != is.Role || len(was.Parts) != len(is.Parts) {
					t.Errorf("message %d from the end is another:\n%s\n%s", i, was.Native, is.Native)
				}
			}
		})
	}
}

// agentFormats are the formats of agents and frameworks whose messages no API takes as they are.
func agentFormats() []transcript.Format {
	var out []transcript.Format
	for f := range agentMessages {
		out = append(out, f)
	}
	return out
}

// compactedContext returns the context after a compaction that kept the last messages.
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
	return must(pipeline.BuildContext(context.Background(), pipeline.ContextInput{
		Live: kept, Settings: pipeline.DefaultSettings(),
		SummaryText: "<conversation_summary>\nAll of it.\n</conversation_summary>\n\nGo on.",
		Enrichments: []pipeline.Enrichment{{Key: "todo", Text: "one thing"}},
	})).Items
}

// Each file is compacted and written to golden files in its own format, and as requests.
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
					// it is not one of the messages
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

// summarized checks that the summary of a written file is recognized.
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

// A format may be only another name, which determines how a file is read.
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
	// A file whose format cannot be detected.
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
