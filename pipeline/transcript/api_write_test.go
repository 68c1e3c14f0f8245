package transcript_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

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
