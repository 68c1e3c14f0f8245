package vendorserver

import (
	"fmt"
	"net/http"
	"strings"
)

// openaiWire is chat completions on the wire, in the shapes of the official SDK.
type openaiWire struct{}

// created is the time in every answer, in seconds: 1 November 2026.
const created = 1793491200

func (openaiWire) validate(body []byte, o ValidateOptions) error {
	return ValidateOpenAIRequest(body, o)
}

func (openaiWire) overflow(tokens, window int) Error {
	return Error{
		Status: http.StatusBadRequest, Code: "context_length_exceeded",
		Message: fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted "+
			"in %d tokens. Please reduce the length of the messages.", window, tokens),
	}
}

// openaiErrors are the vendor's types and words by status.
var openaiErrors = map[int][2]string{
	400: {"invalid_request_error", "Invalid request"},
	401: {"invalid_request_error", "Incorrect API key provided."},
	402: {"insufficient_quota", "Insufficient balance"},
	403: {"invalid_request_error", "You are not allowed to access this resource."},
	404: {"invalid_request_error", "Not found"},
	413: {"invalid_request_error", "Request entity too large"},
	429: {"requests", "Rate limit reached for requests"},
	500: {"server_error", "The server had an error while processing your request."},
	503: {"server_error", "The engine is currently overloaded, please try again later"},
}

var openaiCodes = map[int]string{401: "invalid_api_key", 402: "insufficient_quota", 429: "rate_limit_exceeded"}

func (openaiWire) errorObject(e Error) object {
	words := known(openaiErrors, e.Status, [2]string{"invalid_request_error", "Invalid request"},
		[2]string{"server_error", "The server had an error while processing your request."})
	kind, message := words[0], words[1]
	if e.Type != "" {
		kind = e.Type
	}
	if e.Message != "" {
		message = e.Message
	}
	var code any
	if e.Code != "" {
		code = e.Code
	} else if c := openaiCodes[e.Status]; c != "" && e.Type == "" && e.Message == "" {
		code = c
	}
	return object{{"message", message}, {"type", kind}, {"param", nil}, {"code", code}}
}

func (p openaiWire) writeError(w http.ResponseWriter, e Error) {
	w.Header().Set("X-Request-Id", "req_scripted")
	writeErrorBody(w, e, marshal(object{{"error", p.errorObject(e)}}))
}

func (p openaiWire) errorEvent(e Error) []byte {
	return fmt.Appendf(nil, "data: %s\n\n", marshal(object{{"error", p.errorObject(e)}}))
}

// finishReason translates a script's finish into the vendor's word; nil leaves it out.
func (openaiWire) finishReason(a Answer) any {
	switch a.Finish {
	case "":
		for _, b := range a.blocks() {
			if b.Type == "tool_use" {
				return "tool_calls"
			}
		}
		return "stop"
	case "none":
		return nil
	case "end_turn", "refusal":
		return "stop" // a refusal has a field of its own
	case "max_tokens":
		return "length"
	case "tool_use":
		return "tool_calls"
	}
	return a.Finish
}

func (openaiWire) usage(u *Usage) any {
	return object{
		{"prompt_tokens", u.Input + u.CachedInput + u.CacheWrite},
		{"completion_tokens", u.Output},
		{"total_tokens", u.Input + u.CachedInput + u.CacheWrite + u.Output},
		{"prompt_tokens_details", object{{"cached_tokens", u.CachedInput}, {"cache_write_tokens", u.CacheWrite}}},
	}
}

// parts sorts the blocks into the fields of a message.
func (openaiWire) parts(a Answer) (text, reasoning, refusal string, calls []ToolCall) {
	var content strings.Builder
	for _, b := range a.blocks() {
		switch b.Type {
		case "thinking":
			reasoning += b.Thinking
		case "refusal":
			refusal += b.Text
		case "tool_use":
			calls = append(calls, ToolCall{ID: b.ID, Name: b.Name, Arguments: string(inputOf(b))})
		default:
			content.WriteString(b.Text)
		}
	}
	text = content.String()
	if a.Finish == "refusal" {
		text, refusal = "", text+refusal
	}
	return text, reasoning, refusal, calls
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (p openaiWire) whole(req Request, a Answer) []byte {
	text, reasoning, refusal, calls := p.parts(a)
	m := object{
		{"role", "assistant"},
		{"content", nullable(text)},
		{"refusal", nullable(refusal)},
		{"annotations", []any{}},
	}
	if reasoning != "" {
		m = append(m, field{"reasoning_content", reasoning})
	}
	if len(calls) > 0 {
		var list []any
		for _, c := range calls {
			list = append(list, object{
				{"id", c.ID},
				{"type", "function"},
				{"function", object{{"name", c.Name}, {"arguments", c.Arguments}}},
			})
		}
		m = append(m, field{"tool_calls", list})
	}
	out := object{
		{"id", fmt.Sprintf("chatcmpl-scripted-%d", req.N)},
		{"object", "chat.completion"},
		{"created", created},
		{"model", req.Model},
		{"choices", []any{object{
			{"index", 0},
			{"message", m},
			{"logprobs", nil},
			{"finish_reason", p.finishReason(a)},
		}}},
	}
	if a.Usage != nil {
		out = append(out, field{"usage", p.usage(a.Usage)})
	}
	return marshal(out)
}

func (p openaiWire) chunk(req Request, choices []any, usage any) []byte {
	out := object{
		{"id", fmt.Sprintf("chatcmpl-scripted-%d", req.N)},
		{"object", "chat.completion.chunk"},
		{"created", created},
		{"model", req.Model},
		{"choices", choices},
	}
	if req.UsageWanted {
		out = append(out, field{"usage", usage})
	}
	return fmt.Appendf(nil, "data: %s\n\n", marshal(out))
}

func (p openaiWire) partial(req Request, text string, chunkChars int) [][]byte {
	return p.events(req, Answer{Text: text, Finish: "none"}, chunkChars)
}

func (p openaiWire) events(req Request, a Answer, chunkChars int) [][]byte {
	text, reasoning, refusal, calls := p.parts(a)
	var out [][]byte
	delta := func(d object, finish any) {
		out = append(out, p.chunk(req,
			[]any{object{{"index", 0}, {"delta", d}, {"logprobs", nil}, {"finish_reason", finish}}}, nil))
	}
	delta(object{{"role", "assistant"}, {"content", ""}, {"refusal", nil}}, nil)
	for _, c := range chunks(reasoning, chunkChars) {
		delta(object{{"reasoning_content", c}}, nil)
	}
	for _, c := range chunks(text, chunkChars) {
		delta(object{{"content", c}}, nil)
	}
	for _, c := range chunks(refusal, chunkChars) {
		delta(object{{"refusal", c}}, nil)
	}
	for i, c := range calls {
		delta(object{{"tool_calls", []any{object{
			{"index", i},
			{"id", c.ID},
			{"type", "function"},
			{"function", object{{"name", c.Name}, {"arguments", ""}}},
		}}}}, nil)
		for _, piece := range chunks(c.Arguments, chunkChars) {
			delta(object{{"tool_calls", []any{object{{"index", i}, {"function", object{{"arguments", piece}}}}}}}, nil)
		}
	}
	if a.Finish == "none" {
		return out // the stream ends without a final event
	}
	delta(object{}, p.finishReason(a))
	if req.UsageWanted && a.Usage != nil {
		out = append(out, p.chunk(req, []any{}, p.usage(a.Usage)))
	}
	return append(out, []byte("data: [DONE]\n\n"))
}
