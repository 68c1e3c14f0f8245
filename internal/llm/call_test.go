package llm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

const testKey = "sk-test-0123456789abcdef"

// wires are the ways to call: each protocol, streamed and whole.
var wires = []struct {
	name, vendorType string
	stream           bool
}{
	{"AnthropicStream", contract.ProtocolAnthropic, true},
	{"AnthropicWhole", contract.ProtocolAnthropic, false},
	{"OpenAIStream", contract.ProtocolOpenAI, true},
	{"OpenAIWhole", contract.ProtocolOpenAI, false},
	{"ResponsesStream", contract.ProtocolOpenAIResponses, true},
	{"ResponsesWhole", contract.ProtocolOpenAIResponses, false},
	{"BedrockStream", contract.ProtocolBedrock, true},
	{"BedrockWhole", contract.ProtocolBedrock, false},
	{"GoogleStream", contract.ProtocolGoogle, true}, // it is the address that asks for a stream, and it always does
}

func baseURL(srv *vendorserver.Server, vendorType string) string {
	if vendorType == contract.ProtocolOpenAI || vendorType == contract.ProtocolOpenAIResponses {
		return srv.OpenAIURL()
	}
	return srv.URL
}

func newClient(t *testing.T, srv *vendorserver.Server, vendorType string) llm.Client {
	t.Helper()
	client, err := llm.New(llm.Vendor{
		Name: vendorType, Type: vendorType, BaseURL: baseURL(srv, vendorType),
		APIKey: testKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sorted is a JSON object with its keys in the order of the alphabet, and without "stream", which may stand for false.
func sorted(t *testing.T, body []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "stream")
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// call asks for "model-a": streamed as an external request, whole as a body that switches streaming off.
func call(vendorType string, stream bool) llm.Call {
	c := llm.Call{
		Model: "model-a", MaxOutput: 1000,
		Meta: llm.Metadata{Feature: "general", RunID: "run-1", Tenant: "acme"},
	}
	if stream {
		c.System, c.User = "You compact.", "The transcript."
		return c
	}
	if vendorType == contract.ProtocolOpenAIResponses {
		c.Body = []byte(`{"model":"model-a","max_output_tokens":1000,"input":[{"role":"user","content":"The ` +
			`transcript."}],"stream":false}`)
		return c
	}
	limit := `"max_tokens":1000`
	if vendorType == contract.ProtocolOpenAI {
		limit = `"max_completion_tokens":1000`
	}
	c.Body = []byte(`{"model":"model-a",` + limit +
		`,"messages":[{"role":"user","content":"The transcript."}],"stream":false}`)
	return c
}

func ctxOf(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func str(s string) *string { return &s }

// answers are all the ways in which a vendor may answer, with the results.
var answers = []struct {
	name   string
	answer vendorserver.Answer
	want   pipeline.ErrorKind // "" for an answer that is taken
	text   string
	// streamOnly rows make no sense for an answer that is sent whole.
	streamOnly bool
	check      func(t *testing.T, res llm.Result, err error)
}{
	{
		name: "Text", answer: vendorserver.Answer{Text: "<summary>Grüße, 世界 🙂</summary>", ChunkChars: 1},
		text: "<summary>Grüße, 世界 🙂</summary>", check: finish(pipeline.FinishStop),
	},
	{name: "TwoBlocks", answer: vendorserver.Answer{Content: []vendorserver.Block{
		{Type: "text", Text: "one "},
		{Type: "text", Text: "two"},
	}}, text: "one two"},
	{name: "ThinkingThenText", answer: vendorserver.Answer{Content: []vendorserver.Block{
		{Type: "thinking", Thinking: "let me see", Signature: "sig"},
		{Type: "text", Text: "done"},
	}}, text: "done", check: func(t *testing.T, res llm.Result, _ error) {
		if res.Reasoning != "let me see" {
			t.Errorf("reasoning %q", res.Reasoning)
		}
	}},
	{
		name: "TextAndToolCall", answer: vendorserver.Answer{
			Text:      "done",
			ToolCalls: []vendorserver.ToolCall{{ID: "c1", Name: "read", Arguments: `{"path":"x"}`}},
		}, text: "done",
		check: func(t *testing.T, res llm.Result, _ error) {
			if res.ToolCalls != 1 || res.Finish != pipeline.FinishToolUse {
				t.Errorf("%d tool calls, finish %q", res.ToolCalls, res.Finish)
			}
		},
	},
	{
		name: "Usage", answer: vendorserver.Answer{
			Text:  "done",
			Usage: &vendorserver.Usage{Input: 100, CachedInput: 9000, CacheWrite: 30, Output: 7},
		}, text: "done",
		check: func(t *testing.T, res llm.Result, _ error) {
			want := llm.Usage{Input: 9130, CachedInput: 9000, CacheWrite: 30, Output: 7}
			if bytes.Contains(res.Raw, []byte("usageMetadata")) {
				want.CacheWrite = 0 // Google does not report it
			}
			if res.Usage != want {
				t.Errorf("usage %+v, want %+v", res.Usage, want)
			}
		},
	},
	{
		name: "NoUsage", answer: vendorserver.Answer{Text: "done", NoUsage: true}, text: "done",
		check: func(t *testing.T, res llm.Result, _ error) {
			if res.Usage != (llm.Usage{}) {
				t.Errorf("usage %+v out of nothing", res.Usage)
			}
		},
	},

	{
		name: "ToolCallOnly", answer: vendorserver.Answer{ToolCalls: []vendorserver.ToolCall{{
			ID: "c1", Name: "read",
			Arguments: `{}`,
		}, {ID: "c2", Name: "read", Arguments: `{}`}}}, want: pipeline.ToolCallOutput,
		check: func(t *testing.T, res llm.Result, _ error) {
			if res.ToolCalls != 2 {
				t.Errorf("%d tool calls", res.ToolCalls)
			}
		},
	},
	{name: "ThinkingOnly", answer: vendorserver.Answer{Content: []vendorserver.Block{{
		Type: "thinking", Thinking: "hmm",
		Signature: "s",
	}}}, want: pipeline.EmptyOutput, check: usageKnown},
	{name: "ThinkingCutOff", answer: vendorserver.Answer{Content: []vendorserver.Block{{
		Type: "thinking", Thinking: "hmm",
		Signature: "s",
	}}, Finish: "length"}, want: pipeline.OutputTooLong},
	{name: "Empty", answer: vendorserver.Answer{}, want: pipeline.EmptyOutput},
	{name: "Blank", answer: vendorserver.Answer{Text: "  \n\t "}, want: pipeline.EmptyOutput},
	{
		name: "CutOff", answer: vendorserver.Answer{Text: "half a summ", Finish: "length"},
		want: pipeline.OutputTooLong, text: "half a summ", check: usageKnown,
	},
	{
		name: "Refusal", answer: vendorserver.Answer{Text: "I cannot help with that.", Finish: "refusal"},
		want: pipeline.Refused,
	},
	{
		name: "ContentFilter", answer: vendorserver.Answer{Text: "half", Finish: "content_filter"},
		want: pipeline.Refused,
	},
	{
		name: "NoFinishReason", answer: vendorserver.Answer{Text: "half a summ", Finish: "none"},
		want: pipeline.MalformedOutput,
	},
	{
		name: "UnknownFinishReason", answer: vendorserver.Answer{Text: "half a summ", Finish: "tired"},
		want: pipeline.MalformedOutput,
	},
	{
		name: "VendorBrokeOff", answer: vendorserver.Answer{Text: "half a summ", Finish: "error"},
		want: pipeline.ServerError,
	},
	{name: "EmptyBody", answer: vendorserver.Answer{Raw: str("")}, want: pipeline.EmptyOutput},
	{name: "BlankBody", answer: vendorserver.Answer{Raw: str("\n\n")}, want: pipeline.EmptyOutput},
	{name: "InvalidJSON", answer: vendorserver.Answer{Raw: str("{not json")}, want: pipeline.MalformedOutput},
	{name: "OtherJSON", answer: vendorserver.Answer{Raw: str(`{"hello":"world"}`)}, want: pipeline.MalformedOutput},
	{
		name: "Page", answer: vendorserver.Answer{
			Raw:         str("<html><body>Sign in</body></html>"),
			ContentType: "text/html",
		},
		want: pipeline.MalformedOutput,
	},
	{
		name: "ErrorWithStatus200", answer: vendorserver.Answer{Raw: str(
			`{"error":{"code":429,"message":"Rate limit exceeded"}}`), ContentType: "application/json"},
		want: pipeline.RateLimited,
	},
	{
		name: "InvalidEvent", answer: vendorserver.Answer{Raw: str("event: message_start\ndata: {oops\n\n")},
		want: pipeline.MalformedOutput, streamOnly: true,
	},
	{
		name: "OnlyComments", answer: vendorserver.Answer{Raw: str(": keep-alive\n\n: keep-alive\n\n")},
		want: pipeline.MalformedOutput, streamOnly: true,
	},
	{
		name: "ErrorEvent", answer: vendorserver.Answer{
			Text:     "half a summ",
			SSEError: &vendorserver.Error{Type: "overloaded_error", Code: "engine_overloaded", Message: "Overloaded"},
		},
		want: pipeline.Overloaded, streamOnly: true,
	},
	{
		name: "OverflowEvent", answer: vendorserver.Answer{SSEError: &vendorserver.Error{
			Status:  400,
			Message: "prompt is too long: 213462 tokens > 200000 maximum",
		}}, want: pipeline.InputTokensExceeded,
		streamOnly: true, check: func(t *testing.T, _ llm.Result, err error) {
			var e *pipeline.Error
			if errors.As(err, &e); e.ActualTokens != 213462 || e.LimitTokens != 200000 {
				t.Errorf("figures %d and %d", e.ActualTokens, e.LimitTokens)
			}
		},
	},
	{
		name: "BrokenOffInTheText", answer: vendorserver.Answer{CloseAfterText: "half a summ"}, want: pipeline.Network,
		streamOnly: true, check: func(t *testing.T, res llm.Result, _ error) {
			if !bytes.Contains(res.Raw, []byte("half a summ")) {
				t.Errorf("the record of the answer lacks what came: %q", res.Raw)
			}
		},
	},
	{
		name: "BrokenOffBeforeTheBody", answer: vendorserver.Answer{Text: "done", CloseBeforeBody: true},
		want: pipeline.Network,
	},
	{name: "BrokenOffWhole", answer: vendorserver.Answer{Text: "done", DropAfterBytes: 40}, want: pipeline.Network},

	{
		name: "Overflow", answer: vendorserver.Answer{Error: &vendorserver.Error{
			Status:  400,
			Message: "prompt is too long: 5 tokens > 4 maximum", Code: "context_length_exceeded",
		}},
		want: pipeline.InputTokensExceeded,
	},
	{
		name: "Status400", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 400}},
		want: pipeline.BadRequest,
	},
	{name: "Status401", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 401}}, want: pipeline.Auth},
	{name: "Status402", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 402}}, want: pipeline.Quota},
	{name: "Status403", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 403}}, want: pipeline.Auth},
	{
		name: "Status404", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 404}},
		want: pipeline.ModelNotFound,
	},
	{
		name: "Status413", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 413}},
		want: pipeline.InputTooLarge,
	},
	{
		name: "Status429", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 429, RetryAfter: "2"}},
		want: pipeline.RateLimited, check: retryAfter(2 * time.Second),
	},
	{
		name: "Status429Millis", answer: vendorserver.Answer{Error: &vendorserver.Error{
			Status:       429,
			RetryAfterMS: 1500,
		}},
		want: pipeline.RateLimited, check: retryAfter(1500 * time.Millisecond),
	},
	{name: "Status429NoBody", answer: vendorserver.Answer{Raw: str(""), Status: 429}, want: pipeline.RateLimited},
	{
		name: "Status500", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 500}},
		want: pipeline.ServerError,
	},
	{
		name: "Status503", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 503, Message: "unavailable"}},
		want: pipeline.Overloaded,
	},
	{
		name: "Status504", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 504, Message: "x"}},
		want: pipeline.Timeout,
	},
	{
		name: "Status529", answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 529}},
		want: pipeline.Overloaded,
	},
	{
		name: "MalformedHistory", answer: vendorserver.Answer{Error: &vendorserver.Error{
			Status:  400,
			Message: "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: t1",
		}},
		want: pipeline.MalformedHistory,
	},
}

