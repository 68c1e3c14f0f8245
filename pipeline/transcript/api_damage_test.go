package transcript_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

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

// What is wrong with a file is said with its line, and lenient reading goes on behind it and counts.
func TestDamageOfAPIs(t *testing.T) {
	t.Parallel()
	user := codexSaid("user", "a")
	const (
		session    = `{"sessionId":"s","projectHash":"p","messages":[`
		entry      = `{"id":"1","type":"user","content":"a"}`
		init       = `{"type":"system","subtype":"init","session_id":"s","model":"m","permissionMode":"default"}` + "\n"
		streamSaid = `{"type":"user","message":{"role":"user","content":"a"},"parent_tool_use_id":null,` +
			`"session_id":"s"}` + "\n"
		input    = `{"model":"gpt-x","input":[{"role":"user","content":"a"}`
		contents = `{"contents":[{"role":"user","parts":[{"text":"a"}]}`
	)
	for _, c := range []struct {
		name     string
		options  transcript.Options
		in       string
		err      string
		messages int // read leniently
		damaged  int
	}{
		{
			"codex: a line cut short",
			transcript.Options{},
			codexHead + user + `{"timestamp":"t","type":"resp` + "\n" + user,
			"line 3: it ends in the middle", 2, 1,
		},
		{
			"codex: cut short at the end",
			transcript.Options{},
			codexHead + user + user[:40],
			"line 3: it ends in the middle", 1, 1,
		},
		{
			"codex: no JSON in a line",
			transcript.Options{},
			codexHead + "~\n" + user,
			"line 2: expected a value, found '~'", 1, 1,
		},
		{"codex: not an object", transcript.Options{}, codexHead + "[1]\n" + user, "line 2: expected a record", 1, 1},
		{
			"codex: a record without a payload",
			transcript.Options{},
			codexHead + `{"type":"response_item"}` + "\n" + user,
			"line 2: a record without a type or a payload", 1, 1,
		},
		{
			"codex: an item that is no object",
			transcript.Options{},
			codexHead + `{"type":"response_item","payload":7}` + "\n" + user,
			"line 2: bad_request: no message of format codex", 1, 1,
		},
		{
			"codex: a role that there is not",
			transcript.Options{},
			codexHead + codexSaid("robot", "a") + user,
			"line 2: bad_request: no message of format codex: its role is not", 1, 1,
		},
		{
			"codex: a compaction with an item that is none",
			transcript.Options{},
			codexHead + user + `{"type":"compacted","payload":{"message":"","replacement_history":[7]}}` + "\n" + user,
			"line 3: bad_request: no message of format codex", 2, 1,
		},
		{
			"codex: a line over the limit",
			transcript.Options{MaxMessageBytes: 200},
			codexHead + user + codexSaid("user", strings.Repeat("x", 200)) + user,
			"line 3: a line of more than 200 bytes; the limit can be raised", 2, 1,
		},

		{
			"gemini-cli log: a line cut short",
			transcript.Options{},
			logHead + logSaid("1", "a") + `{"id":"2","ty` + "\n" + logSaid("3", "b"), "line 3: it ends in the middle",
			2, 1,
		},
		{
			"gemini-cli log: a record of no kind",
			transcript.Options{},
			logHead + `{"id":"2"}` + "\n" + logSaid("3", "b"),
			"line 2: a record that is neither a message nor a change", 1, 1,
		},
		{
			"gemini-cli log: a content that is a number",
			transcript.Options{},
			logHead + `{"id":"2","type":"user","content":7}` + "\n" + logSaid("3", "b"),
			"line 2: bad_request: no message of format gemini-cli: its content is neither", 1, 1,
		},
		{
			"gemini-cli log: a $set with a message that is none",
			transcript.Options{},
			logHead + `{"$set":{"messages":[7]}}` + "\n" + logSaid("3", "b"), "line 2: a message in $set is no object",
			1, 1,
		},
		{
			"gemini-cli session: cut short in a message",
			transcript.Options{},
			session + entry + ",\n" + `{"id":"2",`,
			"line 2: it ends in the middle", 1, 1,
		},
		{
			"gemini-cli session: a message without a type",
			transcript.Options{},
			session + entry + ",\n" + `{"id":"2"}` + "," + entry + "]}", "line 2: a message without a type", 2, 1,
		},
		{
			"gemini-cli session: no comma",
			transcript.Options{},
			session + entry + "\n" + entry + "]}",
			`line 2: expected a comma or ']', found '{'`, 1, 1,
		},
		{
			"gemini-cli session: a message over the limit",
			transcript.Options{MaxMessageBytes: 100},
			session + entry + ",\n" + strings.Replace(entry, `"a"`, `"`+strings.Repeat("x", 100)+`"`, 1) + "," + entry +
				"]}", "line 2: a message of more than 100 bytes; the limit can be raised", 2, 1,
		},

		{
			"claude-stream-json: a line cut short",
			transcript.Options{},
			init + streamSaid + `{"type":"assis` + "\n" + streamSaid,
			"line 3: it ends in the middle", 2, 1,
		},
		{
			"claude-stream-json: an event without a type",
			transcript.Options{},
			init + `{"session_id":"s"}` + "\n" + streamSaid,
			"line 2: a record without a type", 1, 1,
		},
		{
			"claude-stream-json: an event without a message",
			transcript.Options{},
			init + `{"type":"user","parent_tool_use_id":null}` + "\n" + streamSaid,
			"line 2: bad_request: no message of format claude-stream-json: a user record has no message", 1, 1,
		},

		{
			"openai-responses: cut short in an item",
			transcript.Options{},
			input + ",\n" + `{"type":"rea`,
			"line 2: it ends in the middle", 1, 1,
		},
		{
			"openai-responses: an item that is a number",
			transcript.Options{},
			input + ",\n7," + `{"role":"user","content":"b"}]}`,
			"line 2: bad_request: no message of format openai-responses: ", 2, 1,
		},
		{
			"openai-responses: a role that there is not",
			transcript.Options{},
			input + ",\n" + `{"role":"robot","content":"b"}]}`,
			"line 2: bad_request: no message of format openai-responses: its role is not", 1, 1,
		},
		{
			"openai-responses: a content that is a number",
			transcript.Options{},
			input + ",\n" + `{"type":"message","role":"user","content":7}]}`,
			"line 2: bad_request: no message of format openai-responses: its content is neither", 1, 1,
		},
		{
			"openai-responses: neither input nor output",
			transcript.Options{Format: transcript.OpenAIResponses},
			`{"model":"m"}`,
			"line 1: the object has no array of messages", 0, 1,
		},
		{
			"openai-responses: input twice",
			transcript.Options{},
			input + `],"input":[]}`, "two arrays of messages", 1,
			1,
		},
		{
			"openai-responses: an item over the limit",
			transcript.Options{MaxMessageBytes: 100},
			input + ",\n" + `{"role":"user","content":"` + strings.Repeat("x", 100) +
				`"},{"role":"user","content":"b"}]}`,
			"line 2: a message of more than 100 bytes; the limit can be raised", 2, 1,
		},
		{
			"openai-responses: a number",
			transcript.Options{Format: transcript.OpenAIResponses},
			`7`,
			"line 1: expected a request object or an array, found '7'", 0, 1,
		},

		{
			"google: cut short in a Content",
			transcript.Options{},
			contents + ",\n" + `{"role":"mod`,
			"line 2: it ends in the middle", 1, 1,
		},
		{
			"google: a Content that is a number",
			transcript.Options{},
			contents + ",\n7," + `{"role":"user","parts":[{"text":"b"}]}]}`,
			"line 2: bad_request: no message of format google: ", 2, 1,
		},
		{
			"google: a role that there is not",
			transcript.Options{},
			contents + ",\n" + `{"role":"robot","parts":[{"text":"b"}]}]}`,
			"line 2: bad_request: no message of format google: its role is not", 1, 1,
		},
		{
			"google: a part that is none",
			transcript.Options{},
			contents + ",\n" + `{"role":"model","parts":[7]}]}`,
			"line 2: bad_request: no message of format google: a part is no object", 1, 1,
		},
		{
			"google: no contents",
			transcript.Options{Format: transcript.Google},
			`{"model":"m"}`, "line 1: the object has no array of messages",
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
				t.Errorf("read leniently: %d messages, %d damaged; want %d, %d\n%s", messages, damaged, c.messages,
					c.damaged, dump(got))
			}
		})
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

