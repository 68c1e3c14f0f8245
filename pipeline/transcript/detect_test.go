package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// What only one API has decides, wherever a system message is and whatever the model is called.
func TestDetectByWhatOnlyOneAPIHas(t *testing.T) {
	t.Parallel()
	const (
		user      = `{"role":"user","content":"Where is the lamp?"}`
		assistant = `{"role":"assistant","content":"In the hall."}`
		operator  = `{"role":"system","content":"Only look."}`
	)
	anthropic := []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"a lamp"}]}`,
		`{"role":"user","content":[{"tool_use_id":"a","type":"tool_result","content":"a lamp"}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"text","text":"z"}]}`,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_fetch","input":{}}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}`,
	}
	openAI := []string{
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look",` +
			`"arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"a lamp"}`,
		`{"role":"tool","tool_call_id":"a","content":"a lamp"}`,
		`{"role":"function","name":"look","content":"a lamp"}`,
		`{"role":"developer","content":"Only look."}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`,
	}
	models := []string{``, `"model":"claude-sonnet-4-5",`, `"model":"gpt-4.1",`}
	check := func(in string, want transcript.Format) {
		t.Helper()
		if got, err := transcript.Detect([]byte(in)); got != want || err != nil {
			t.Errorf("%s\nis taken for %q: %v", in, got, err)
		}
	}
	for _, model := range models {
		for _, list := range [][]string{
			{user}, {user, operator}, {user, assistant, user, operator}, {user, operator, assistant},
		} {
			head := strings.Join(list, ",")
			for _, a := range anthropic {
				check(fmt.Sprintf(`{%s"messages":[%s,%s]}`, model, head, a), transcript.Anthropic)
				check(fmt.Sprintf(`[%s,%s,%s]`, head, a, operator), transcript.Anthropic)
			}
			for _, o := range openAI {
				check(fmt.Sprintf(`{%s"messages":[%s,%s]}`, model, head, o), transcript.OpenAI)
				check(fmt.Sprintf(`[%s,%s,%s]`, head, o, operator), transcript.OpenAI)
			}
			check(fmt.Sprintf(`{%s"system":"Be brief.","max_tokens":9,"messages":[%s]}`, model, head), transcript.Anthropic)
			check(fmt.Sprintf(`{%s"tools":[{"type":"function","function":{"name":"f"}}],"messages":[%s]}`, model, head),
				transcript.OpenAI)
		}
		check(fmt.Sprintf(`{%s"messages":[%s,%s]}`, model, operator, user), transcript.OpenAI)
	}
	check(fmt.Sprintf(`{"model":"claude-x","messages":[%s,%s]}`, user, operator), transcript.Anthropic)
	check(fmt.Sprintf(`{"model":"gpt-x","messages":[%s,%s]}`, user, operator), transcript.OpenAI)
}

// Calls of two APIs in one list have no right reading.
func TestDetectRefusesMixedCalls(t *testing.T) {
	t.Parallel()
	in := `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a",` +
		`"name":"look","input":{}}]},{"role":"tool","tool_call_id":"a","content":"a lamp"}]}`
	got, err := transcript.Detect([]byte(in))
	if err == nil || pipeline.KindOf(err) != pipeline.BadRequest || !strings.Contains(err.Error(), `"anthropic"`) {
		t.Errorf("it is taken for %q: %v", got, err)
	}
}

// Every recorded request of a program is of the API that it was sent to.
func TestDetectRecordedRequests(t *testing.T) {
	t.Parallel()
	eachRecordedRequest(t, func(t *testing.T, f corpus.File, r recordedRequest) {
		if got, err := transcript.Detect(r.Body); got != r.format() || err != nil {
			t.Errorf("request %s to %s is taken for %q: %v", r.N, r.Path, got, err)
		}
	})
}
