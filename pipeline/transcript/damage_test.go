package transcript_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

const (
	goodLine = `{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"role":"user",` +
		`"content":"%s"},"uuid":"%s"}`
	goodReq = `{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"%s"}]}`
)

func userLine(text, uuid string) string { return fmt.Sprintf(goodLine, text, uuid) }

const (
	codexHead = `{"timestamp":"t","type":"session_meta","payload":{"id":"s","model_provider":"openai"}}` + "\n"
	logHead   = `{"sessionId":"s","projectHash":"p","startTime":"t","kind":"main"}` + "\n"
)

func codexSaid(role, s string) string {
	typ := "input_text"
	if role == "assistant" {
		typ = "output_text"
	}
	return fmt.Sprintf(`{"timestamp":"t","type":"response_item","payload":{"type":"message","role":%q,"content":[{`+
		`"type":%q,"text":%q}]}}`, role, typ, s) + "\n"
}

func logSaid(id, s string) string {
	return fmt.Sprintf(`{"id":%q,"timestamp":"t","type":"user","content":%q}`, id, s) + "\n"
}

type damageCase struct {
	name     string
	options  transcript.Options
	in       string
	err      string
	messages int // that lenient reading gives; -1: it fails too
	damaged  int // notes of damage that it gives
}

// Strict reading reports damage with its line. Lenient reading counts it and continues behind it.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, c := range damageCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := items(t, strings.NewReader(c.in), c.options)
			if err == nil || !strings.Contains(err.Error(), c.err) || pipeline.KindOf(err) != pipeline.BadRequest {
				t.Fatalf("got %v of kind %q, want a bad_request with %q", err, pipeline.KindOf(err), c.err)
			}
			if c.messages < 0 {
				return
			}
			c.options.Lenient = true
			got, err := items(t, strings.NewReader(c.in), c.options)
			if err != nil {
				t.Fatalf("read leniently: %v", err)
			}
			checkItems(t, got)
			messages, damaged := 0, 0
			for _, it := range got {
				switch {
				case it.Message != nil:
					messages++
				case it.Note != nil && it.Note.Code == transcript.NoteDamaged:
					damaged++
				}
			}
			if messages != c.messages || damaged != c.damaged {
				t.Errorf("lenient reading gives %d messages and %d notes of damage, want %d and %d\n%s", messages,
					damaged,
					c.messages, c.damaged, dump(got))
			}
		})
	}
}

// Unusual but valid files are read without a loss.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	odd := `{"parentUuid":null,"isSidechain":false,"type":"user","x":9007199254740993,"x":1e400,"message":{` +
		`"role":"user","content":"\u0000 \ud800 \ud83d\ude00 < \u003c \/ ` + "\xff\xfe" + `"},"uuid":"o"}`
	for _, c := range []struct {
		name, in string
		natives  []string
	}{
		{
			"a BOM, CRLF, blank lines, no line end at last",
			"\xef\xbb\xbf" + userLine("a", "1") + "\r\n\r\n \r\n" + odd,
			[]string{userLine("a", "1"), odd},
		},
		{"two records in a line", userLine("a", "1") + odd + "\n", []string{userLine("a", "1"), odd}},
		{"blanks inside of a record", " \t" + strings.ReplaceAll(userLine("a", "1"), `:"user"`, " : \t\"user\" ") +
			"  \n", []string{strings.ReplaceAll(userLine("a", "1"), `:"user"`, " : \t\"user\" ")}},
		{
			"a request behind a BOM, with CRLF",
			"\xef\xbb\xbf{\"model\":\"claude-x\",\r\n\"messages\":[\r\n" +
				"{\"role\":\"user\",\r\n\"content\":\"a\"}\r\n]}\r\n",
			[]string{"{\"role\":\"user\",\r\n\"content\":\"a\"}"},
		},
		{
			"nested deep", userLine("a", "1") + "\n" + fmt.Sprintf(`{"isSidechain":false,"type":"assistant",`+
				`"uuid":"d","message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":"t","name":"n",`+
				`"input":%s1%s}]}}`, strings.Repeat(`{"a":`, 9000), strings.Repeat("}", 9000)),
			[]string{userLine("a", "1"), fmt.Sprintf(`{"isSidechain":false,"type":"assistant","uuid":"d",`+
				`"message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":"t","name":"n",`+
				`"input":%s1%s}]}}`, strings.Repeat(`{"a":`, 9000), strings.Repeat("}", 9000))},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := items(t, strings.NewReader(c.in), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkItems(t, got)
			var natives []string
			for _, it := range got {
				if it.Message != nil {
					natives = append(natives, string(it.Message.Native))
				}
			}
			if fmt.Sprint(natives) != fmt.Sprint(c.natives) {
				t.Errorf("got  %q\nwant %q", natives, c.natives)
			}
		})
	}
}

