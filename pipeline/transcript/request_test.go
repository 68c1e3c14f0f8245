package transcript_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/request"
)

// A request that is read and built again is the same request, and one that asks for a summary has the same beginning,
// up to the end of the last message.
func TestRequestIsBuiltAgainByteForByte(t *testing.T) {
	t.Parallel()
	same := func(fatal func(string, ...any), in []byte, f transcript.Format) {
		file, err := transcript.Read(bytes.NewReader(in), transcript.Options{Format: f})
		if err != nil {
			fatal("%v: %s", err, in)
		}
		c := file.Conversations[0]
		r := request.Input{
			Format: f, Envelope: c.Envelope, System: c.System, Tools: c.Tools, Model: c.Model,
			MaxTokens: 4096,
		}
		for _, m := range c.Messages {
			r.Messages = append(r.Messages, m.Native)
		}
		out, err := request.Build(r)
		if err != nil {
			fatal("%v", err)
		}
		if !bytes.Equal(out, bytes.TrimSpace(in)) {
			fatal("got  %s\nwant %s", out, in)
		}
		codec, _ := transcript.CodecFor(f)
		if r.Append, err = codec.Make(pipeline.Made{Role: pipeline.RoleUser, Text: "summarise"}); err != nil {
			fatal("%v", err)
		}
		out, err = request.Build(r)
		if err != nil || rawjson.Check(out) != nil {
			fatal("%v: %s", err, out)
		}
		last := r.Messages[len(r.Messages)-1]
		end := bytes.LastIndex(in, last) + len(last)
		if !bytes.HasPrefix(out, in[:end]) {
			fatal("the prefix differs:\n%s\n%s", out, in)
		}
	}
	for _, path := range []string{"testdata/anthropic/request.json", "testdata/openai/request.json"} {
		in, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := transcript.Anthropic
		if strings.Contains(path, "openai") {
			f = transcript.OpenAI
		}
		same(t.Fatalf, in, f)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]transcript.Format{transcript.Anthropic, transcript.OpenAI}).Draw(t, "format")
		blank := rapid.SampledFrom([]string{"", " ", "\n  "})
		sep := blank.Draw(t, "before") + "," + blank.Draw(t, "behind")
		open, closing := blank.Draw(t, "open"), blank.Draw(t, "close")
		var natives []string
		for range rapid.IntRange(2, 5).Draw(t, "n") { // one message does not show the layout between two
			natives = append(natives, string(drawMessage(f).Draw(t, "message")))
		}
		pairs := []string{`"messages":[` + open + strings.Join(natives, sep) + closing + `]`}
		for _, p := range []string{`"model": "m"`, `"max_tokens":64`, `"tools" : [{"name":"f"}]`, `"x":{"y":[]}`} {
			at := rapid.IntRange(0, len(pairs)).Draw(t, "at")
			pairs = append(pairs[:at:at], append([]string{p}, pairs[at:]...)...)
		}
		if f == transcript.Anthropic {
			pairs = append(pairs, `"system":"S"`)
		}
		same(t.Fatalf, []byte("{ "+strings.Join(pairs, " , ")+"\n}"), f)
	})
}

// The body begins with the bytes of the agent's own last request, so that the vendor's cache is hit.
func TestAPIRequestsAreBuiltAgainByteForByte(t *testing.T) {
	t.Parallel()
	for path, tail := range map[string]string{
		"openai-responses/request.json": `{"role":"user","content":"summarise"}`,
		"google/request.json":           `{"role":"user","parts":[{"text":"summarise"}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("testdata", path))
			if err != nil {
				t.Fatal(err)
			}
			conv := readFile(t, filepath.Join("testdata", path)).Conversations[0]
			var natives [][]byte
			for _, m := range conv.Messages {
				natives = append(natives, m.Native)
			}
			r := request.Input{
				Format: conv.Format, Envelope: conv.Envelope, System: conv.System, Tools: conv.Tools, Model: conv.Model,
				MaxTokens: conv.MaxTokens, Messages: natives,
			}
			whole, err := request.Build(r)
			if err != nil || !bytes.Equal(whole, bytes.TrimSpace(data)) {
				t.Fatalf("built again it is another: %v\n%s", err, whole)
			}
			r.Append = []byte(tail)
			asked, err := request.Build(r)
			if err != nil {
				t.Fatal(err)
			}
			last := natives[len(natives)-1]
			end := bytes.Index(data, last) + len(last)
			if !bytes.HasPrefix(asked, data[:end]) {
				t.Errorf("it does not begin as the request before:\n%s", asked)
			}
		})
	}
}

// Requests of a log that continue each other without repeating their messages are one conversation.
func TestResponsesThatGoOn(t *testing.T) {
	t.Parallel()
	step := func(id, previous, said, answered string) string {
		if previous != "" {
			previous = fmt.Sprintf(`"previous_response_id":%q,`, previous)
		}
		return fmt.Sprintf(`{"uri":"https://api.openai.com/v1/responses","request":{%s"model":"gpt-5","input":[{`+
			`"role":"user","content":%q}]},"response":{"id":%q,"object":"response","output":[{"type":"message",`+
			`"role":"assistant","content":[{"type":"output_text","text":%q}]}]}}`, previous, said, id, answered)
	}
	for name, c := range map[string]struct {
		log      []string
		messages []int // of each conversation
		noted    bool  // that history is missing
	}{
		"each from the one before": {[]string{
			step("r1", "", "a", "1"), step("r2", "r1", "b", "2"),
			step("r3", "r2", "c", "3"),
		}, []int{6}, false},
		"the first is not in the log": {
			[]string{step("r2", "r1", "b", "2"), step("r3", "r2", "c", "3")},
			[]int{4},
			true,
		},
		"two conversations, interwoven": {[]string{
			step("r1", "", "a", "1"), step("s1", "", "x", "9"),
			step("r2", "r1", "b", "2"), step("s2", "s1", "y", "8"),
		}, []int{4, 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			for _, s := range c.log {
				b.WriteString(s + "\n")
			}
			f, err := transcript.Read(&b, transcript.Options{})
			if err != nil || f.Format != transcript.OpenAIResponses {
				t.Fatalf("%v, %s", err, f.Format)
			}
			var got []int
			for _, conv := range f.Conversations {
				got = append(got, len(conv.Messages))
				if bytes.Contains(conv.Envelope, []byte("previous_response_id")) != c.noted {
					t.Errorf("the envelope is %s", conv.Envelope)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.messages) {
				t.Errorf("conversations of %v messages, want %v", got, c.messages)
			}
			noted := false
			for _, n := range f.Notes {
				noted = noted || n.Note.Code == transcript.NoteMissing
			}
			if noted != c.noted {
				t.Errorf("noted: %v", noted)
			}
		})
	}
}
