package transcript_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// What is wrong with a file of an agent or a framework is said with its line, and lenient reading goes on behind it
// and counts.
func TestDamageOfAgents(t *testing.T) {
	t.Parallel()
	const (
		pi       = `{"type":"session","id":"s","cwd":"/"}` + "\n"
		piUser   = `{"type":"message","message":{"role":"user","content":"a"}}` + "\n"
		kimiUser = `{"role":"user","content":"a"}` + "\n"
		kimiMark = `{"role":"_checkpoint","id":0}` + "\n"
		opened   = `{"info":{"id":"ses","slug":"s","projectID":"p"},"messages":[`
		openUser = `{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"a"}]}`
		adkUser  = `{"author":"user","content":{"role":"user","parts":[{"text":"a"}]},"id":"e"}`
		copilot  = `{"type":"session.start","data":{"sessionId":"s"},"id":"0","parentId":null}` + "\n"
		cursor   = `{"role":"user","message":{"content":[{"type":"text","text":"a"}]}}` + "\n"
		ms       = `{"id":"0","messages":[{"role":"user","contents":[{"type":"text","text":"a"}]}`
		hands    = `{"instance_id":"i","history":[{"action":"message","content":"a"}`
		handsSDK = `{"id":"1","timestamp":"t","source":"user","llm_message":{"role":"user","content":[{` +
			`"type":"text","text":"a"}]},"kind":"MessageEvent"}` + "\n"
		rooUser   = `{"role":"user","content":"a","ts":1}`
		langHuman = `{"type":"human","content":"a"}`
		vercelAI  = `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{}}]}`
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
			"pi: a line cut short",
			transcript.Options{},
			pi + piUser + `{"type":"mess` + "\n" + piUser,
			"line 3: it ends in the middle", 2, 1,
		},
		{
			"pi: no JSON in a line",
			transcript.Options{},
			pi + "~\n" + piUser, "line 2: expected a value, found '~'", 1,
			1,
		},
		{"pi: not an object", transcript.Options{}, pi + "[1]\n" + piUser, "line 2: expected a record", 1, 1},
		{
			"pi: an entry without a type",
			transcript.Options{},
			pi + `{"id":"x"}` + "\n" + piUser, "line 2: an entry without a type",
			1, 1,
		},
		{
			"pi: a role that there is not",
			transcript.Options{},
			pi + `{"type":"message","message":{"role":"robot","content":"a"}}` + "\n" + piUser,
			"line 2: bad_request: no message of format pi: its role is not", 1, 1,
		},
		{
			"pi: a content that is a number",
			transcript.Options{},
			pi + piUser + `{"type":"message","message":{"role":"assistant","content":7}}`,
			"line 3: bad_request: no message of format pi: its content is neither", 1, 1,
		},
		{
			"pi: a compaction without a summary",
			transcript.Options{},
			pi + `{"type":"compaction","firstKeptEntryIndex":1}` + "\n" + piUser,
			"line 2: bad_request: no message of format pi: a compaction entry has no summary", 1, 1,
		},
		{
			"pi: in a tree, with its line",
			transcript.Options{},
			pi + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"a"}}` + "\n" +
				`{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":[7]}}`,
			"line 3: bad_request: no message of format pi: a content block is no object", 1, 1,
		},
		{
			"pi: a line over the limit",
			transcript.Options{MaxMessageBytes: 100},
			pi + `{"type":"message","message":{"role":"user","content":"` + strings.Repeat("x", 100) + `"}}` + "\n" +
				piUser, "line 2: a line of more than 100 bytes; the limit can be raised", 1, 1,
		},
		{
			"kimi: a message without a role",
			transcript.Options{},
			kimiMark + `{"content":"a"}` + "\n" + kimiUser,
			"line 2: bad_request: no message of format kimi: it has no role", 1, 1,
		},
		{
			"kimi: a role that there is not",
			transcript.Options{},
			kimiMark + `{"role":"robot","content":"a"}` + "\n" + kimiUser,
			"no message of format kimi: its role is not", 1, 1,
		},
		{
			"cursor: a line without content",
			transcript.Options{},
			cursor + `{"role":"assistant","message":{}}` + "\n" + cursor,
			"line 2: bad_request: no message of format cursor: its message has no content", 2, 1,
		},
		{
			"cursor: a role that there is not",
			transcript.Options{},
			cursor + `{"role":"robot","message":{"content":[]}}` + "\n" + cursor,
			"no message of format cursor: its role is not", 2, 1,
		},
		{
			"copilot: an event without data",
			transcript.Options{},
			copilot + `{"type":"user.message"}` + "\n" + `{"type":"user.message","data":{"content":"a"}}`,
			"line 2: an event without a type or without data", 1, 1,
		},
		{
			"copilot: two events on a line, one of them broken",
			transcript.Options{},
			copilot + `{"type":"user.message","data":{"content":"a"}}{"type":` + "\n" +
				`{"type":"user.message","data":{"content":"b"}}`, "line 2: it ends in the middle", 2, 1,
		},
		{
			"copilot: the older object, with a message that is none",
			transcript.Options{},
			`{"sessionId":"s","chatMessages":[{"role":"user","content":"a"},` + "\n" + `{"content":"b"}]}`,
			"line 2: bad_request: no message of format copilot: it has no role", 1, 1,
		},
		{
			"openhands: an event that is none",
			transcript.Options{},
			hands + ",\n{}]}",
			"line 2: an event without a kind, an action or an observation", 1, 1,
		},
		{
			"openhands: cut short in a run",
			transcript.Options{},
			hands + ",\n" + `{"action":`, "line 2: it ends in the middle", 1,
			1,
		},
		{
			"openhands: one run of several is broken",
			transcript.Options{},
			hands + "],\n" + hands + "]}",
			"line 2: expected a key, found '{'", 1, 1,
		},
		{
			"openhands: a role that there is not",
			transcript.Options{},
			handsSDK + `{"id":"2","source":"user","llm_message":{"role":"robot"},"kind":"MessageEvent"}` + "\n",
			"line 2: bad_request: no message of format openhands: its llm_message has no role", 1, 1,
		},
		{
			"opencode: a message without parts",
			transcript.Options{},
			opened + openUser + ",\n{\"info\":{\"role\":\"user\"}}]}",
			"line 2: bad_request: no message of format opencode: it has no info and parts", 1, 1,
		},
		{
			"opencode: cut short between messages",
			transcript.Options{},
			opened + openUser + ",", "line 1: it ends in the middle", 1,
			1,
		},
		{
			"opencode: messages twice",
			transcript.Options{},
			opened + openUser + `],"messages":[]}`, "it has two arrays of records",
			1, 1,
		},
		{
			"opencode: no messages",
			transcript.Options{Format: transcript.OpenCode},
			`{"info":{}}`,
			`line 1: the object has no array of records under "messages"`, 0, 1,
		},
		{
			"opencode: a message over the limit",
			transcript.Options{MaxMessageBytes: 100},
			opened + openUser + ",\n" + strings.Replace(openUser, `"a"`, `"`+strings.Repeat("x", 100)+`"`, 1) + `]}`,
			"line 2: a message of more than 100 bytes; the limit can be raised", 1, 1,
		},
		{
			"opencode: too much beside the messages",
			transcript.Options{MaxMessageBytes: 100},
			`{"info":{"slug":"` + strings.Repeat("x", 100) + `"},"messages":[` + openUser + `]}`,
			"what stands beside the records is over 100 bytes", 0, 1,
		},
		{
			"opencode: a list",
			transcript.Options{Format: transcript.OpenCode},
			`[{}]`,
			"line 1: expected an object, found '['", 0, 1,
		},
		{
			"adk: an event with parts that are none",
			transcript.Options{},
			`{"events":[` + adkUser + ",\n" + `{"author":"a","content":{"role":"model","parts":[7]}}]}`,
			"line 2: bad_request: no message of format adk: a part is no object", 1, 1,
		},
		{
			"adk: a role that there is not",
			transcript.Options{},
			`{"events":[` + adkUser + `,{"author":"a","content":{"role":"robot","parts":[]}}]}`,
			"the role of its content is not user or model", 1, 1,
		},
		{
			"ms-agent: contents that are none",
			transcript.Options{},
			ms + ",\n" + `{"role":"user","contents":7}]}`,
			"line 2: bad_request: no message of format ms-agent: its contents are no array", 1, 1,
		},
		{
			"ms-agent: a role that there is not",
			transcript.Options{},
			ms + `,{"role":{"value":"robot"},"contents":[]}]}`,
			"its role is not system, user, assistant or tool", 1, 1,
		},
		{
			"roo: no comma",
			transcript.Options{},
			"[" + rooUser + "\n" + rooUser + "]", `line 2: expected a comma or ']', found '{'`,
			1, 1,
		},
		{
			"roo: a role that there is not",
			transcript.Options{},
			"[" + rooUser + `,{"role":"robot","content":"a","ts":1}]`,
			"no message of format roo: its role is not", 1, 1,
		},
		{
			"roo: an entry that is a number",
			transcript.Options{},
			"[" + rooUser + ",\n7," + rooUser + "]",
			"line 2: expected a record, found JSON that is no object", 2, 1,
		},
		{
			"langchain: a type that there is not",
			transcript.Options{},
			"[" + langHuman + ",\n" + `{"type":"robot","content":"a"}]`,
			"line 2: bad_request: no message of format langchain: its type is not", 1, 1,
		},
		{
			"langchain: a content that is a number",
			transcript.Options{},
			"[" + langHuman + `,{"type":"ai","content":7}]`,
			"no message of format langchain: its content is neither", 1, 1,
		},
		{
			"vercel: a content that is missing",
			transcript.Options{},
			"[" + vercelAI + ",\n" + `{"role":"user"}]`,
			"line 2: bad_request: no message of format vercel: its content is neither", 1, 1,
		},
		{
			"vercel: a role that there is not",
			transcript.Options{},
			"[" + vercelAI + `,{"role":"data","content":"a"}]`,
			"its role is not system, user, assistant or tool", 1, 1,
		},
		{
			"vercel: a message that is none in a log",
			transcript.Options{},
			`{"runs":[{"id":"r","started_at":"t"}],"steps":[{` +
				`"id":"s","run_id":"r","model_id":"m","input":"{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"},{` +
				`\"role\":7}]}"}]}`, "line 1: bad_request: no message of format vercel: it has no role", 1, 1,
		},
		{
			"vercel: a number",
			transcript.Options{Format: transcript.Vercel},
			`7`,
			"line 1: expected an object or an array, found '7'", 0, 1,
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

// A tree that is too large to be held is given out in the order of the file, and that is said.
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
	if !strings.Contains(got, "too large to tell its branches apart") || !strings.Contains(got, `text="left"`) ||
		!strings.Contains(got, "kept 3") {
		t.Errorf("got %s", got)
	}
}

