// Package request writes the body of a request to a vendor's API from an envelope, messages, a system prompt and
// tools. The bytes of the envelope and of the messages stay as they are, so that the vendor's cache is used.
package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/google"
)

// Input has the pieces of a request body.
type Input struct {
	// Format is the format of an API.
	Format transcript.Format
	// Envelope is the request object that the messages go into, as Meta has it; nil for a new one.
	Envelope json.RawMessage
	// System and Tools are what the model is to see now. Where the envelope has the same values, its bytes stay. For
	// OpenAI's chat a system prompt becomes the first message, unless there is one already.
	System, Tools json.RawMessage
	// Model replaces the model of the envelope if it is a different one. Names that differ only by a date or by a
	// vendor in front name the same model. Gemini has the model in the address of a request: the sender takes it from
	// this key of the body.
	Model string
	// MaxTokens is used where the envelope has no output limit of its own, in tokens.
	MaxTokens int
	// Messages are the messages' bytes, spliced in as they are.
	Messages [][]byte
	// Append is one more message behind them, for a request that asks the agent's model for its own summary. Settings
	// that would keep the model from answering in text (a forced tool, a forced schema) are then removed.
	Append []byte
	// Summarized is true if a summary that a client wrote precedes the other messages. Anthropic then refuses
	// reasoning that belongs to what the summary replaced. If thinking is on and messages contain some, the request
	// lets the server drop it (the beta ThinkingBeta).
	Summarized bool
}

// ThinkingBeta is the beta header that a request with the clear_thinking edit needs:
// https://docs.claude.com/en/docs/build-with-claude/context-editing.
const ThinkingBeta = "context-management-2025-06-27"

// DefaultMaxTokens is the output limit in tokens of a request that must have one but was given none. All current
// models of Anthropic allow it.
const DefaultMaxTokens = 8192

// Build writes a request body. The keys of the envelope keep their order and their bytes, and keys that
// are missing come last, so that the body begins with the same bytes as the request that the envelope was taken
// from, up to the end of the last message that they share.
func Build(r Input) ([]byte, error) {
	switch r.Format {
	case transcript.Anthropic, transcript.OpenAIResponses:
	case transcript.OpenAI:
		if len(r.System) == 0 {
			break
		}
		if err := r.systemMessage(); err != nil {
			return nil, err
		}
	case transcript.Google:
		var err error
		if r.Messages, err = google.Join(r.Messages); err != nil {
			return nil, err
		}
	default:
		return nil, pipeline.Errorf(pipeline.BadRequest,
			"format %q has no requests; convert the messages to one of %s", r.Format, transcript.APINames())
	}
	e, err := r.envelope()
	if err != nil {
		return nil, err
	}
	at, ok := rawjson.Root(e).Lookup(r.Format.MessagesKey())
	if !ok || !at.IsArray() {
		return nil, pipeline.Errorf(pipeline.Internal, "the envelope of a request has no array of messages under %q",
			r.Format.MessagesKey())
	}
	all := r.Messages
	if len(r.Append) > 0 {
		all = append(all[:len(all):len(all)], r.Append)
	}
	if r.Format == transcript.Anthropic {
		e, all = anthropicMarks(e, anthropic.PlaceSystem(all))
		at = rawjson.Root(e).Get(r.Format.MessagesKey())
	}
	opening, sep, closing := readLayout(e, at)
	out := make([]byte, 0, len(e)+len(r.Append)+size(r.Messages, sep))
	out = append(out, e[:at.Start()+1]...)
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
	return append(out, e[at.End()-1:]...), nil
}

// anthropicMarks returns an envelope and messages with only the cache marks that the API takes.
func anthropicMarks(e []byte, messages [][]byte) ([]byte, [][]byte) {
	keys := []string{"tools", "system"}
	docs := make([][]byte, len(keys), len(keys)+len(messages))
	for i, key := range keys {
		if v, ok := rawjson.Root(e).Lookup(key); ok {
			docs[i] = v.Raw()
		}
	}
	limited := anthropic.LimitMarks(append(docs, messages...)...)
	for i, key := range keys {
		if v, ok := rawjson.Root(e).Lookup(key); ok && len(v.Raw()) != len(limited[i]) {
			e = v.With(limited[i])
		}
	}
	return e, limited[len(keys):]
}

// codec returns the codec of the messages. Build has checked that there is one.
func (r Input) codec() transcript.Codec {
	c, _ := transcript.CodecFor(r.Format)
	return c
}

