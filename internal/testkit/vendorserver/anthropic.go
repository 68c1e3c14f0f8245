package vendorserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// anthropicWire is the Messages API on the wire, in the shapes of the official SDK.
type anthropicWire struct{}

// object is a JSON object that keeps the order of its keys.
type object []field

type field struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", f.key)
		b.Write(marshal(f.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is JSON without HTML escapes. It panics if a block of the script is not valid JSON, a mistake in the test.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("vendorserver: an answer of the script is not valid JSON: %v", err))
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func (anthropicWire) validate(body []byte, o ValidateOptions) error {
	return ValidateAnthropicRequest(body, o)
}

func (anthropicWire) overflow(tokens, window int) Error {
	return Error{
		Status:  http.StatusBadRequest,
		Message: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, window),
	}
}

// anthropicErrors are the vendor's types and words by status.
var anthropicErrors = map[int][2]string{
	400: {"invalid_request_error", "Invalid request"},
	401: {"authentication_error", "invalid x-api-key"},
	402: {"billing_error", "Your credit balance is too low to access the Anthropic API."},
	403: {"permission_error", "Your API key does not have permission to use the specified resource."},
	404: {"not_found_error", "Not found"},
	413: {"request_too_large", "Request exceeds the maximum size"},
	429: {"rate_limit_error", "This request would exceed your organization's rate limit of 400,000 input tokens " +
		"per minute"},
	500: {"api_error", "Internal server error"},
	504: {"timeout_error", "Request timed out"},
	529: {"overloaded_error", "Overloaded"},
}

func (anthropicWire) errorBody(e Error) []byte {
	words := known(anthropicErrors, e.Status, [2]string{"invalid_request_error", "Invalid request"},
		[2]string{"api_error", "Internal server error"})
	kind, message := words[0], words[1]
	if e.Type != "" {
		kind = e.Type
	} else if e.Code != "" {
		kind = e.Code // the vendor has no codes, only types
	}
	if e.Message != "" {
		message = e.Message
	}
	return marshal(object{
		{"type", "error"},
		{"error", object{{"type", kind}, {"message", message}}},
		{"request_id", "req_scripted"},
	})
}

// known looks up a status, with a default for errors of the client and one for errors of the server.
func known(table map[int][2]string, status int, client, server [2]string) [2]string {
	if words, ok := table[status]; ok {
		return words
	}
	if status >= 400 && status < 500 {
		return client
	}
	return server
}

func (p anthropicWire) writeError(w http.ResponseWriter, e Error) {
	w.Header().Set("Request-Id", "req_scripted")
	writeErrorBody(w, e, p.errorBody(e))
}

func writeErrorBody(w http.ResponseWriter, e Error, body []byte) {
	if e.RetryAfter != "" {
		w.Header().Set("Retry-After", e.RetryAfter)
	}
	if e.RetryAfterMS > 0 {
		w.Header().Set("Retry-After-Ms", strconv.Itoa(e.RetryAfterMS))
	}
	w.Header().Set("Content-Type", "application/json")
	status := e.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
	w.Write(body) // the client closed the connection
}

func (p anthropicWire) errorEvent(e Error) []byte {
	if e.Status == 0 {
		e.Status = 529
	}
	return event("error", p.errorBody(e))
}

