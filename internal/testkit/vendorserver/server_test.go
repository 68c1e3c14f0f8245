package vendorserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"precis/internal/testkit/vendorserver"
)

// ask sends a whole-answer request to the Anthropic side and gives status, text or error message.
func ask(t *testing.T, srv *vendorserver.Server, model, prompt string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": model, "max_tokens": 100, "system": "the system",
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return post(t, srv.URL+"/v1/messages", "k", body)
}

func post(t *testing.T, url, key string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctxOf(t), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close() // read to the end
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, "broken off"
	}
	var answer struct {
		Content []struct{ Text string }
		Choices []struct{ Message struct{ Content string } }
		Error   struct{ Message string }
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return res.StatusCode, string(raw)
	}
	text := answer.Error.Message
	for _, c := range answer.Content {
		text += c.Text
	}
	for _, c := range answer.Choices {
		text += c.Message.Content
	}
	return res.StatusCode, text
}

func texts(s ...string) []vendorserver.Answer {
	var out []vendorserver.Answer
	for _, t := range s {
		out = append(out, vendorserver.Answer{Text: t})
	}
	return out
}

func wantAnswer(t *testing.T, srv *vendorserver.Server, model, want string) {
	t.Helper()
	if status, got := ask(t, srv, model, "go on"); status != 200 || got != want {
		t.Errorf("model %s: %d %q, want %q", model, status, got, want)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{
		Answers: texts("1", "2"),
		Models:  map[string][]vendorserver.Answer{"b": texts("b1", "b2")},
		Default: &vendorserver.Answer{Text: "default"},
	})
	wantAnswer(t, srv, "a", "1")
	wantAnswer(t, srv, "b", "b1")
	if n := srv.Unused(); n != 2 {
		t.Errorf("%d answers unused, want 2", n)
	}
	wantAnswer(t, srv, "c", "2")
	wantAnswer(t, srv, "a", "default")
	wantAnswer(t, srv, "b", "b2")
	wantAnswer(t, srv, "b", "default")
	srv.Push(vendorserver.Answer{Text: "3"})
	wantAnswer(t, srv, "a", "3")
	srv.SetScript(vendorserver.Script{Answers: []vendorserver.Answer{
		{Text: "x"},
		{Text: "for ever", Forever: true},
		{Text: "never"},
	}})
	wantAnswer(t, srv, "a", "x")
	wantAnswer(t, srv, "a", "for ever")
	wantAnswer(t, srv, "a", "for ever")
	if n := srv.Unused(); n != 1 {
		t.Errorf("%d answers unused, want 1", n)
	}
}

func TestScriptEnds(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{})
	if status, got := ask(t, srv, "m", "x"); status != 500 ||
		!strings.Contains(got, `no answer for request 1, model "m"`) {
		t.Errorf("%d %q", status, got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{
		Key: "k", MaxBodyBytes: 2000, Windows: map[string]int{"": 50, "big": 500},
		CountTokens: func(s string) int { return len(s) }, Answers: texts("1"),
	})
	if status, _ := post(t, srv.URL+"/v1/messages", "wrong", []byte(`{}`)); status != 401 {
		t.Errorf("a wrong key: %d", status)
	}
	if status, got := ask(t, srv, "m", strings.Repeat("x", 90)); status != 400 ||
		got != "prompt is too long: 101 tokens > 50 maximum" {
		t.Errorf("over the window: %d %q", status, got)
	}
	if status, got := post(t, srv.OpenAIURL()+"/chat/completions", "k",
		[]byte(`{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("y", 90)+`"}]}`)); status != 400 ||
		!strings.Contains(got, "maximum context length is 50 tokens. However, your messages resulted in 90 tokens") {
		t.Errorf("over the window: %d %q", status, got)
	}
	if status, _ := ask(t, srv, "big", strings.Repeat("x", 3000)); status != 413 {
		t.Errorf("too many bytes: %d", status)
	}
	if status, got := post(t, srv.URL+"/v1/messages", "k",
		[]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":""}]}`)); status != 400 ||
		!strings.Contains(got, "non-empty content") {
		t.Errorf("malformed: %d %q", status, got)
	}
	if status, _ := post(t, srv.URL+"/v1/nothing", "k", []byte(`{}`)); status != 404 {
		t.Errorf("an unknown path: %d", status)
	}
	if n := srv.Unused(); n != 1 {
		t.Errorf("a refusal used up an answer, %d left", n)
	}
	wantAnswer(t, srv, "big", "1")
	if n := len(srv.Requests()); n != 7 {
		t.Errorf("%d requests recorded, want 7", n)
	}
}

func TestAnswersThatRefuse(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{
		Lenient: true, CountTokens: func(s string) int { return len(s) },
		Answers: []vendorserver.Answer{
			{Text: "1", RejectOverTokens: 20},
			{Text: "2", RequireMaxTokensBetween: &[2]int{1, 50}},
			{Text: "3", ValidatePairing: true},
		},
	})
	if status, _ := ask(t, srv, "m", strings.Repeat("x", 30)); status != 400 {
		t.Errorf("%d for what is too large", status)
	}
	wantAnswer(t, srv, "m", "1")
	if status, got := ask(t, srv, "m", "x"); status != 400 ||
		!strings.Contains(got, "100 is not within the allowed range of 1 to 50") {
		t.Errorf("%d %q", status, got)
	}
	if status, got := post(t, srv.URL+"/v1/messages", "k", []byte(`{"max_tokens":50,"messages":[]}`)); status != 200 ||
		got != "2" {
		t.Errorf("%d %q from a lenient server", status, got)
	}
	if status, _ := post(t, srv.URL+"/v1/messages", "k", []byte(`{"messages":[]}`)); status != 400 {
		t.Errorf("%d for malformed messages", status)
	}
	wantAnswer(t, srv, "m", "3")
}

func TestRecord(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "ok"}})
	body := `{"model":"m", "stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,` +
		`"messages":[{"role":"system","content":"sys"},` +
		`{"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{` +
		`"url":"data:image/png;base64,AAAA"}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"read",` +
		`"arguments":"{\"p\":1}"}}]},` +
		`{"role":"tool","tool_call_id":"c","content":"result"},{"role":"user","content":"two"}]}`
	if status, got := post(t, srv.OpenAIURL()+"/chat/completions", "key-1", []byte(body)); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	r, err := srv.WaitForRequest(ctxOf(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.N != 1 || r.Type != "openai" || r.Path != "/v1/chat/completions" || r.Method != "POST" ||
		string(r.Body) != body || r.Header.Get("X-Api-Key") != "key-1" {
		t.Errorf("%+v", r)
	}
	if r.Model != "m" || !r.Stream || !r.UsageWanted || r.MaxTokens != 9 || r.System != "sys" || r.LastUser != "two" ||
		len(r.Messages) != 4 || r.Tokens == 0 {
		t.Errorf("%+v", r)
	}
	for _, part := range []string{"sys", "one", "read", `{"p":1}`, "result", "two"} {
		if !strings.Contains(r.Text, part) {
			t.Errorf("%q is not in the text %q", part, r.Text)
		}
	}
	if strings.Contains(r.Text, "AAAA") {
		t.Error("an image is counted as text")
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{
		{Text: "T", EchoLastPrompt: true, EchoSystem: true},
		{EchoMatch: `MARK-\d+`, Text: "T"},
		{Func: func(r vendorserver.Request) vendorserver.Answer {
			return vendorserver.Answer{Text: fmt.Sprintf("n%d %s", r.N, r.Model)}
		}},
	}})
	wantAnswer(t, srv, "m", "the system\ngo on\nT")
	if _, got := ask(t, srv, "m", "a MARK-1 and MARK-22"); got != "MARK-1\nMARK-22\nT" {
		t.Errorf("%q", got)
	}
	wantAnswer(t, srv, "m", "n3 m")
}

