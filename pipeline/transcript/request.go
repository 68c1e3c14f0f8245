package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	"precis/pipeline"
)

// Request is a request body in pieces.
type Request struct {
	// Format is Anthropic or OpenAI.
	Format Format
	// Envelope is the request object that the messages go into, as Meta has it; nil for a new one.
	Envelope json.RawMessage
	// System and Tools are what the model is to see now. Where the envelope says the same, its bytes stay. For
	// OpenAI a system prompt becomes the first message, unless there is one already.
	System, Tools json.RawMessage
	// Model replaces the envelope's when it is another model; a name with a date, or with a vendor in front, is
	// not another.
	Model string
	// MaxTokens is used where the envelope has no output limit of its own, in tokens.
	MaxTokens int
	// Messages are the messages' bytes, spliced in as they are.
	Messages [][]byte
	// Append is one more message behind them, for a request that asks the agent's model for its own summary.
	// What would keep the model from answering in text is then taken back: a forced tool, a forced schema.
	Append []byte
	// Summarized says that a summary which a client wrote stands before the other messages. Anthropic then
	// refuses reasoning that was bound to what the summary replaced: where thinking is on and messages have
	// some, the request lets the server drop it (the beta ThinkingBeta).
	Summarized bool
}

// ThinkingBeta is the beta header that a request with the clear_thinking edit needs:
// https://docs.claude.com/en/docs/build-with-claude/context-editing.
const ThinkingBeta = "context-management-2025-06-27"

// DefaultMaxTokens is the output limit of a request that must name one and was not told any, in tokens: all
// current models of Anthropic allow it.
const DefaultMaxTokens = 8192

// BuildRequest writes a request body. The keys of the envelope keep their order and their bytes, and keys that
// are missing come last, so that the body begins with the same bytes as the request that the envelope was taken
// from, up to the end of the last message that they share.
func BuildRequest(r Request) ([]byte, error) {
	if r.Format != Anthropic && r.Format != OpenAI {
		return nil, pipeline.Errorf(pipeline.BadRequest, "a request cannot be written in format %q: it has none; convert to %q or %q", r.Format, Anthropic, OpenAI)
	}
	if r.Format == OpenAI && len(r.System) > 0 {
		if err := r.systemMessage(); err != nil {
			return nil, err
		}
	}
	e, err := r.envelope()
	if err != nil {
		return nil, err
	}
	at, ok := get(e, root(e), "messages")
	if !ok || kind(e, at) != '[' {
		return nil, pipeline.Errorf(pipeline.Internal, "the envelope of a request has no array of messages")
	}
	opening, sep, closing := readLayout(e, at)
	out := make([]byte, 0, len(e)+len(r.Append)+size(r.Messages, sep))
	out = append(out, e[:at.start+1]...)
	all := r.Messages
	if len(r.Append) > 0 {
		all = append(all[:len(all):len(all)], r.Append)
	}
	for i, m := range all {
		if i == 0 {
			out = append(out, opening...)
		} else {
			out = append(out, sep...)
		}
		out = append(out, m...)
	}
	if len(all) > 0 {
		out = append(out, closing...)
	}
	return append(out, e[at.end-1:]...), nil
}

func size(messages [][]byte, sep []byte) int {
	n := 0
	for _, m := range messages {
		n += len(m) + len(sep)
	}
	return n
}

// readLayout reads the blanks that Meta.Envelope describes.
func readLayout(e []byte, at span) (opening, sep, closing []byte) {
	els := elements(e, at)
	if len(els) < 2 {
		return nil, []byte{','}, nil
	}
	last := els[len(els)-1]
	return e[at.start+1 : els[0].start], e[els[0].end:els[1].start], e[last.end : at.end-1]
}

// systemMessage puts the system prompt in front of the messages.
func (r *Request) systemMessage() error {
	if len(r.Messages) > 0 {
		if m, err := (openAICodec{}).Decode(r.Messages[0]); err == nil && m.Role == pipeline.RoleSystem {
			return nil
		}
	}
	s := plainText(r.System)
	if strings.TrimSpace(s) == "" {
		return nil
	}
	b, err := openAICodec{}.Make(pipeline.Made{Role: pipeline.RoleSystem, Text: s})
	if err != nil {
		return err
	}
	r.Messages = append([][]byte{b}, r.Messages...)
	return nil
}

