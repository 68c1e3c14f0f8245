package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

const (
	goodLine = `{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"role":"user",` +
		`"content":"%s"},"uuid":"%s"}`
	goodReq = `{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"%s"}]}`
)

func userLine(text, uuid string) string { return fmt.Sprintf(goodLine, text, uuid) }

// What is wrong is said with its line, and lenient reading goes on behind it and counts.
func TestDamage(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, rawjson.MaxDepth+1)
	for _, c := range []struct {
		name     string
		options  transcript.Options
		in       string
		err      string
		messages int // read leniently
		damaged  int
	}{
		{"empty", transcript.Options{}, "", "the transcript is empty", -1, 0},
		{"blank", transcript.Options{}, " \n\t\n", "the transcript is empty", -1, 0},
		{"a BOM and nothing else", transcript.Options{}, "\xef\xbb\xbf", "the transcript is empty", -1, 0},
		{"UTF-16", transcript.Options{}, "\xff\xfe{\x00}\x00", "UTF-16; convert it", -1, 0},
		{"not JSON", transcript.Options{}, "hello there\n", `no JSON: it begins with 'h'`, -1, 0},
		{"JSON of no known format", transcript.Options{}, `{"a":1}`, "of no known format; name one of", -1, 0},
		{"an unknown format", transcript.Options{Format: "word"}, `{}`, `no format is called "word"`, -1, 0},

		{
			"cc: a line cut short",
			transcript.Options{},
			userLine("a", "1") + "\n" + `{"parentUuid":"1","type":"us` + "\n" + userLine("b", "2"),
			"line 2: it ends in the middle", 2, 1,
		},
		{
			"cc: the last line cut short",
			transcript.Options{},
			userLine("a", "1") + "\n" + userLine("b", "2")[:60],
			"line 2: it ends in the middle", 1, 1,
		},
		{
			"cc: no JSON in a line",
			transcript.Options{},
			userLine("a", "1") + "\n\n~~~\n" + userLine("b", "2"),
			"line 3: expected a value, found '~'", 2, 1,
		},
		{
			"cc: not an object",
			transcript.Options{},
			userLine("a", "1") + "\n[1]\n7\n", "line 2: expected a record", 1,
			2,
		},
		{
			"cc: NUL bytes of a crash",
			transcript.Options{},
			userLine("a", "1") + "\n\x00\x00\x00\n" + userLine("b", "2"),
			`line 2: expected a value, found '\x00'`, 2, 1,
		},
		{
			"cc: a raw control character",
			transcript.Options{},
			userLine("a\x01", "1") + "\n" + userLine("b", "2"),
			"line 1: a control character (0x01)", 1, 1,
		},
		{
			"cc: a record without a type",
			transcript.Options{},
			userLine("a", "1") + "\n{\"uuid\":\"x\"}\n",
			"line 2: a record without a type", 1, 1,
		},
		{
			"cc: a user record without a message",
			transcript.Options{},
			userLine("a", "1") + "\n" + `{"isSidechain":false,"type":"user","uuid":"2"}`,
			`line 2: bad_request: no message of format claude-code: a user record has no message`, 1, 1,
		},
		{
			"cc: a content that is a number",
			transcript.Options{},
			`{"isSidechain":false,"type":"user","uuid":"2","message":{"role":"user","content":7}}` + "\n" +
				userLine("a", "1"), "line 1: bad_request: no message of format claude-code: its content is neither", 1,
			1,
		},
		{
			"cc: nested too deep",
			transcript.Options{},
			userLine("a", "1") + "\n" + deep + "\n",
			"line 2: it nests deeper than 10000", 1, 1,
		},
		{
			"cc: one object and half of another",
			transcript.Options{},
			userLine("a", "1") + " {\"type\"\n" + userLine("b", "2"),
			"line 1: it ends in the middle", 2, 1,
		},
		{
			"cc: a line over the limit",
			transcript.Options{MaxMessageBytes: 300},
			userLine("a", "1") + "\n" + userLine(strings.Repeat("x", 300), "2") + "\n" + userLine("b", "3"),
			"line 2: a line of more than 300 bytes; the limit can be raised", 2, 1,
		},
		{
			"cc: a line over the limit at the end",
			transcript.Options{MaxMessageBytes: 300},
			userLine("a", "1") + "\n" + userLine(strings.Repeat("x", 1<<20), "2"),
			"line 2: a line of more than 300 bytes", 1, 1,
		},

		{
			"request: cut short in a message",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"role":"user","content":"a"},` + "\n" + `{"role":"us`,
			"line 2: it ends in the middle", 1, 1,
		},
		{
			"request: cut short between messages",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"role":"user","content":"a"},`, "line 1: it ends in the middle", 1, 1,
		},
		{
			"request: cut short in a key",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"role":"user","content":"a"}],"to`,
			"line 1: it ends in the middle", 1, 1,
		},
		{
			"request: no comma",
			transcript.Options{},
			"{\"model\":\"claude-x\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}]}", `line 2: expected a comma or ']', found '{'`, 1, 1,
		},
		{
			"request: a comma too many",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"role":"user","content":"a"},]}`,
			"line 1: expected a value after a comma", 1, 1,
		},
		{
			"request: no colon",
			transcript.Options{},
			`{"model":"claude-x","messages" []}`, "line 1: expected a colon", 0,
			1,
		},
		{
			"request: a key that is none",
			transcript.Options{Format: transcript.Anthropic},
			`{"messages":[],7:1}`,
			`line 1: expected a key, found '7'`, 0, 1,
		},
		{
			"request: a message that is a number",
			transcript.Options{},
			"{\"model\":\"claude-x\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},\n7,{\"role\":\"user\"," +
				"\"content\":\"b\"}]}", "line 2: bad_request: no message of format anthropic: it is no object", 2, 1,
		},
		{
			"request: a message without a role",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"content":"a"}]}`,
			"it has no role", 0, 1,
		},
		{
			"request: a role that there is not",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"role":"robot","content":"a"},{"role":"user","content":"a"}]}`,
			"its role is not user, assistant or system", 1, 1,
		},
		{
			"request: a message over the limit",
			transcript.Options{MaxMessageBytes: 100},
			`{"model":"claude-x","messages":[{"role":"user","content":"` + strings.Repeat("x", 100) +
				`"},{"role":"user","content":"a"}]}`, "a message of more than 100 bytes; the limit can be raised", 1,
			1,
		},
		{
			"request: too much beside the messages",
			transcript.Options{MaxMessageBytes: 100},
			`{"model":"claude-x","system":"` + strings.Repeat("x", 100) + `","messages":[]}`,
			"what stands beside the messages is over 100 bytes", 0, 1,
		},
		{
			"request: no messages",
			transcript.Options{Format: transcript.OpenAI},
			`{"model":"m"}`,
			"line 1: the object has no array of messages", 0, 1,
		},
		{
			"request: messages twice",
			transcript.Options{},
			`{"model":"claude-x","messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b"}]}`, "two arrays of messages", 1, 1,
		},
		{
			"request: a number at the top",
			transcript.Options{Format: transcript.OpenAI},
			`7`,
			"line 1: expected a request object or an array, found '7'", 0, 1,
		},
		{
			"requests: one of several is broken",
			transcript.Options{},
			fmt.Sprintf(goodReq, "a") + "\n{\"model\":\n" + fmt.Sprintf(goodReq, "b"), "line 3: it ends in the middle",
			1, 1,
		},
		{
			"requests: text between them",
			transcript.Options{},
			fmt.Sprintf(goodReq, "a") + "\n???\n" + fmt.Sprintf(goodReq, "b"),
			`line 2: expected a request object or an array, found '?'`, 2, 1,
		},
		{
			"array: not of objects",
			transcript.Options{Format: transcript.OpenAI},
			`[1]`, "line 1: expected an object with messages, found '1'",
			0, 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := items(t, strings.NewReader(c.in), c.options)
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if pipeline.KindOf(err) != pipeline.BadRequest {
				t.Errorf("the kind of %v is %q", err, pipeline.KindOf(err))
			}
			if c.messages < 0 {
				return
			}
			c.options.Lenient = true
			got, err := items(t, strings.NewReader(c.in), c.options)
			if err != nil {
				t.Fatalf("read leniently: %v", err)
			}
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
				t.Errorf("read leniently: %d messages, %d damaged; want %d, %d\n%s", messages, damaged, c.messages,
					c.damaged, dump(got))
			}
		})
	}
}