func finish(want pipeline.Finish) func(*testing.T, llm.Result, error) {
	return func(t *testing.T, res llm.Result, _ error) {
		if res.Finish != want {
			t.Errorf("finish %q, want %q", res.Finish, want)
		}
	}
}

func usageKnown(t *testing.T, res llm.Result, _ error) {
	if res.Usage.Input == 0 || res.Usage.Output == 0 {
		t.Errorf("a failed answer was paid for too, usage is %+v", res.Usage)
	}
}

func retryAfter(want time.Duration) func(*testing.T, llm.Result, error) {
	return func(t *testing.T, _ llm.Result, err error) {
		var e *pipeline.Error
		if errors.As(err, &e); e.RetryAfter != want {
			t.Errorf("retry after %v, want %v", e.RetryAfter, want)
		}
	}
}

// TestCall calls the HTTP server with each protocol, streamed and whole, for each answer.
func TestCall(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range answers {
				if c.streamOnly && !w.stream {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					srv := vendorserver.New(t, vendorserver.Script{
						Key:     testKey,
						Answers: []vendorserver.Answer{c.answer},
					})
					request := call(w.vendorType, w.stream)
					res, err := newClient(t, srv, w.vendorType).Call(ctxOf(t), request)

					kind := pipeline.KindOf(err)
					// What is no event does not get into one of Bedrock's frames.
					unframed := w.vendorType == contract.ProtocolBedrock && c.answer.Raw != nil &&
						kind == pipeline.EmptyOutput
					if kind != c.want && !(unframed && c.want == pipeline.MalformedOutput) {
						t.Fatalf("kind %q, want %q (%v)", kind, c.want, err)
					}
					var e *pipeline.Error
					if err != nil && !errors.As(err, &e) {
						t.Errorf("%T is not a *pipeline.Error", err)
					}
					if res.Text != c.text && (err == nil || c.text != "" || c.want == pipeline.Network) {
						t.Errorf("text %q, want %q", res.Text, c.text)
					}
					requests := srv.Requests()
					if len(requests) != 1 {
						t.Fatalf("%d requests", len(requests))
					}
					sent, arrived := res.RequestBody, requests[0].Body
					if w.vendorType == contract.ProtocolBedrock { // the model travels in the path
						sent, arrived = sorted(t, sent), sorted(t, arrived)
					}
					if !bytes.Equal(arrived, sent) {
						t.Errorf("recorded as sent\n%s\narrived\n%s", res.RequestBody, requests[0].Body)
					}
					if requests[0].Stream != w.stream {
						t.Errorf("stream is %v", requests[0].Stream)
					}
					if err != nil && strings.Contains(err.Error(), testKey) {
						t.Errorf("the key is in %q", err)
					}
					if c.check != nil {
						c.check(t, res, err)
					}
				})
			}
		})
	}
}

