package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// A document that is too large to be held back is emitted as it is read, and is the same except for what is unknown
// at its start.
func TestLargeDocumentsAreGivenOutAsTheyCome(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"anthropic/request.json", "anthropic/array.json", "openai/request.json",
		"openai/mini-swe.traj.json", "openai/swe.traj", "openai/tau.json",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile("testdata/" + path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := items(t, bytes.NewReader(data), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := tight(t, string(data), 1, 1, transcript.Options{})
			got, err := drain(d)
			if err != nil {
				t.Fatal(err)
			}
			checkItems(t, got)
			if fmt.Sprint(natives(got)) != fmt.Sprint(natives(want)) {
				t.Errorf("got\n%s\nwant\n%s", natives(got), natives(want))
			}
			for i := range want {
				if want[i].End != nil && dumpMeta(*want[i].End) != dumpMeta(*got[i].End) {
					t.Errorf("the end says %s, want %s", dumpMeta(*got[i].End), dumpMeta(*want[i].End))
				}
			}
		})
	}
}

func TestLogsOfRequests(t *testing.T) {
	t.Parallel()
	request := func(messages ...string) string {
		var all []string
		for i, m := range messages {
			role := []string{"user", "assistant"}[i%2]
			all = append(all, fmt.Sprintf(`{"role":%q,"content":%q}`, role, m))
		}
		return `{"type":"request","request_params":{"model":"m","messages":[` + strings.Join(all, ",") + `]}}` + "\n"
	}
	in := request("a") + request("b") + request("a", "1", "2") + request("c") + request("b", "1", "2")
	all, err := drain(tight(t, in, 1<<20, 1<<20, transcript.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(natives(all)); strings.Count(got, `"content":"1"`) != 2 || strings.Count(got, "role") != 7 {
		t.Errorf("three conversations, interleaved: %s", got)
	}
	// With room for two only, the oldest conversation is emitted first; its later requests are a new conversation.
	all, err = drain(tight(t, in, 1<<20, 120, transcript.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	checkItems(t, all)
	starts := 0
	for _, it := range all {
		if it.Start != nil {
			starts++
		}
	}
	if starts != 4 {
		t.Errorf("%d conversations: %s", starts, dump(all))
	}
	if _, err = drain(tight(t, in, 1, 1<<20, transcript.Options{})); err == nil ||
		!strings.Contains(err.Error(), "line 1: one request of a log has messages of more than 1 bytes") {
		t.Errorf("a request over the bound: %v", err)
	}
	// Entries of a log that are not conversations are skipped.
	other := `[{"method":"GET","uri":"https://api.anthropic.com/v1/models","request":{"x":1},"response":{"data":[]}},` +
		`{"method":"POST","uri":"https://api.anthropic.com/v1/messages","request":{"messages":[{"role":"user",` +
		`"content":"a"}]},"response":"not an object"}]`
	if all, err = items(t, strings.NewReader(other), transcript.Options{}); err != nil || len(natives(all)) != 1 {
		t.Errorf("%v: %s", err, dump(all))
	}
}

func TestSubagentFilesOverTheBound(t *testing.T) {
	t.Parallel()
	side := func(i int) string {
		return fmt.Sprintf(
			`{"parentUuid":null,"isSidechain":true,"type":"user",`+
				`"message":{"role":"user","content":"%d"},"uuid":"s%d"}`+"\n", i, i)
	}
	in := side(1) + side(2) + side(3)
	all, err := drain(tight(t, in, 1, 0, transcript.Options{}))
	if err != nil || len(natives(all)) != 3 || !all[0].Start.Sidechain {
		t.Fatalf("%v: %s", err, dump(all))
	}
	checkItems(t, all)
	// A main conversation behind it can no longer replace it.
	in += userLine("main", "m")
	if _, err := drain(tight(t, in, 1, 0, transcript.Options{})); err == nil ||
		!strings.Contains(err.Error(),
			"line 4: a record of the main conversation after more than 1 bytes of subagents") {
		t.Errorf("got %v", err)
	}
	all, err = drain(tight(t, in, 1, 0, transcript.Options{Lenient: true}))
	if err != nil || len(natives(all)) != 3 {
		t.Errorf("%v: %s", err, dump(all))
	}
	// Within the bound it does, in any order.
	all, err = drain(tight(t, in, 1<<20, 0, transcript.Options{}))
	if err != nil || len(natives(all)) != 1 || all[0].Start.Sidechain {
		t.Errorf("%v: %s", err, dump(all))
	}
}

func TestMessagesOfSeveralRecords(t *testing.T) {
	t.Parallel()
	piece := func(id, block string, n int) string {
		return fmt.Sprintf(`{"isSidechain":false,"type":"assistant","message":{"role":"assistant","model":"m",`+
			`"id":%q,"content":[%s],"usage":{"input_tokens":1,"output_tokens":%d}},"uuid":"a%d"}`+"\n", id, block, n, n)
	}
	call := func(id string) string { return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"n","input":{}}`, id) }
	result := func(id string, n int) string {
		return fmt.Sprintf(`{"isSidechain":false,"type":"user","message":{"role":"user","content":[{`+
			`"type":"tool_result","tool_use_id":%q,"content":"r"}]},"uuid":"r%d"}`+"\n", id, n)
	}
	in := piece("m1", call("x"), 3) + result("x", 1) + userLine("meanwhile", "u") + "\n" + piece("m1", call("y"), 9) +
		piece("m1", `{"type":"text","text":"z"}`, 4) + result("y", 2) + piece("m2", call("q"), 5)
	all, err := items(t, strings.NewReader(in), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkItems(t, all)
	var got []string
	for _, it := range all {
		switch {
		case it.Message != nil:
			got = append(got, fmt.Sprint(it.Message.Role, it.Message.Calls(), it.Message.Results()))
		case it.Usage != nil:
			got = append(got, fmt.Sprint("usage ", it.Usage.Output))
		}
	}
	want := "assistant[x y] []|usage 9|tool[] [x]|user[] []|tool[] [y]|assistant[q] []|usage 5"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	// A message is emitted in its current state if too much is held back behind it.
	all, err = drain(tight(t, in, 1, 0, transcript.Options{}))
	if err != nil || len(natives(all)) < 6 {
		t.Errorf("%v: %s", err, dump(all))
	}
	// A broken record does not affect other records.
	broken := piece("m1", call("x"), 1) + strings.Replace(piece("m1", call("y"), 2), `"role"`, `"rule"`, 1) +
		piece("m1", call("z"), 3)
	const noRole = "line 2: bad_request: not a message of format claude-code: the message has no role"
	_, err = items(t, strings.NewReader(broken), transcript.Options{})
	if err == nil || !strings.Contains(err.Error(), noRole) {
		t.Errorf("got %v, want %s", err, noRole)
	}
	all, err = items(t, strings.NewReader(broken), transcript.Options{Lenient: true})
	if n := natives(all); err != nil || len(n) != 1 || strings.Count(n[0], "\n") != 1 {
		t.Errorf("%v: %s", err, dump(all))
	}
}

// The beginning of a file may be longer than the part that detection reads.
// windowBytes is the part of a file that detection reads.
const windowBytes = 256 << 10

func TestDetectFromTheStart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*windowBytes)
	many := strings.Repeat(`{"role":"user","content":"a"},{"role":"assistant","content":"b"},`, 3000)
	for _, c := range []struct {
		in   string
		want transcript.Format
	}{
		{`{"tools":[{"name":"f","input_schema":{}},{"description":"` + long, transcript.Anthropic},
		{`{"max_tokens":1,"system":[{"type":"text","text":"` + long, transcript.Anthropic},
		{`{"model":"claude-x","messages":[{"role":"user","content":"` + long, transcript.Anthropic},
		{`{"messages":[` + many + `{"role":"user","content":[{"type":"tool_result"`, transcript.Anthropic},
		{`{"model":"gpt-x","messages":[{"role":"user","content":"` + long, transcript.OpenAI},
		{`{"tools":[{"type":"function","function":{"name":"f","parameters":{"x":"` + long, transcript.OpenAI},
		{`{"model":"claude-x","messages":[{"role":"system","content":"` + long, transcript.OpenAI},
		{`{"messages":[` + many + `{"role":"tool","content":"`, transcript.OpenAI},
		{`{"trajectory":[{"action":"ls","observation":"` + long, transcript.OpenAI},
		{`[{"task_id":1,"traj":[{"role":"system","content":"` + long, transcript.OpenAI},
		{
			`[{"method":"POST","uri":"https://api.anthropic.com/v1/messages","request":{"system":"` + long,
			transcript.Anthropic,
		},
		{`{"parentUuid":null,"isSidechain":false,"message":{"role":"user","content":"` + long, transcript.ClaudeCode},
		{`{"type":"summary","summary":"x","leafUuid":"y"}`, transcript.ClaudeCode},
		{`{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"` + long, transcript.ClaudeCode},
	} {
		if f, err := transcript.Detect([]byte(c.in)[:min(len(c.in), windowBytes)]); f != c.want {
			t.Errorf("%.80s… is taken for %q: %v", c.in, f, err)
		}
	}
}

// JSON that is only similar to a transcript is not detected as one.
func TestDetectRefusesOtherFormats(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"name":"x","version":"1.0.0","dependencies":{"a":"1"}}`,
		`[{"id":1,"title":"t","content":"c"}]`,
		`{"type":"FeatureCollection","features":[{"type":"Feature","properties":{}}]}`,
		`{"events":[{"id":1,"timestamp":2}]}`,
		`{"time":"2026-01-01","level":"info","message":"started"}`,
		`{"messages":{"hello":"Hallo"}}`,
		`{"runs":[{"id":1}],"steps":[{"name":"build"}]}`,
	} {
		if f, err := transcript.Detect([]byte(in)); err == nil {
			t.Errorf("%s is taken for %s", in, f)
		} else if pipeline.KindOf(err) != pipeline.BadRequest {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := transcript.Detect(nil); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("nothing at all: %v", err)
	}
	var e *pipeline.Error
	if _, err := transcript.CodecFor("none"); !errors.As(err, &e) || e.Kind != pipeline.BadRequest {
		t.Errorf("got %v", err)
	}
}