// plainText is the text of a system prompt: a string, or an array of text blocks.
func plainText(b []byte) string {
	if whole(b) != nil {
		return ""
	}
	v := root(b)
	if kind(b, v) != '[' {
		return text(b, v)
	}
	var all []string
	for _, el := range elements(b, v) {
		if s := text(b, first(get(b, el, "text"))); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}

// envelope gives the envelope with everything in it but the messages.
func (r Request) envelope() ([]byte, error) {
	limit := r.MaxTokens
	if r.Format == Anthropic && limit <= 0 {
		limit = DefaultMaxTokens
	}
	if len(r.Envelope) == 0 {
		r.Envelope = []byte(`{"messages":[]}`)
		if r.Model != "" {
			r.Envelope = append(append([]byte(`{"model":`), quote(r.Model)...), `,"messages":[]}`...)
		}
	}
	e := []byte(r.Envelope)
	if err := whole(e); err != nil || kind(e, root(e)) != '{' {
		return nil, pipeline.Errorf(pipeline.Internal, "the envelope of a request is no JSON object")
	}
	have := map[string]span{}
	for key, f := range fields(e, root(e)) {
		have[string(key)] = f.value
	}
	var all []splice
	var more []byte
	set := func(key string, value []byte) {
		if at, ok := have[key]; ok {
			all = append(all, splice{at, value})
			return
		}
		more = append(append(append(more, ','), quote(key)...), ':')
		more = append(more, value...)
	}
	if r.Model != "" && !sameModel(text(e, have["model"]), r.Model) {
		set("model", quote(r.Model))
	}
	if _, ok := have["messages"]; !ok {
		set("messages", []byte("[]"))
	}
	if r.Format == Anthropic {
		if len(r.System) > 0 && !sameJSON(have["system"].of(e), r.System) {
			set("system", r.System)
		}
		if _, ok := have["max_tokens"]; !ok {
			set("max_tokens", decimal(limit))
		}
		if r.Summarized && r.thinking(e, have["thinking"]) {
			if value := clearThinking(e, have["context_management"]); value != nil {
				set("context_management", value)
			}
		}
	} else if limit > 0 {
		_, a := have["max_tokens"]
		if _, b := have["max_completion_tokens"]; !a && !b {
			set("max_completion_tokens", decimal(limit))
		}
	}
	if len(r.Tools) > 0 && !sameJSON(have["tools"].of(e), r.Tools) {
		set("tools", r.Tools)
	}
	if len(r.Append) > 0 {
		r.unforce(e, have, set)
	}
	e = apply(e, all)
	if len(more) == 0 {
		return e, nil
	}
	end := root(e).end - 1
	if skipSpace(e, root(e).start+1) == end { // {} has nothing that a comma could follow
		more = more[1:]
	}
	for end > 0 && isSpace(e[end-1]) {
		end--
	}
	return apply(e, []splice{{span{end, end}, more}}), nil
}

// unforce takes back what would keep a model from answering in text.
func (r Request) unforce(e []byte, have map[string]span, set func(string, []byte)) {
	choice := have["tool_choice"]
	if r.Format == Anthropic {
		switch text(e, first(get(e, choice, "type"))) {
		case "any", "tool":
			set("tool_choice", []byte(`{"type":"auto"}`))
		}
		if at := have["output_config"]; kind(e, at) == '{' {
			if b, gone := dropKeys(e, at, func(key string, _ span) bool { return key == "format" }); len(gone) > 0 {
				set("output_config", b)
			}
		}
		if kind(e, have["output_format"]) == '{' {
			set("output_format", []byte("null"))
		}
		return
	}
	if kind(e, choice) == '{' || text(e, choice) == "required" {
		set("tool_choice", []byte(`"auto"`))
	}
	if kind(e, have["response_format"]) == '{' {
		set("response_format", []byte(`{"type":"text"}`))
	}
	if kind(e, have["n"]) == '0' && number(e, have["n"]) > 1 {
		set("n", []byte("1"))
	}
}

// thinking says whether the request asks for thinking and sends some back.
func (r Request) thinking(e []byte, at span) bool {
	switch text(e, first(get(e, at, "type"))) {
	case "enabled", "adaptive":
	default:
		return false
	}
	for _, native := range r.Messages {
		if !bytes.Contains(native, []byte(`thinking"`)) {
			continue
		}
		m, err := anthropicCodec{}.Decode(native)
		if err != nil {
			continue
		}
		for _, p := range m.Parts {
			if p.Kind == pipeline.PartReasoning {
				return true
			}
		}
	}
	return false
}

// clearThinking gives a context_management that lets the server drop thinking of earlier turns, nil when the one
// that is there says so already. That edit has to be the first.
func clearThinking(e []byte, at span) []byte {
	edit := []byte(`{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}}`)
	edits, ok := get(e, at, "edits")
	if !ok || kind(e, edits) != '[' {
		return append(append([]byte(`{"edits":[`), edit...), "]}"...)
	}
	els := elements(e, edits)
	for _, el := range els {
		if strings.HasPrefix(text(e, first(get(e, el, "type"))), "clear_thinking_") {
			return nil
		}
	}
	if len(els) > 0 {
		edit = append(edit, ',')
	}
	put := splice{span{edits.start + 1 - at.start, edits.start + 1 - at.start}, edit}
	return apply(at.of(e), []splice{put})
}

// sameModel says whether two names are of one model: the same, the same with a date behind it, or with a vendor
// or a gateway in front.
func sameModel(a, b string) bool {
	last := func(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
	a, b = last(a), last(b)
	if a == "" || b == "" {
		return a == b
	}
	return dated(a, b) || dated(b, a)
}

// dated says whether long is short, or short with a date or "-latest" behind it.
func dated(long, short string) bool {
	rest, ok := strings.CutPrefix(long, short)
	if !ok {
		return false
	}
	return rest == "" || rest == "-latest" || len(rest) > 6 && strings.Trim(rest, "-@0123456789") == ""
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func decimal(n int) []byte {
	b, _ := json.Marshal(n) // a number cannot fail
	return b
}
