package transcript_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"precis/pipeline/transcript"
)

// A memoryCase is a file of any length: a head, units and a tail.
type memoryCase struct {
	name       string
	head, tail string
	unit       func(i int) string
	size       int
	limit      uint64
}

const (
	streamed = 48 << 20 // bytes in memory for a file whose messages are emitted as they are read
	// held is for files of which up to HoldBytes are held back, plus garbage.
	held = 4 * transcript.HoldBytes
)

var body = strings.Repeat("all work and no play ", 3000)

func line(form string) func(int) string {
	return func(i int) string { return fmt.Sprintf(form, i, body) + "\n" }
}

// entry is line for the elements of an array.
func entry(form string) func(int) string {
	return func(i int) string {
		s := fmt.Sprintf(form, i, body)
		if i > 1 {
			s = "," + s
		}
		return s
	}
}

var memoryCases = []memoryCase{
	{
		"claude-code", "", "", line(`{"parentUuid":"x","isSidechain":false,"type":"user","uuid":"%036d","message":{` +
			`"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"%s"}]}}`),
		256 << 20, held,
	},
	{
		"anthropic", `{"model":"claude-x","messages":[`, `],"system":"S"}`,
		entry(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"%d","content":"%s"}]}`), 256 << 20, held,
	},
	{"codex", codexHead, "", line(`{"timestamp":"t","type":"response_item","payload":{` +
		`"type":"function_call_output","call_id":"%d","output":"%s"}}`), 128 << 20, held},
	{
		"claude-stream-json", `{"type":"system","subtype":"init","session_id":"s","permissionMode":"default"}` + "\n",
		"",
		line(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%d",` +
			`"content":"%s"}]},"parent_tool_use_id":null,"session_id":"s"}`), 128 << 20, streamed,
	},
	{
		"gemini-cli session", `{"sessionId":"s","projectHash":"p","messages":[`, "]}",
		entry(`{"id":"%d","type":"user","content":"%s"}`), 128 << 20, streamed,
	},
	{
		"gemini-cli log", logHead, "", line(`{"id":"%d","type":"user","content":"%s"}`), 384 << 20,
		held,
	},
	{
		"openai-responses", `{"model":"gpt-x","input":[`, "]}",
		entry(`{"type":"function_call_output","call_id":"%d","output":"%s"}`), 384 << 20, held,
	},
	{
		"google", `{"contents":[`, "]}",
		entry(`{"role":"user","parts":[{"functionResponse":{"name":"f%d","response":{"output":"%s"}}}]}`),
		384 << 20, held,
	},
	{"pi", `{"type":"session","id":"s","cwd":"/"}` + "\n", "", line(`{"type":"message","message":{` +
		`"role":"toolResult","toolCallId":"%d","content":[{"type":"text","text":"%s"}]}}`), 128 << 20, streamed},
	{
		"kimi", `{"role":"_checkpoint","id":0}` + "\n", "", line(`{"role":"tool","tool_call_id":"%d","content":"%s"}`),
		128 << 20, streamed,
	},
	{
		"copilot", `{"type":"session.start","data":{"sessionId":"s"}}` + "\n", "",
		line(`{"type":"tool.execution_complete","data":{"toolCallId":"%d","success":true,"result":{` +
			`"content":"%s"}}}`), 128 << 20, streamed,
	},
	{"roo", "[", "]", entry(`{"ts":%d,"role":"user","content":"%s"}`), 128 << 20, streamed},
	{
		"opencode", `{"info":{"slug":"s","projectID":"p"},"messages":[`, "]}",
		entry(`{"info":{"id":"%d","role":"user"},"parts":[{"type":"text","text":"%s"}]}`), 128 << 20, held,
	},
	{
		"adk", `{"events":[`, "]}", entry(
			`{"author":"user","invocation_id":"%d","content":{"role":"user","parts":[{"text":"%s"}]}}`), 128 << 20,
		held,
	},
	{
		"openhands", `{"instance_id":"i","history":[`, "]}",
		entry(`{"id":%d,"observation":"run","cause":1,"content":"%s"}`), 128 << 20, streamed,
	},
}

// The memory that reading needs does not grow with the file.
func TestMemoryIsBounded(t *testing.T) {
	for _, c := range memoryCases {
		t.Run(c.name, func(t *testing.T) {
			runtime.GC()
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			r := &endless{head: c.head, tail: c.tail, unit: c.unit, left: c.size}
			d, err := transcript.NewDecoder(r, transcript.Options{})
			if err != nil || !strings.HasPrefix(c.name, string(d.Format())) {
				t.Fatalf("the file is taken for %v: %v", d, err)
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
			if n != r.units || end == nil {
				t.Fatalf("%d messages of %d, end %v", n, r.units, end)
			}
			if strings.Contains(c.tail, "system") && string(end.System) != `"S"` {
				t.Errorf("the system prompt behind the messages is %q", end.System)
			}
			grown := peak - min(peak, before.HeapAlloc)
			t.Logf("%d MB in memory for a file of %d MB", grown>>20, c.size>>20)
			if grown > c.limit {
				t.Errorf("%d MB in memory for a file of %d MB; the limit is %d MB", grown>>20, c.size>>20, c.limit>>20)
			}
		})
	}
}

// endless generates a file of left bytes while it is read.
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