// TestBrokenOffAnywhere cuts the connection after each number of bytes: what comes is the whole text, or
// none and an error.
func TestBrokenOffAnywhere(t *testing.T) {
	t.Parallel()
	const text = "<summary>one two three four five</summary>"
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: text}})
			client := newClient(t, srv, w.vendorType)
			whole, err := client.Call(ctxOf(t), call(w.vendorType, w.stream))
			if err != nil {
				t.Fatal(err)
			}
			complete := 0
			for n := 1; n < len(whole.Raw); n += 7 {
				srv.SetScript(vendorserver.Script{Default: &vendorserver.Answer{Text: text, DropAfterBytes: n}})
				res, err := client.Call(ctxOf(t), call(w.vendorType, w.stream))
				switch {
				case err == nil && res.Text == text:
					complete++
				case err == nil || res.Text != "":
					t.Errorf("after %d of %d bytes: %v, text %q", n, len(whole.Raw), err, res.Text)
				case pipeline.KindOf(err) != pipeline.Network:
					t.Errorf("after %d of %d bytes: %v", n, len(whole.Raw), err)
				}
			}
			if complete > len(whole.Raw)/7/2 {
				t.Errorf("%d cut answers passed for whole ones", complete)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]vendorserver.Answer{
		"NoAnswer":        {Hang: true},
		"StopsInTheText":  {Text: strings.Repeat("word ", 50), HangAfterBytes: 400},
		"TricklesForever": {Text: strings.Repeat("word ", 5000), ChunkChars: 5, ChunkDelayMS: 20},
	} {
		for _, w := range wires {
			if !w.stream && name == "TricklesForever" {
				continue // a whole answer comes in one piece
			}
			t.Run(name+w.name, func(t *testing.T) {
				t.Parallel()
				srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{a}})
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				res, err := newClient(t, srv, w.vendorType).Call(ctx, call(w.vendorType, w.stream))
				if !errors.Is(err, &pipeline.Error{Kind: pipeline.Timeout}) {
					t.Errorf("%v, want a timeout", err)
				}
				if res.Text != "" {
					t.Errorf("text %q of an answer that was not complete", res.Text)
				}
			})
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Hang: true}}})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				srv.WaitForRequest(t.Context(), 1) // the test ends either way
				cancel()
			}()
			if _, err := newClient(t, srv, w.vendorType).Call(ctx,
				call(w.vendorType, w.stream)); pipeline.KindOf(err) != pipeline.Cancelled {
				t.Errorf("%v, want cancelled", err)
			}
		})
	}
}

