package transcript_test

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// recordedRequest is a request that a program sent to its model.
type recordedRequest struct {
	N, Label, Path string
	Body           json.RawMessage
}

// format is the format of the API of the request's path, "" for a request without a conversation.
func (r recordedRequest) format() transcript.Format {
	path, _, _ := strings.Cut(r.Path, "?")
	switch {
	case strings.HasSuffix(path, "/messages"):
		return transcript.Anthropic
	case strings.HasSuffix(path, "/chat/completions"):
		return transcript.OpenAI
	case strings.HasSuffix(path, "/responses"):
		return transcript.OpenAIResponses
	case strings.Contains(strings.ToLower(path), "generatecontent"):
		return transcript.Google
	}
	return ""
}

// eachRecordedRequest runs a test over the requests that real programs sent.
func eachRecordedRequest(t *testing.T, test func(t *testing.T, f corpus.File, r recordedRequest)) {
	t.Helper()
	for _, f := range corpus.Files(t, "programs/requests") {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for line := range bytes.Lines(f.Read(t)) {
				var r recordedRequest
				if err := json.Unmarshal(line, &r); err != nil {
					t.Fatal(err)
				}
				if r.format() != "" {
					test(t, f, r)
				}
			}
		})
	}
}

// notConversations are files of programs that hold no conversation.
var notConversations = []string{"claude/stream_out.json", "cline/orig.session.json", ".meta.json"}

// Every session of a program and every request that it sent is read, and its context can be written for each API: no
// result without its call, no call without its result, and no system message where the API refuses it.
func TestProgramsCanBeSent(t *testing.T) {
	t.Parallel()
	for _, f := range corpus.Files(t, "programs/sessions") {
		if slices.ContainsFunc(notConversations, func(s string) bool { return strings.HasSuffix(f.Name, s) }) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			canBeSent(t, f.Read(t))
		})
	}
	eachRecordedRequest(t, func(t *testing.T, _ corpus.File, r recordedRequest) {
		t.Run(r.N, func(t *testing.T) { canBeSent(t, r.Body) })
	})
}

func canBeSent(t *testing.T, data []byte) {
	t.Helper()
	file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, c := range file.Conversations {
		for _, m := range c.Messages {
			if m.Genuine() {
				said++
			}
		}
		for target, vendor := range map[transcript.Format]string{
			transcript.Anthropic: "anthropic", transcript.OpenAI: "openai", transcript.OpenAIResponses: "openai",
			transcript.Google: "google",
		} {
			live, err := pipeline.BuildContext(t.Context(), pipeline.ContextInput{
				Live: c.Messages, Settings: pipeline.DefaultSettings(), Vendor: vendor,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := convert.WriteFile(io.Discard, target, transcript.Output{
				Meta: c.Meta, Items: live.Items, Sendable: true,
			}); err != nil {
				t.Errorf("%s to %s: %v", file.Format, target, err)
			}
		}
	}
	if said == 0 {
		t.Errorf("as %s it has no word of the user", file.Format)
	}
}