func size(messages [][]byte, sep []byte) int {
	n := 0
	for _, m := range messages {
		n += len(m) + len(sep)
	}
	return n
}

// readLayout reads the layout that Meta.Envelope describes.
func readLayout(e []byte, at rawjson.Value) (opening, sep, closing []byte) {
	els := at.Elements()
	if len(els) < 2 {
		return nil, []byte{','}, nil
	}
	last := els[len(els)-1]
	return e[at.Start()+1 : els[0].Start()], e[els[0].End():els[1].Start()], e[last.End() : at.End()-1]
}

// systemMessage puts the system prompt in front of the messages.
func (r *Input) systemMessage() error {
	if len(r.Messages) > 0 {
		if m, err := r.codec().Decode(r.Messages[0]); err == nil && m.Role == pipeline.RoleSystem {
			return nil
		}
	}
	s := PlainText(r.System)
	if strings.TrimSpace(s) == "" {
		return nil
	}
	b, err := r.codec().Make(pipeline.Made{Role: pipeline.RoleSystem, Text: s})
	if err != nil {
		return err
	}
	r.Messages = append([][]byte{b}, r.Messages...)
	return nil
}

// PlainText returns the text of a system prompt: a string, an array of text blocks, or a content of Gemini.
func PlainText(b []byte) string {
	if rawjson.Check(b) != nil {
		return ""
	}
	v := rawjson.Root(b)
	if parts, ok := v.Lookup("parts"); ok {
		v = parts
	}
	switch v.Kind() {
	case rawjson.Object:
		return v.Get("text").Text()
	case rawjson.String:
		return v.Text()
	case rawjson.Array:
	default:
		return ""
	}
	var all []string
	for _, el := range v.Elements() {
		s := el.Get("text").Text()
		if el.IsString() {
			s = el.Text()
		}
		if s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}

// envelope returns the complete envelope except for the messages.
func (r Input) envelope() ([]byte, error) {
	if len(r.Envelope) == 0 {
		r.Envelope = transcript.Meta{Format: r.Format, Model: r.Model}.NewEnvelope()
	}
	e := []byte(r.Envelope)
	if err := rawjson.Check(e); err != nil || !rawjson.Root(e).IsObject() {
		return nil, pipeline.Errorf(pipeline.Internal, "the envelope of the request is not a JSON object")
	}
	w := envelopeWriter{e: e, have: map[string]rawjson.Value{}}
	for key, field := range rawjson.Root(e).Fields() {
		w.have[string(key)] = field.Value
	}
	if r.Model != "" && !sameModel(w.have["model"].Text(), r.Model) {
		w.set("model", r.Format.ModelJSON(r.Model))
	}
	if !w.has(r.Format.MessagesKey()) {
		w.set(r.Format.MessagesKey(), []byte("[]"))
	}
	switch r.Format {
	case transcript.Anthropic:
		r.anthropicEnvelope(&w)
	case transcript.OpenAI:
		if r.MaxTokens > 0 && !w.has("max_tokens", "max_completion_tokens") {
			w.set("max_completion_tokens", rawjson.Decimal(r.MaxTokens))
		}
	case transcript.OpenAIResponses:
		if s := PlainText(r.System); strings.TrimSpace(s) != "" && PlainText(w.value("instructions")) != s {
			w.set("instructions", rawjson.Quote(s))
		}
		if r.MaxTokens > 0 && !w.has("max_output_tokens") {
			w.set("max_output_tokens", rawjson.Decimal(r.MaxTokens))
		}
	case transcript.Google:
		r.googleEnvelope(&w)
	}
	// Without tools the key is left out: OpenAI refuses an empty list.
	if len(r.Tools) > 0 && !rawjson.Same(w.value("tools"), r.Tools) &&
		(w.has("tools") || !rawjson.Same(r.Tools, []byte("[]"))) {
		w.set("tools", r.Tools)
	}
	if len(r.Append) > 0 {
		r.unforce(&w)
	}
	return w.done(), nil
}

// envelopeWriter puts values into an envelope. It replaces existing values and appends new ones.
type envelopeWriter struct {
	e    []byte
	have map[string]rawjson.Value
	all  []rawjson.Splice
	more []byte
}

// has reports whether the envelope has any of the keys.
func (w *envelopeWriter) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := w.have[key]; return ok })
}

// value returns the JSON of a key, nil if the envelope does not have it.
func (w *envelopeWriter) value(key string) []byte { return w.have[key].Raw() }

func (w *envelopeWriter) set(key string, value []byte) {
	if at, ok := w.have[key]; ok {
		w.all = append(w.all, at.Replace(value))
		return
	}
	w.more = append(append(append(w.more, ','), rawjson.Quote(key)...), ':')
	w.more = append(w.more, value...)
}