// TestHiccup: a connection that is cut at once is retried exactly once.
func TestHiccup(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{
				{Close: true},
				{Text: "done"},
				{Close: true, Forever: true},
			}})
			client := newClient(t, srv, w.vendorType)
			res, err := client.Call(ctxOf(t), call(w.vendorType, w.stream))
			if err != nil || res.Text != "done" {
				t.Errorf("after one hiccup: %v, %q", err, res.Text)
			}
			if _, err := client.Call(ctxOf(t), call(w.vendorType, w.stream)); pipeline.KindOf(err) != pipeline.Network {
				t.Errorf("after two: %v, want network", err)
			}
			if n := len(srv.Requests()); n != 4 {
				t.Errorf("%d requests, want 4", n)
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{})
	srv.Close()
	for _, vendorType := range []string{contract.ProtocolAnthropic, contract.ProtocolOpenAI} {
		_, err := newClient(t, srv, vendorType).Call(ctxOf(t), call(vendorType, true))
		if pipeline.KindOf(err) != pipeline.Network {
			t.Errorf("%s: %v, want network", vendorType, err)
		}
	}
}

// TestProgress: once with 0 before the request, then never less than before, at the end all chars.
func TestProgress(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			gate := vendorserver.NewGate()
			srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{
				Text: "Grüße 🙂, and more", ChunkChars: 3,
				Gate: gate,
			}}})
			var seen []int
			c := call(w.vendorType, w.stream)
			c.OnProgress = func(chars int) {
				if len(seen) == 0 && len(srv.Requests()) > 0 {
					t.Error("the first call came after the request")
				}
				seen = append(seen, chars)
				gate.Open()
			}
			res, err := newClient(t, srv, w.vendorType).Call(ctxOf(t), c)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.IsSorted(seen) || seen[0] != 0 || len(seen) < 2 {
				t.Errorf("progress %v", seen)
			}
			if last := seen[len(seen)-1]; w.stream && last != utf8.RuneCountInString(res.Text) {
				t.Errorf("the last progress is %d of %d chars", last, utf8.RuneCountInString(res.Text))
			}
		})
	}
}