func TestGate(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{
		{Text: "late", Gate: gate},
		{Text: "prompt"},
	}})
	late := make(chan string)
	go func() {
		_, got := ask(t, srv, "m", "x")
		late <- got
	}()
	if _, err := srv.WaitForRequest(ctxOf(t), 1); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, srv, "m", "prompt") // the other one does not stand in the way
	select {
	case got := <-late:
		t.Fatalf("%q came through a closed gate", got)
	default:
	}
	gate.Open()
	gate.Open() // a second time changes nothing
	if got := <-late; got != "late" {
		t.Errorf("%q", got)
	}
}

func TestWaitForRequest(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "ok"}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := srv.WaitForRequest(ctx, 1); err == nil || !strings.Contains(err.Error(), "0 of 1 requests") {
		t.Errorf("%v", err)
	}
	if _, err := srv.WaitForRequest(t.Context(), 0); err == nil {
		t.Error("a request number 0")
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { ask(t, srv, "m", "x") })
	}
	for n := 1; n <= 10; n++ {
		if r, err := srv.WaitForRequest(ctxOf(t), n); err != nil || r.N != n {
			t.Errorf("request %d: %v, number %d", n, err, r.N)
		}
	}
	wg.Wait()
	waiting := make(chan error)
	go func() {
		_, err := srv.WaitForRequest(context.Background(), 11)
		waiting <- err
	}()
	srv.Close()
	srv.Close() // a second time changes nothing
	if err := <-waiting; err == nil {
		t.Error("still waiting on a closed server")
	}
}

// TestCloseReleases: an answer that hangs does not outlive the server.
func TestCloseReleases(t *testing.T) {
	t.Parallel()
	srv := vendorserver.NewServer(vendorserver.Script{Answers: []vendorserver.Answer{{Hang: true}}})
	if err := srv.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	go func() {
		status, _ := ask(t, srv, "m", "x")
		done <- status
	}()
	if _, err := srv.WaitForRequest(ctxOf(t), 1); err != nil {
		t.Fatal(err)
	}
	srv.Close()
	if status := <-done; status != 0 && status != 200 {
		t.Errorf("status %d", status)
	}
	if err := vendorserver.NewServer(vendorserver.Script{}).Start("256.0.0.1:0"); err == nil {
		t.Error("listening on an impossible address")
	}
}

// TestScriptAsJSON: a script may come from a file.
func TestScriptAsJSON(t *testing.T) {
	t.Parallel()
	var sc vendorserver.Script
	err := json.Unmarshal([]byte(`{"answers":[
		{"content":[{"type":"thinking","thinking":"hmm"}],
			"tool_calls":[{"id":"s1","name":"read_file","arguments":"{}"}],"finish":"tool_calls"},
		{"error":{"status":429,"retry_after_ms":2000}},{"raw":"","status":200},{"close_after_text":"PARTIAL"},
		{"text":"SUM","reject_over_tokens":32000,"forever":true}]}`), &sc)
	if err != nil {
		t.Fatal(err)
	}
	a := sc.Answers
	if len(a) != 5 || a[0].Content[0].Thinking != "hmm" || a[0].ToolCalls[0].Name != "read_file" ||
		a[1].Error.RetryAfterMS != 2000 || a[2].Raw == nil || a[3].CloseAfterText != "PARTIAL" || !a[4].Forever {
		t.Errorf("%+v", sc)
	}
}