// Odd but sound files are read, and nothing of them is lost.
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
			"\xef\xbb\xbf{\"model\":\"claude-x\",\r\n\"messages\":[\r\n{\"role\":\"user\"," +
				"\r\n\"content\":\"a\"}\r\n]}\r\n",
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

// A reader that fails is no fault of the file, and lenient reading does not hide it.
func TestReaderErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
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

// A file of any size is read in memory that does not grow with it.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some hundred MB")
	}
	const size = 256 << 20
	body := strings.Repeat("all work and no play ", 3000)
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` + body + `"}]}`
	for _, c := range []struct {
		name       string
		head, tail string
		unit       func(i int) string
		limit      uint64
	}{
		{
			"a session", userLine("go", "0"), "",
			func(i int) string {
				return fmt.Sprintf(
					"\n"+`{"parentUuid":"x","isSidechain":false,"type":"user","message":%s,"uuid":"%036d"}`, result, i)
			},
			48 << 20,
		},
		{ // more than a request can be: given out as it comes once holdBytes are over
			"a request", `{"model":"claude-x","messages":[{"role":"user","content":"go"}`, `],"system":"S"}`,
			func(int) string { return "," + result },
			4 * transcript.HoldBytes,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			r := &endless{head: c.head, tail: c.tail, unit: c.unit, left: size}
			d, err := transcript.NewDecoder(r, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			n, peak := 0, uint64(0)
			var end *transcript.Meta
			for {
				it, err := d.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if it.End != nil {
					end = it.End
				}
				if it.Message != nil {
					n++
				}
				if n%200 == 0 {
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapAlloc)
				}
			}
			if n != r.units+1 || end == nil {
				t.Fatalf("%d messages of %d, end %v", n, r.units+1, end)
			}
			if c.tail != "" && string(end.System) != `"S"` {
				t.Errorf("what stands behind the messages is lost: %s", end.System)
			}
			t.Logf("%d MB in memory for a file of %d MB", (peak-min(peak, before.HeapAlloc))>>20, size>>20)
			if grown := peak - min(peak, before.HeapAlloc); grown > c.limit {
				t.Errorf("%d MB in memory for a file of %d MB; the limit is %d MB", grown>>20, size>>20, c.limit>>20)
			}
		})
	}
}

// endless makes a file of left bytes as it is read.
type endless struct {
	head, tail string
	unit       func(int) string
	left       int
	units      int
	buf        bytes.Buffer
	ended      bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.buf.Len() == 0 {
		switch {
		case e.head != "":
			e.buf.WriteString(e.head)
			e.head = ""
		case e.left > 0:
			e.units++
			s := e.unit(e.units)
			e.left -= len(s)
			e.buf.WriteString(s)
		case !e.ended:
			e.ended = true
			e.buf.WriteString(e.tail)
		}
	}
	return e.buf.Read(p)
}