// TestOwnBody: an agent's own request is sent unchanged, except for streaming keys at its end.
func TestOwnBody(t *testing.T) {
	t.Parallel()
	const messages = `"messages" : [ {"role":"user","content":"a < b & \u00e9 \ud83d\ude42 9007199254740993"} ]`
	for name, c := range map[string]struct {
		vendorType, body, want string
	}{
		"Anthropic": {
			contract.ProtocolAnthropic, `{"model":"m","max_tokens":5, ` + messages + ` }`,
			`{"model":"m","max_tokens":5, ` + messages + ` ,"stream":true}`,
		},
		"Newline": {
			contract.ProtocolAnthropic, `{"model":"m","max_tokens":5,` + messages + "}\n",
			`{"model":"m","max_tokens":5,` + messages + `,"stream":true}` + "\n",
		},
		"StreamThere": {contract.ProtocolAnthropic, `{"stream" :true,"model":"m","max_tokens":5,` + messages + `}`, ``},
		"StreamOff":   {contract.ProtocolAnthropic, `{"model":"m","max_tokens":5,` + messages + `,"stream":false}`, ``},
		"StreamInside": {
			contract.ProtocolAnthropic,
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"\"stream\":true"}]}`,
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"\"stream\":true"}],"stream":true}`,
		},
		"OpenAI": {
			contract.ProtocolOpenAI, `{"model":"m",` + messages + `}`,
			`{"model":"m",` + messages + `,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		"OpenAIStreams": {contract.ProtocolOpenAI, `{"model":"m","stream":true,` + messages + `}`, ``},
		"OpenAIOptions": {
			contract.ProtocolOpenAI, `{"model":"m","stream_options":{"include_usage":false},` + messages + `}`,
			`{"model":"m","stream_options":{"include_usage":false},` + messages + `,"stream":true}`,
		},
		"OpenAIBigFirst": {
			contract.ProtocolOpenAI, `{` + messages + `,"model":"m","temperature":0.10}`,
			`{` + messages + `,"model":"m","temperature":0.10,"stream":true,"stream_options":{"include_usage":true}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want == "" {
				c.want = c.body
			}
			srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: "done"}}})
			res, err := newClient(t, srv, c.vendorType).Call(ctxOf(t), llm.Call{Model: "m", Body: []byte(c.body)})
			if err != nil || res.Text != "done" {
				t.Fatalf("%v, text %q", err, res.Text)
			}
			if got := string(srv.Requests()[0].Body); got != c.want {
				t.Errorf("sent\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	for name, body := range map[string]string{"Broken": `{"model":`, "List": `[]`, "Empty": ``, "Word": `null`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{})
			_, err := newClient(t, srv, contract.ProtocolOpenAI).Call(ctxOf(t),
				llm.Call{Model: "m", Body: []byte(body)})
			if pipeline.KindOf(err) != pipeline.Internal || len(srv.Requests()) != 0 {
				t.Errorf("%v after %d requests", err, len(srv.Requests()))
			}
		})
	}
}