// What a log of Gemini CLI changes further back than is held stays as it was, and that is said.
func TestGeminiChangesBeyondWhatIsHeld(t *testing.T) {
	t.Parallel()
	head := logHead + logSaid("1", "first "+strings.Repeat("x", 300)) +
		logSaid("2", "second "+strings.Repeat("x", 300)) + logSaid("3", "third")
	for _, c := range []struct {
		name, change, note string
		texts              []string
	}{
		{
			"a later state of a message", logSaid("1", "anew"), "it came again too far behind",
			[]string{"first", "second", "third"},
		},
		{"a rewind", `{"$rewindTo":"1"}` + "\n", "further back than what is held", []string{"first"}},
		{
			"a replacement", `{"$set":{"messages":[{"id":"9","type":"user","content":"anew"}]}}` + "\n",
			"it replaces messages that are not held any more",
			[]string{"first", "anew"},
		},
		{
			"a rewind within it", `{"$rewindTo":"3"}` + "\n", "a message that was taken back",
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

// The files are read in memory that does not grow with them.
func TestMemoryIsBoundedForAPIs(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some hundred MB")
	}
	const streamed = 48 << 20
	body := strings.Repeat("all work and no play ", 3000)
	line := func(form string) func(int) string {
		return func(i int) string { return fmt.Sprintf(form, i, body) + "\n" }
	}
	entry := func(form string) func(int) string {
		return func(i int) string {
			s := fmt.Sprintf(form, i, body)
			if i > 1 {
				s = "," + s
			}
			return s
		}
	}
	for _, c := range []struct {
		name       string
		format     transcript.Format
		head, tail string
		unit       func(i int) string
		size       int
		limit      uint64
	}{
		{"codex", transcript.Codex, codexHead, "", line(`{"timestamp":"t","type":"response_item","payload":{` +
			`"type":"function_call_output","call_id":"%d","output":"%s"}}`), 128 << 20, streamed},
		{
			"claude-stream-json", transcript.ClaudeStream,
			`{"type":"system","subtype":"init","session_id":"s","permissionMode":"default"}` + "\n", "",
			line(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%d",` +
				`"content":"%s"}]},"parent_tool_use_id":null,"session_id":"s"}`), 128 << 20, streamed,
		},
		{
			"gemini-cli session", transcript.GeminiCLI, `{"sessionId":"s","projectHash":"p","messages":[`, "]}",
			entry(`{"id":"%d","type":"user","content":"%s"}`), 128 << 20, streamed,
		},
		// These are held back up to holdBytes, and garbage comes on top of that.
		{
			"gemini-cli log", transcript.GeminiCLI, logHead, "", line(`{"id":"%d","type":"user","content":"%s"}`),
			384 << 20, 4 * transcript.HoldBytes,
		},
		{
			"openai-responses", transcript.OpenAIResponses, `{"model":"gpt-x","input":[`, "]}",
			entry(`{"type":"function_call_output","call_id":"%d","output":"%s"}`), 384 << 20, 4 * transcript.HoldBytes,
		},
		{
			"google", transcript.Google, `{"contents":[`, "]}",
			entry(`{"role":"user","parts":[{"functionResponse":{"name":"f%d","response":{"output":"%s"}}}]}`),
			384 << 20, 4 * transcript.HoldBytes,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			r := &endless{head: c.head, tail: c.tail, unit: c.unit, left: c.size}
			d, err := transcript.NewDecoder(r, transcript.Options{})
			if err != nil || d.Format() != c.format {
				t.Fatalf("%v: %v", d, err)
			}
			n, peak, ended := 0, uint64(0), false
			for {
				it, err := d.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				ended = ended || it.End != nil
				if it.Message != nil {
					n++
				}
				if n%200 == 0 {
					runtime.ReadMemStats(&now)
					peak = max(peak, now.HeapAlloc)
				}
			}
			if n != r.units || !ended {
				t.Fatalf("%d messages of %d, ended %v", n, r.units, ended)
			}
			grown := peak - min(peak, before.HeapAlloc)
			t.Logf("%d MB in memory for a file of %d MB", grown>>20, c.size>>20)
			if grown > c.limit {
				t.Errorf("%d MB in memory for a file of %d MB; the limit is %d MB", grown>>20, c.size>>20, c.limit>>20)
			}
		})
	}
}

func FuzzOpenAIResponses(f *testing.F) { fuzzDecoder(f, transcript.OpenAIResponses) }
func FuzzGoogle(f *testing.F)          { fuzzDecoder(f, transcript.Google) }
func FuzzCodex(f *testing.F)           { fuzzDecoder(f, transcript.Codex) }
func FuzzGeminiCLI(f *testing.F)       { fuzzDecoder(f, transcript.GeminiCLI) }
func FuzzClaudeStream(f *testing.F)    { fuzzDecoder(f, transcript.ClaudeStream) }