func event(name string, data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

// stopReason translates a script's finish into the vendor's word; nil leaves it out.
func (anthropicWire) stopReason(req Request, a Answer) any {
	switch a.Finish {
	case "":
		for _, b := range a.blocks() {
			if b.Type == "tool_use" {
				return "tool_use"
			}
			if b.Type == "compaction" && req.Native != "" {
				return "compaction"
			}
		}
		return "end_turn"
	case "none":
		return nil
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return a.Finish
}

func (anthropicWire) block(b Block) any {
	if b.Raw != nil {
		return b.Raw
	}
	switch b.Type {
	case "thinking":
		return object{{"type", "thinking"}, {"thinking", b.Thinking}, {"signature", b.Signature}}
	case "redacted_thinking":
		return object{{"type", "redacted_thinking"}, {"data", b.Data}}
	case "tool_use", "server_tool_use":
		return object{{"type", b.Type}, {"id", b.ID}, {"name", b.Name}, {"input", inputOf(b)}}
	case "compaction":
		o := object{{"type", "compaction"}, {"content", nullable(b.Text)}}
		if b.Data != "" {
			o = append(o, field{"encrypted_content", b.Data})
		}
		if b.Signature != "" {
			o = append(o, field{"signature", b.Signature})
		}
		return o
	case "refusal", "text":
		return object{{"type", "text"}, {"text", b.Text}, {"citations", nil}}
	}
	return object{{"type", b.Type}}
}

func inputOf(b Block) json.RawMessage {
	if len(b.Input) == 0 {
		return json.RawMessage("{}")
	}
	return b.Input
}

// usage is the usage of the answer. That of a compaction is among the iterations only.
func (anthropicWire) usage(req Request, a Answer) any {
	u := a.Usage
	if u == nil {
		u = &Usage{}
	}
	figures := func(u Usage) object {
		return object{
			{"input_tokens", u.Input},
			{"cache_creation_input_tokens", u.CacheWrite},
			{"cache_read_input_tokens", u.CachedInput},
			{"output_tokens", u.Output},
		}
	}
	fired := req.Native == "on_demand"
	for _, b := range a.Content {
		fired = fired || b.Type == "compaction"
	}
	if req.Native == "" || !fired {
		return append(figures(*u), field{"service_tier", "standard"})
	}
	pass := append(object{{"type", "compaction"}}, figures(*u)...)
	return append(figures(Usage{}), field{"iterations", []any{pass}}, field{"service_tier", "standard"})
}

// compacted turns a script's text into the summary of the requested compaction. The edit applies only above its
// trigger. An on-demand compaction is answered with the block alone.
func compacted(req Request, a Answer) Answer {
	if req.Native == "" || a.Finish == "none" {
		return a
	}
	for _, b := range a.Content {
		if b.Type == "compaction" {
			return a
		}
	}
	if req.Native == "edit" && req.Tokens < compactionTrigger {
		return a
	}
	block := Block{Type: "compaction", Text: a.Text}
	if req.Native == "on_demand" {
		block.Signature = "sig-" + strconv.Itoa(req.N)
	}
	if a.Text == "" || len(a.ToolCalls) > 0 || a.Finish != "" && a.Finish != "stop" && a.Finish != "end_turn" {
		if a.Finish == "" && len(a.ToolCalls) > 0 {
			a.Finish = "tool_use"
		}
		a.Text, a.Content, a.ToolCalls = "", nil, nil // without a summary the answer is empty
		return a
	}
	a.Text, a.Content = "", []Block{block}
	return a
}

// compactionTrigger is the smallest trigger of a compaction edit, and its default.
const compactionTrigger = 50_000

func (p anthropicWire) message(req Request, content []any, stop any, usage any) object {
	return object{
		{"id", fmt.Sprintf("msg_scripted_%d", req.N)},
		{"type", "message"},
		{"role", "assistant"},
		{"model", req.Model},
		{"content", content},
		{"stop_reason", stop},
		{"stop_sequence", nil},
		{"usage", usage},
	}
}

func (p anthropicWire) whole(req Request, a Answer) []byte {
	a = compacted(req, a)
	content := []any{}
	for _, b := range a.blocks() {
		content = append(content, p.block(b))
	}
	return marshal(p.message(req, content, p.stopReason(req, a), p.usage(req, a)))
}

func (p anthropicWire) partial(req Request, text string, chunkChars int) [][]byte {
	return p.events(req, Answer{Text: text, Finish: "none"}, chunkChars)
}

func (p anthropicWire) events(req Request, a Answer, chunkChars int) [][]byte {
	a = compacted(req, a)
	start := &Usage{}
	if a.Usage != nil {
		*start = *a.Usage
		start.Output = 1
	}
	send := func(out [][]byte, o object) [][]byte { return append(out, event(o[0].value.(string), marshal(o))) }
	out := send(nil, object{
		{"type", "message_start"},
		{"message", p.message(req, []any{}, nil, p.usage(Request{}, Answer{Usage: start}))},
	})
	out = send(out, object{{"type", "ping"}})
	for i, b := range a.blocks() {
		deltas, opened := p.deltas(b, chunkChars), b.opened()
		if b.Type == "compaction" && req.Native == "on_demand" {
			deltas, opened = nil, b // this block is sent in one piece
		}
		out = send(out, object{{"type", "content_block_start"}, {"index", i}, {"content_block", p.block(opened)}})
		for _, d := range deltas {
			out = send(out, object{{"type", "content_block_delta"}, {"index", i}, {"delta", d}})
		}
		out = send(out, object{{"type", "content_block_stop"}, {"index", i}})
	}
	if a.Finish == "none" {
		return out // the stream ends without a final event
	}
	end := object{
		{"type", "message_delta"},
		{"delta", object{{"stop_reason", p.stopReason(req, a)}, {"stop_sequence", nil}}},
	}
	if a.Usage != nil {
		end = append(end, field{"usage", p.usage(req, a)})
	}
	out = send(out, end)
	return send(out, object{{"type", "message_stop"}})
}

// opened is a block in its start event: what the deltas will add is still empty.
func (b Block) opened() Block {
	b.Text, b.Thinking, b.Signature = "", "", ""
	if b.Type == "compaction" {
		b.Data = ""
	}
	if b.Type == "tool_use" || b.Type == "server_tool_use" {
		b.Input = nil
	}
	return b
}

func (anthropicWire) deltas(b Block, chunkChars int) []object {
	var out []object
	switch b.Type {
	case "text", "refusal":
		for _, c := range chunks(b.Text, chunkChars) {
			out = append(out, object{{"type", "text_delta"}, {"text", c}})
		}
	case "thinking":
		for _, c := range chunks(b.Thinking, chunkChars) {
			out = append(out, object{{"type", "thinking_delta"}, {"thinking", c}})
		}
		out = append(out, object{{"type", "signature_delta"}, {"signature", b.Signature}})
	case "compaction":
		d := object{{"type", "compaction_delta"}, {"content", nullable(b.Text)}}
		if b.Data != "" {
			d = append(d, field{"encrypted_content", b.Data})
		}
		out = append(out, d)
	case "tool_use", "server_tool_use":
		for _, c := range chunks(strings.TrimSpace(string(inputOf(b))), chunkChars) {
			out = append(out, object{{"type", "input_json_delta"}, {"partial_json", c}})
		}
	}
	return out
}