// The files of agents are read in memory that does not grow with them.
func TestMemoryIsBoundedForAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some hundred MB")
	}
	const size = 128 << 20
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
		format     transcript.Format
		head, tail string
		unit       func(i int) string
	}{
		{transcript.Pi, `{"type":"session","id":"s","cwd":"/"}` + "\n", "", line(`{"type":"message","message":{` +
			`"role":"toolResult","toolCallId":"%d","content":[{"type":"text","text":"%s"}]}}`)},
		{
			transcript.Kimi, `{"role":"_checkpoint","id":0}` + "\n", "",
			line(`{"role":"tool","tool_call_id":"%d","content":"%s"}`),
		},
		{
			transcript.Copilot, `{"type":"session.start","data":{"sessionId":"s"}}` + "\n", "",
			line(`{"type":"tool.execution_complete","data":{"toolCallId":"%d","success":true,"result":{` +
				`"content":"%s"}}}`),
		},
		{transcript.Roo, "[", "]", entry(`{"ts":%d,"role":"user","content":"%s"}`)},
		{
			transcript.OpenCode, `{"info":{"slug":"s","projectID":"p"},"messages":[`, "]}",
			entry(`{"info":{"id":"%d","role":"user"},"parts":[{"type":"text","text":"%s"}]}`),
		},
		{transcript.ADK, `{"events":[`, "]}", entry(
			`{"author":"user","invocation_id":"%d","content":{"role":"user","parts":[{"text":"%s"}]}}`)},
		{
			transcript.OpenHands, `{"instance_id":"i","history":[`, "]}",
			entry(`{"id":%d,"observation":"run","cause":1,"content":"%s"}`),
		},
	} {
		t.Run(string(c.format), func(t *testing.T) {
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			r := &endless{head: c.head, tail: c.tail, unit: c.unit, left: size}
			d, err := transcript.NewDecoder(r, transcript.Options{})
			if err != nil || d.Format() != c.format {
				t.Fatalf("%s: %v", d.Format(), err)
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
			const limit = 48 << 20
			if grown := peak - min(peak, before.HeapAlloc); grown > limit {
				t.Errorf("%d MB in memory for a file of %d MB", grown>>20, size>>20)
			}
		})
	}
}

func FuzzVercel(f *testing.F)    { fuzzDecoder(f, transcript.Vercel) }
func FuzzLangChain(f *testing.F) { fuzzDecoder(f, transcript.LangChain) }
func FuzzOpenCode(f *testing.F)  { fuzzDecoder(f, transcript.OpenCode) }
func FuzzPi(f *testing.F)        { fuzzDecoder(f, transcript.Pi) }
func FuzzOpenHands(f *testing.F) { fuzzDecoder(f, transcript.OpenHands) }
func FuzzRoo(f *testing.F)       { fuzzDecoder(f, transcript.Roo) }
func FuzzKimi(f *testing.F)      { fuzzDecoder(f, transcript.Kimi) }
func FuzzCursor(f *testing.F)    { fuzzDecoder(f, transcript.Cursor) }
func FuzzCopilot(f *testing.F)   { fuzzDecoder(f, transcript.Copilot) }
func FuzzADK(f *testing.F)       { fuzzDecoder(f, transcript.ADK) }
func FuzzMSAgent(f *testing.F)   { fuzzDecoder(f, transcript.MSAgent) }