type failing struct {
	r   io.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}

// An error of the reader is not damage of the file, and lenient reading does not hide it.
func TestReaderErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk was removed")
	for _, in := range []string{
		userLine("a", "1") + "\n" + userLine("b", "2"), fmt.Sprintf(goodReq, "a")[:60],
		`[{"role":"user","content":`, "",
	} {
		f := transcript.ClaudeCode
		if !strings.Contains(in, "isSidechain") {
			f = transcript.Anthropic
		}
		_, err := items(t, failing{strings.NewReader(in), broken}, transcript.Options{Format: f, Lenient: true})
		if !errors.Is(err, broken) || pipeline.KindOf(err) == pipeline.BadRequest {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// A piece of a rollout has no session_meta. It is read, and written without one.
func TestCodexPieceOfARollout(t *testing.T) {
	t.Parallel()
	in := codexSaid("user", "a") + codexSaid("assistant", "b")
	f, err := transcript.Read(strings.NewReader(in), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := f.Conversations[0]
	if c.Meta.Format != transcript.Codex || len(c.Messages) != 2 || c.Meta.ID != "" {
		t.Fatalf("%+v", c.Meta)
	}
	var kept []pipeline.ContextItem
	for i := range c.Messages {
		kept = append(kept, pipeline.ContextItem{Message: &c.Messages[i]})
	}
	var out strings.Builder
	if _, err := convert.WriteFile(&out, transcript.Codex, transcript.Output{Meta: c.Meta, Items: kept}); err != nil {
		t.Fatal(err)
	}
	if out.String() != in {
		t.Errorf("got  %s\nwant %s", out.String(), in)
	}
}

// Changes of a Gemini CLI log to entries that are no longer held are not applied, and a note reports them.
func TestGeminiChangesBeyondWhatIsHeld(t *testing.T) {
	t.Parallel()
	head := logHead + logSaid("1", "first "+strings.Repeat("x", 300)) +
		logSaid("2", "second "+strings.Repeat("x", 300)) + logSaid("3", "third")
	for _, c := range []struct {
		name, change, note string
		texts              []string
	}{
		{
			"a later state of a message", logSaid("1", "new"), "it was changed too far behind",
			[]string{"first", "second", "third"},
		},
		{"a rewind", `{"$rewindTo":"1"}` + "\n", "further back than the held messages", []string{"first"}},
		{
			"a replacement", `{"$set":{"messages":[{"id":"9","type":"user","content":"new"}]}}` + "\n",
			"it replaces messages that are no longer held",
			[]string{"first", "new"},
		},
		{
			"a rewind within it", `{"$rewindTo":"3"}` + "\n", "a rewind removed the message",
			[]string{"first", "second"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all, err := drain(tight(t, head+c.change, 600, 0, transcript.Options{Format: transcript.GeminiCLI}))
			if err != nil {
				t.Fatal(err)
			}
			checkItems(t, all)
			if got := dump(all); !strings.Contains(got, c.note) {
				t.Errorf("no note %q in\n%s", c.note, got)
			}
			var texts []string
			for _, it := range all {
				if it.Message != nil {
					first, _, _ := strings.Cut(it.Message.Parts[0].Text, " ")
					texts = append(texts, first)
				}
			}
			if fmt.Sprint(texts) != fmt.Sprint(c.texts) {
				t.Errorf("got %q, want %q", texts, c.texts)
			}
		})
	}
}

// Pi counts the entries that it could read, so damage in front of a compaction does not move what it kept.
func TestPiKeepsBehindDamage(t *testing.T) {
	t.Parallel()
	in := `{"type":"session","id":"s","cwd":"/"}` + "\n~~\n" +
		`{"type":"message","message":{"role":"user","content":"one"}}` + "\n" +
		`{"type":"message","message":{"role":"robot"}}` + "\n" +
		`{"type":"message","message":{"role":"user","content":"two"}}` + "\n" +
		`{"type":"compaction","summary":"s","firstKeptEntryIndex":3}` + "\n"
	f, err := transcript.Read(strings.NewReader(in), transcript.Options{Lenient: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := f.Conversations[0].Compactions; len(c) != 1 || c[0].Kept != 1 || c[0].Before != 2 {
		t.Errorf("%+v", c)
	}
}

// A tree that is too large to be held is emitted in the order of the file, and a note reports it.
func TestPiTreeTooLargeToHold(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/pi/tree.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all, err := drain(tight(t, string(data), 600, 0, transcript.Options{Format: transcript.Pi}))
	if err != nil {
		t.Fatal(err)
	}
	checkItems(t, all)
	got := dump(all)
	if !strings.Contains(got, "too large to follow its branches") || !strings.Contains(got, `text="left"`) ||
		!strings.Contains(got, "kept 3") {
		t.Errorf("got %s", got)
	}
}
