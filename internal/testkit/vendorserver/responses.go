package vendorserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// responsesWire is the Responses API on the wire, with its compact endpoint, in the shapes of the official SDK.
// Its errors are those of chat completions.
type responsesWire struct{ openaiWire }

func (responsesWire) validate(body []byte, o ValidateOptions) error {
	return ValidateOpenAIResponsesRequest(body, o)
}

func (responsesWire) overflow(tokens, window int) Error {
	return Error{
		Status: http.StatusBadRequest, Code: "context_length_exceeded",
		Message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
	}
}

// errorEvent is an error that comes in place of further events.
func (p responsesWire) errorEvent(e Error) []byte {
	o := p.errorObject(e)
	fields := object{{"type", "error"}, {"sequence_number", 0}}
	for _, f := range o {
		if f.key != "type" {
			fields = append(fields, f)
		}
	}
	return event("error", marshal(fields))
}

// status is how the response ended, and why it is incomplete.
func (responsesWire) status(a Answer) (status string, incomplete any) {
	switch a.Finish {
	case "length", "max_tokens", "max_output_tokens":
		return "incomplete", object{{"reason", "max_output_tokens"}}
	case "content_filter":
		return "incomplete", object{{"reason", "content_filter"}}
	case "error", "failed":
		return "failed", nil
	case "none":
		return "in_progress", nil
	case "", "stop", "end_turn", "refusal", "tool_use", "tool_calls":
		return "completed", nil
	}
	return "incomplete", object{{"reason", a.Finish}}
}

func (responsesWire) usage(a Answer) any {
	u := a.Usage
	if u == nil {
		return nil
	}
	input := u.Input + u.CachedInput + u.CacheWrite
	return object{
		{"input_tokens", input},
		{"input_tokens_details", object{{"cached_tokens", u.CachedInput}, {"cache_write_tokens", u.CacheWrite}}},
		{"output_tokens", u.Output},
		{"output_tokens_details", object{{"reasoning_tokens", 0}}},
		{"total_tokens", input + u.Output},
	}
}

// items are the output of an answer.
func (p responsesWire) items(req Request, a Answer) []object {
	text, reasoning, refusal, calls := p.parts(a)
	var out []object
	if reasoning != "" {
		out = append(out, object{
			{"id", fmt.Sprintf("rs_%d", req.N)},
			{"type", "reasoning"},
			{"summary", []any{object{{"type", "summary_text"}, {"text", reasoning}}}},
		})
	}
	var content []any
	if text != "" {
		content = append(content, object{
			{"type", "output_text"},
			{"text", text},
			{"annotations", []any{}},
			{"logprobs", []any{}},
		})
	}
	if refusal != "" {
		content = append(content, object{{"type", "refusal"}, {"refusal", refusal}})
	}
	if content != nil {
		out = append(out, object{
			{"id", fmt.Sprintf("msg_%d", req.N)},
			{"type", "message"},
			{"role", "assistant"},
			{"status", "completed"},
			{"content", content},
		})
	}
	for i, c := range calls {
		out = append(out, object{
			{"id", fmt.Sprintf("fc_%d_%d", req.N, i)},
			{"type", "function_call"},
			{"status", "completed"},
			{"call_id", c.ID},
			{"name", c.Name},
			{"arguments", c.Arguments},
		})
	}
	return out
}

func (p responsesWire) response(req Request, a Answer, status string, incomplete any, items []object) object {
	output := []any{}
	for _, it := range items {
		output = append(output, it)
	}
	var failed any
	if status == "failed" {
		failed = object{{"code", "server_error"}, {"message", "The model produced an error."}}
	}
	return object{
		{"id", fmt.Sprintf("resp_scripted_%d", req.N)},
		{"object", "response"},
		{"created_at", created},
		{"status", status},
		{"error", failed},
		{"incomplete_details", incomplete},
		{"model", req.Model},
		{"output", output},
		{"usage", p.usage(a)},
	}
}

func (p responsesWire) whole(req Request, a Answer) []byte {
	if req.Native == "compact" {
		return p.compacted(req, a)
	}
	status, incomplete := p.status(a)
	return marshal(p.response(req, a, status, incomplete, p.items(req, a)))
}

