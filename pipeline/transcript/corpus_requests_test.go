package transcript_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/pipeline/transcript"
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