func (w *envelopeWriter) done() []byte {
	e := rawjson.Apply(w.e, w.all...)
	if len(w.more) == 0 {
		return e
	}
	end := rawjson.Root(e).End() - 1
	if rawjson.SkipSpace(e, rawjson.Root(e).Start()+1) == end { // {} needs no comma before its first pair
		w.more = w.more[1:]
	}
	for end > 0 && rawjson.IsSpace(e[end-1]) {
		end--
	}
	return rawjson.Apply(e, rawjson.Insert(end, w.more))
}

func (r Input) anthropicEnvelope(w *envelopeWriter) {
	if len(r.System) > 0 && !rawjson.Same(w.value("system"), r.System) {
		w.set("system", r.System)
	}
	if !w.has("max_tokens") {
		limit := r.MaxTokens
		if limit <= 0 {
			limit = DefaultMaxTokens
		}
		w.set("max_tokens", rawjson.Decimal(limit))
	}
	if r.Summarized && r.thinking(w.have["thinking"]) {
		if value := clearThinking(w.have["context_management"]); value != nil {
			w.set("context_management", value)
		}
	}
}

// unforce removes the settings that would keep a model from answering in text.
func (r Input) unforce(w *envelopeWriter) {
	choice := w.have["tool_choice"]
	switch r.Format {
	case transcript.Anthropic:
		switch choice.Get("type").Text() {
		case "any", "tool":
			w.set("tool_choice", []byte(`{"type":"auto"}`))
		}
		if at := w.have["output_config"]; at.IsObject() {
			if b, removed := at.DropKeys(isFormat); len(removed) > 0 {
				w.set("output_config", b)
			}
		}
		if w.have["output_format"].IsObject() {
			w.set("output_format", []byte("null"))
		}
	case transcript.Google:
		unforceGoogle(w)
	case transcript.OpenAIResponses:
		if choice.IsObject() || choice.Text() == "required" {
			w.set("tool_choice", []byte(`"auto"`))
		}
		if at := w.have["text"]; at.IsObject() {
			if b, removed := at.DropKeys(isFormat); len(removed) > 0 {
				w.set("text", b)
			}
		}
	default:
		if choice.IsObject() || choice.Text() == "required" {
			w.set("tool_choice", []byte(`"auto"`))
		}
		if w.have["response_format"].IsObject() {
			w.set("response_format", []byte(`{"type":"text"}`))
		}
		if w.have["n"].IsNumber() && w.have["n"].Count() > 1 {
			w.set("n", []byte("1"))
		}
	}
}

// thinking reports whether the request enables thinking and its messages contain some.
func (r Input) thinking(at rawjson.Value) bool {
	switch at.Get("type").Text() {
	case "enabled", "adaptive":
	default:
		return false
	}
	for _, native := range r.Messages {
		if !bytes.Contains(native, []byte(`thinking"`)) {
			continue
		}
		m, err := r.codec().Decode(native)
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

// clearThinking returns a context_management that lets the server drop thinking of earlier turns, nil if the request
// has that edit already. The edit has to be the first.
func clearThinking(at rawjson.Value) []byte {
	edit := []byte(`{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}}`)
	edits, ok := at.Lookup("edits")
	if !ok || !edits.IsArray() {
		return fmt.Appendf(nil, `{"edits":[%s]}`, edit)
	}
	els := edits.Elements()
	for _, el := range els {
		if strings.HasPrefix(el.Get("type").Text(), "clear_thinking_") {
			return nil
		}
	}
	if len(els) > 0 {
		edit = append(edit, ","...)
	}
	put := rawjson.Insert(edits.Start()+1-at.Start(), edit)
	return rawjson.Apply(at.Raw(), put)
}

// sameModel reports whether two names are of one model: the same, the same with a date behind it, or with a vendor
// or a gateway in front.
func sameModel(a, b string) bool {
	last := func(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
	a, b = last(a), last(b)
	if a == "" || b == "" {
		return a == b
	}
	return dated(a, b) || dated(b, a)
}

// dated reports whether long is short, or short followed by a date or "-latest".
func dated(long, short string) bool {
	rest, ok := strings.CutPrefix(long, short)
	if !ok {
		return false
	}
	return rest == "" || rest == "-latest" || len(rest) > 6 && strings.Trim(rest, "-0123456789") == ""
}

func isFormat(key string, _ rawjson.Value) bool { return key == "format" }