// compacted is the answer of the compact endpoint: at OpenAI the user's messages and one opaque item, at xAI the
// item alone. An answer without a text has an item without content.
func (p responsesWire) compacted(req Request, a Answer) []byte {
	output := []any{}
	if !strings.HasPrefix(req.Model, "grok") {
		for i, m := range req.Messages {
			if gjson.GetBytes(m, "role").String() == "user" {
				output = append(output, keptMessage(m, i))
			}
		}
	}
	secret := ""
	if a.Text != "" {
		secret = base64.StdEncoding.EncodeToString([]byte(a.Text))
	}
	output = append(output, object{
		{"id", fmt.Sprintf("cmp_%d", req.N)},
		{"type", "compaction"},
		{"encrypted_content", secret},
	})
	return marshal(object{
		{"id", fmt.Sprintf("resp_scripted_%d", req.N)},
		{"object", "response.compaction"},
		{"created_at", created},
		{"output", output},
		{"usage", p.usage(a)},
	})
}

// keptMessage is a user's message as the endpoint gives it back.
func keptMessage(m json.RawMessage, i int) object {
	var parts []any
	for _, t := range appendText(nil, gjson.GetBytes(m, "content")) {
		parts = append(parts, object{{"type", "input_text"}, {"text", t}})
	}
	return object{
		{"id", fmt.Sprintf("msg_kept_%d", i)},
		{"type", "message"},
		{"role", "user"},
		{"status", "completed"},
		{"content", parts},
	}
}

func (p responsesWire) partial(req Request, text string, chunkChars int) [][]byte {
	return p.events(req, Answer{Text: text, Finish: "none"}, chunkChars)
}

func (p responsesWire) events(req Request, a Answer, chunkChars int) [][]byte {
	if req.Native == "compact" {
		return [][]byte{p.whole(req, a)}
	}
	var out [][]byte
	n := 0
	send := func(kind string, fields ...field) {
		o := append(object{{"type", kind}, {"sequence_number", n}}, fields...)
		out = append(out, event(kind, marshal(o)))
		n++
	}
	items := p.items(req, a)
	begun := p.response(req, Answer{}, "in_progress", nil, nil)
	send("response.created", field{"response", begun})
	send("response.in_progress", field{"response", begun})
	text, reasoning, refusal, _ := p.parts(a)
	for i, item := range items {
		id, kind := item[0].value, item[1].value
		at := []field{{"item_id", id}, {"output_index", i}, {"content_index", 0}}
		opened := append(object{}, item[:2]...)
		switch kind {
		case "message":
			opened = append(opened, item[2], field{"status", "in_progress"}, field{"content", []any{}})
		case "reasoning":
			opened = append(opened, field{"summary", []any{}})
		default:
			opened = append(opened, item[2:5]...)
			opened = append(opened, field{"arguments", ""})
		}
		send("response.output_item.added", field{"output_index", i}, field{"item", opened})
		switch kind {
		case "message":
			for _, c := range chunks(text, chunkChars) {
				send("response.output_text.delta", append(at, field{"delta", c}, field{"logprobs", []any{}})...)
			}
			for _, c := range chunks(refusal, chunkChars) {
				send("response.refusal.delta", append(at, field{"delta", c})...)
			}
		case "reasoning":
			for _, c := range chunks(reasoning, chunkChars) {
				send("response.reasoning_summary_text.delta",
					append(at[:2:2], field{"summary_index", 0}, field{"delta", c})...)
			}
		default:
			for _, c := range chunks(item[5].value.(string), chunkChars) {
				send("response.function_call_arguments.delta", append(at[:2:2], field{"delta", c})...)
			}
		}
		if a.Finish != "none" {
			send("response.output_item.done", field{"output_index", i}, field{"item", item})
		}
	}
	if a.Finish == "none" {
		return out // the stream ends without a final event
	}
	status, incomplete := p.status(a)
	send("response."+status, field{"response", p.response(req, a, status, incomplete, items)})
	return out
}