func TestNothingToAsk(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{})
	_, err := newClient(t, srv, contract.ProtocolAnthropic).Call(ctxOf(t),
		llm.Call{Model: "m", System: "s", User: " \n"})
	if pipeline.KindOf(err) != pipeline.Internal || len(srv.Requests()) != 0 {
		t.Errorf("%v after %d requests", err, len(srv.Requests()))
	}
}

// externalRequests are requests with the output limit and the options that they should have.
var externalRequests = map[string]struct {
	vendor    llm.Vendor
	model     string
	max       int
	want      int    // the output limit in the request, 0 for none
	limitKey  string // under this name
	wantStore string
}{
	"Anthropic": {
		llm.Vendor{Name: "anthropic", Type: contract.ProtocolAnthropic},
		"claude-sonnet-4-5", 4000, 4000,
		"max_tokens", "",
	},
	"AnthropicOver": {
		llm.Vendor{Name: "anthropic", Type: contract.ProtocolAnthropic},
		"claude-sonnet-4-5-20250929",
		500_000, 64_000, "max_tokens", "",
	},
	"AnthropicUnder": {
		llm.Vendor{Name: "anthropic", Type: contract.ProtocolAnthropic},
		"claude-sonnet-4-5", -7, 1,
		"max_tokens", "",
	},
	"AnthropicUnset": {
		llm.Vendor{Name: "anthropic", Type: contract.ProtocolAnthropic},
		"claude-haiku-4-5", 0, 64_000,
		"max_tokens", "",
	},
	"AnthropicUnknown": {
		llm.Vendor{Name: "anthropic", Type: contract.ProtocolAnthropic},
		"claude-none", 0, 8192,
		"max_tokens", "",
	},
	"OpenAI": {
		llm.Vendor{Name: "openai", Type: contract.ProtocolOpenAI},
		"gpt-5.2", 4000, 4000,
		"max_completion_tokens", "false",
	},
	"OpenAIOver": {
		llm.Vendor{Name: "openai", Type: contract.ProtocolOpenAI},
		"gpt-4o-2024-08-06", 100_000, 16_384,
		"max_completion_tokens", "false",
	},
	"XAI": {
		llm.Vendor{Name: "xai", Type: contract.ProtocolOpenAI},
		"grok-4.7", 4000, 4000,
		"max_completion_tokens", "",
	},
	"Compatible": {
		llm.Vendor{Name: "local", Type: contract.ProtocolOpenAI},
		"qwen-9", 4000, 4000, "max_tokens",
		"",
	},
	"CompatibleUnset": {llm.Vendor{Name: "local", Type: contract.ProtocolOpenAI}, "qwen-9", 0, 0, "", ""},
	"Gateway": {
		llm.Vendor{Name: "openrouter", Type: contract.ProtocolOpenAI},
		"anthropic/claude-sonnet-4.5",
		1 << 30, 64_000, "max_tokens", "",
	},
	"AnthropicGateway": {
		llm.Vendor{Name: "gw", Type: contract.ProtocolAnthropic},
		"claude-haiku-4-5", 1 << 30, 64_000,
		"max_tokens", "",
	},
	"AnthropicCompatible": {
		llm.Vendor{Name: "minimax", Type: contract.ProtocolAnthropic},
		"m2", 4000, 4000, "max_tokens",
		"",
	},
}

// TestExternalRequest checks the content of an external request; the server also validates it.
func TestExternalRequest(t *testing.T) {
	t.Parallel()
	for name, c := range externalRequests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "done"}})
			c.vendor.BaseURL, c.vendor.APIKey = baseURL(srv, c.vendor.Type), testKey
			c.vendor.Headers = map[string]string{"X-Gateway": "g1"}
			client, err := llm.New(c.vendor)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Call(ctxOf(t), llm.Call{
				Model: c.model, System: "You compact <x>.", User: "The transcript & more.", MaxOutput: c.max,
				Meta: llm.Metadata{Feature: "general", RunID: "run-1", Tenant: "acme\r\nX-Evil: 1"},
			})
			if err != nil {
				t.Fatal(err)
			}
			r := srv.Requests()[0]
			if r.System != "You compact <x>." || r.LastUser != "The transcript & more." || r.Model != c.model ||
				!r.Stream {
				t.Errorf("request %s", r.Body)
			}
			if r.MaxTokens != c.want {
				t.Errorf("output limit %d, want %d", r.MaxTokens, c.want)
			}
			var keys map[string]json.RawMessage
			if err := json.Unmarshal(r.Body, &keys); err != nil {
				t.Fatal(err)
			}
			if _, ok := keys[c.limitKey]; !ok && c.limitKey != "" {
				t.Errorf("no %s in %s", c.limitKey, r.Body)
			}
			if got := string(keys["store"]); got != c.wantStore {
				t.Errorf("store %q, want %q", got, c.wantStore)
			}
			if bytes.Contains(r.Body, []byte("acme")) {
				t.Errorf("the tenant's name is in the body: %s", r.Body)
			}
			for k, want := range map[string]string{
				"X-Precis-Inference-Reason": "agent-summarization", "X-Precis-Feature": "general",
				"X-Precis-Run": "run-1", "X-Precis-Tenant": "acme__X-Evil:_1", "X-Gateway": "g1", "X-Evil": "",
				"Authorization": "Bearer " + testKey,
			} {
				if got := r.Header.Get(k); got != want {
					t.Errorf("header %s is %q, want %q", k, got, want)
				}
			}
		})
	}
}

// TestTenantMetadata: the vendors' own fields for the one on whose behalf a request is made hold an opaque
// id, the same for a tenant each time.
func TestTenantMetadata(t *testing.T) {
	t.Parallel()
	id := func(vendorType, tenant string) string {
		srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "done"}})
		c := call(vendorType, true)
		c.Meta.Tenant = tenant
		if _, err := newClient(t, srv, vendorType).Call(ctxOf(t), c); err != nil {
			t.Fatal(err)
		}
		var body struct {
			Metadata struct {
				UserID string `json:"user_id"`
			} `json:"metadata"`
			SafetyIdentifier string `json:"safety_identifier"`
		}
		if err := json.Unmarshal(srv.Requests()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		return body.Metadata.UserID + body.SafetyIdentifier
	}
	for _, vendorType := range []string{contract.ProtocolAnthropic, contract.ProtocolOpenAI} {
		a, again, b := id(vendorType, "acme"), id(vendorType, "acme"), id(vendorType, "other")
		if a == "" || a != again || a == b || strings.Contains(a, "acme") || len(a) > 64 {
			t.Errorf("%s: %q, %q, %q", vendorType, a, again, b)
		}
		if none := id(vendorType, ""); none != "" {
			t.Errorf("%s: %q for no tenant", vendorType, none)
		}
	}
}

// TestAnthropicHeaders: an agent's own request decides which version of the API takes it.
func TestAnthropicHeaders(t *testing.T) {
	t.Parallel()
	const head = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]`
	for name, c := range map[string]struct{ body, version, beta string }{
		"Plain":       {head + `}`, "2026-10-21", ""},
		"Temperature": {head + `,"temperature":0.5}`, "2023-06-01", ""},
		"TopP":        {head + `,"top_p":0.5}`, "2023-06-01", ""},
		"Thinking": {
			head + `,"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}}`, "2026-10-21",
			"context-management-2025-06-27",
		},
		"Compaction": {
			head + `,"context_management":{"edits":[{"type":"compact_20260112"}]}}`, "2026-10-21",
			"context-management-2025-06-27,compact-2026-01-12",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "done"}})
			if _, err := newClient(t, srv, contract.ProtocolAnthropic).Call(ctxOf(t),
				llm.Call{Model: "m", Body: []byte(c.body)}); err != nil {
				t.Fatal(err)
			}
			h := srv.Requests()[0].Header
			if h.Get("Anthropic-Version") != c.version || h.Get("Anthropic-Beta") != c.beta {
				t.Errorf("version %q, beta %q", h.Get("Anthropic-Version"), h.Get("Anthropic-Beta"))
			}
			if h.Get("X-Api-Key") != testKey {
				t.Error("a compatible server finds no x-api-key")
			}
		})
	}
}

// TestConfiguredHeaders override our own, in any spelling; betas are joined.
func TestConfiguredHeaders(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "done"}})
	client, err := llm.New(llm.Vendor{
		Name: "anthropic", Type: contract.ProtocolAnthropic, BaseURL: srv.URL, APIKey: testKey,
		Headers: map[string]string{
			"anthropic-version": "2023-06-01", "ANTHROPIC-BETA": "own-beta", "x-precis-tenant": "someone",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"context_management":{"edits":[]}}`
	if _, err := client.Call(ctxOf(t),
		llm.Call{Model: "m", Body: []byte(body), Meta: llm.Metadata{Tenant: "acme"}}); err != nil {
		t.Fatal(err)
	}
	h := srv.Requests()[0].Header
	for k, want := range map[string]string{
		"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "context-management-2025-06-27,own-beta",
		"X-Precis-Tenant": "someone",
	} {
		if got := h.Values(k); len(got) != 1 || got[0] != want {
			t.Errorf("header %s is %q, want %q", k, got, want)
		}
	}
}

// TestEnvironment: variables of other programs change nothing.
func TestEnvironment(t *testing.T) {
	for k, v := range map[string]string{
		"ANTHROPIC_API_KEY": "sk-from-env", "ANTHROPIC_AUTH_TOKEN": "tok-from-env",
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_CUSTOM_HEADERS": "X-From-Env: 1",
		"OPENAI_API_KEY": "sk-from-env", "OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_ORG_ID": "from-env",
		"OPENAI_PROJECT_ID": "from-env", "OPENAI_CUSTOM_HEADERS": "X-From-Env: 1",
	} {
		t.Setenv(k, v)
	}
	for _, vendorType := range []string{contract.ProtocolAnthropic, contract.ProtocolOpenAI} {
		srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "done"}})
		client, err := llm.New(llm.Vendor{Name: "local", Type: vendorType, BaseURL: baseURL(srv, vendorType)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call(ctxOf(t), call(vendorType, true)); err != nil {
			t.Fatal(err)
		}
		for k, vs := range srv.Requests()[0].Header {
			if k == "X-From-Env" || k == "Authorization" || strings.Contains(strings.Join(vs, " "), "from-env") {
				t.Errorf("%s: header %s: %v", vendorType, k, vs)
			}
		}
	}
}

// TestRedirect: redirects to an address that is not configured are not followed.
func TestRedirect(t *testing.T) {
	t.Parallel()
	var reached bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(srv.Close)
	for _, vendorType := range []string{contract.ProtocolAnthropic, contract.ProtocolOpenAI} {
		client, err := llm.New(llm.Vendor{Name: "v", Type: vendorType, BaseURL: srv.URL, APIKey: testKey})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call(ctxOf(t), call(vendorType, true)); pipeline.KindOf(err) != pipeline.BadRequest {
			t.Errorf("%s: %v", vendorType, err)
		}
	}
	if reached {
		t.Error("the redirect was followed")
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	for _, vendorType := range []string{contract.ProtocolAnthropic, contract.ProtocolOpenAI} {
		srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{EchoLastPrompt: true}})
		client := newClient(t, srv, vendorType)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				c := call(vendorType, true)
				c.User = fmt.Sprintf("prompt %d", i)
				res, err := client.Call(ctxOf(t), c)
				if err != nil || strings.TrimSpace(res.Text) != c.User {
					t.Errorf("%d: %v, %q", i, err, res.Text)
				}
			})
		}
		wg.Wait()
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vendor llm.Vendor
		want   string // part of the error, "" for none
	}{
		"OwnAddress":   {llm.Vendor{Name: "xai", Type: "openai"}, ""},
		"Address":      {llm.Vendor{Name: "local", Type: "openai", BaseURL: "http://127.0.0.1:8000/v1"}, ""},
		"NoAddress":    {llm.Vendor{Name: "local", Type: "openai"}, "no base URL"},
		"NoType":       {llm.Vendor{Name: "xai"}, "has no type"},
		"UnknownType":  {llm.Vendor{Name: "xai", Type: "telnet"}, `unknown type "telnet"`},
		"BadAddress":   {llm.Vendor{Name: "x", Type: "openai", BaseURL: "127.0.0.1:8000"}, "not an http"},
		"OtherScheme":  {llm.Vendor{Name: "x", Type: "openai", BaseURL: "ftp://h/x"}, "not an http"},
		"KeyInAddress": {llm.Vendor{Name: "x", Type: "openai", BaseURL: "://h?key=sk-secret-1"}, "not an http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := llm.New(c.vendor)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk-secret") {
				t.Errorf("the key is in %q", err)
			}
		})
	}
}

func TestVendorPrintsNoKey(t *testing.T) {
	t.Parallel()
	v := llm.Vendor{Name: "openai", Type: "openai", APIKey: testKey, Headers: map[string]string{"X-Key": testKey}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("vendor", "v", v, "p", &v)
	for _, s := range []string{
		fmt.Sprint(v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%v", &v),
		fmt.Sprintf("%v", []llm.Vendor{v}), log.String(),
	} {
		if strings.Contains(s, testKey) {
			t.Errorf("the key is in %s", s)
		}
	}
}
