package transcript

import (
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// adk is the format of sessions of Google's Agent Development Kit: an object with events, in snake case or camel
// case. A stored message is one event with content. Older events have no call ids: the id of a call is then derived
// from its event and its place there, and that of a response from the event that its options name.
//
// Output.File writes a session with the new list of events. The summary is an event. In sessions whose events have
// actions it also compacts the events before it, as ADK's own compaction does.
type adk struct{}

func (adk) name() Format { return ADK }

// read reads an event, valid JSON.
func (f adk) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	content := v.Get("content")
	if c, ok := f.compaction(v); ok {
		content, _ = lookupEither(c, "compacted_content")
	}
	if !content.IsObject() {
		return l.Errorf("an event without content is not a message")
	}
	switch role := content.Get("role").Text(); role {
	case "model":
		l.Role = "assistant"
	case "user", "function", "":
		l.Role = "user"
		if role == "" && v.Get("author").Text() != "user" {
			l.Role = "assistant"
		}
	default:
		return l.Errorf("the role of the content is not user or model")
	}
	l.Entry = func(text string) []byte { return fmt.Appendf(nil, `{"text":%s}`, rawjson.Quote(text)) }
	parts := content.Get("parts")
	switch parts.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil
	case rawjson.Array:
	default:
		return l.Errorf("the parts are not an array")
	}
	asked := ""
	if options, ok := v.Lookup("options"); ok {
		asked = either(options, "function_call_event_id").Text()
	}
	els := parts.Elements()
	row := l.AddList(layout.NewList(els))
	calls, results := 0, 0
	for i, el := range els {
		if !el.IsObject() {
			return l.Errorf("a part is not an object")
		}
		n := f.part(l, el)
		n.List, n.Index = row, i
		switch n.Part.Kind {
		case pipeline.PartToolCall:
			n.Part.CallID = f.callID(n.Part.CallID, v.Get("id").Text(), calls)
			calls++
		case pipeline.PartToolResult:
			n.Part.CallID = f.callID(n.Part.CallID, asked, results)
			results++
		}
		l.Nodes = append(l.Nodes, n)
	}
	return nil
}

func (f adk) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	v := rawjson.Root(l.Native)
	m.ID = v.Get("id").Text()
	if c, ok := f.compaction(v); ok && !c.IsMissing() {
		m.Kind = pipeline.KindSummary
	}
	return m
}

// Make writes an event without the fields that depend on a session: Output.File adds an id and a time.
func (adk) Make(m pipeline.Made) ([]byte, error) {
	b := []byte(`{"author":"user","content":{"role":"user","parts":[`)
	if m.Role == pipeline.RoleTool {
		key := "result"
		if m.IsError {
			key = "error"
		}
		return fmt.Appendf(b, `{"function_response":{"id":%s,"name":%s,"response":{"%s":%s}}}]}}`,
			rawjson.Quote(m.CallID), rawjson.Quote(m.Name), key, rawjson.Quote(m.Text)), nil
	}
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	if m.Role != pipeline.RoleUser {
		return nil, pipeline.Errorf(pipeline.Internal,
			"an event of ADK with role %s is written by an agent and cannot be made", m.Role)
	}
	return fmt.Appendf(b, `{"text":%s}]}}`, rawjson.Quote(m.Text)), nil
}

// lookupEither finds the value of a key in snake case, else in camel case.
func lookupEither(v rawjson.Value, snake string) (rawjson.Value, bool) {
	if at, ok := v.Lookup(snake); ok {
		return at, true
	}
	return v.Lookup(rawjson.Camel([]byte(snake)))
}

// either is lookupEither for a value that may be missing.
func either(v rawjson.Value, snake string) rawjson.Value {
	v, _ = lookupEither(v, snake)
	return v
}

// compaction is the compaction that an event records.
func (adk) compaction(v rawjson.Value) (rawjson.Value, bool) {
	actions, ok := v.Lookup("actions")
	if !ok {
		return rawjson.Value{}, false
	}
	c, ok := actions.Lookup("compaction")
	if !ok || !c.IsObject() {
		return rawjson.Value{}, false
	}
	return c, true
}

// callID returns the id of a call that has none, derived from its event and its place.
func (adk) callID(id, event string, n int) string {
	if id != "" || event == "" {
		return id
	}
	return fmt.Sprintf("%s-%d", event, n)
}

func (f adk) part(l *layout.Layout, v rawjson.Value) layout.Node {
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.Raw()}}
	p := &n.Part
	if said, ok := v.Lookup("text"); ok && said.IsString() {
		p.Kind, p.Text, n.Value = pipeline.PartText, said.Text(), said
		if thought := v.Get("thought"); thought.IsTrue() {
			p.Kind = pipeline.PartReasoning
		}
		return n
	}
	if call, ok := lookupEither(v, "function_call"); ok && call.IsObject() {
		p.Kind, p.Type, n.Block = pipeline.PartToolCall, "function_call", false
		p.CallID, p.Name = call.Get("id").Text(), call.Get("name").Text()
		n.Value = call.Get("args")
		n.Insert, n.Key, p.Input = call.End()-1, "args", n.Value.TextOrRaw()
		return n
	}
	if given, ok := lookupEither(v, "function_response"); ok && given.IsObject() {
		p.Kind, p.Type, n.Block = pipeline.PartToolResult, "function_response", false
		p.CallID, p.Name = given.Get("id").Text(), given.Get("name").Text()
		response := given.Get("response")
		n.Value, n.Insert, n.Key = response, given.End()-1, "response"
		n.As = func(text string) ([]byte, error) {
			return fmt.Appendf(nil, `{"result":%s}`, rawjson.Quote(text)), nil
		}
		n.Content, p.IsError = f.response(response)
		return n
	}
	for _, key := range []string{"inline_data", "file_data"} {
		if at, ok := lookupEither(v, key); ok && at.IsObject() {
			p.Kind, p.Type = pipeline.PartFile, key
			p.MediaType, p.Name = either(at, "mime_type").Text(),
				either(at, "display_name").Text()
			if strings.HasPrefix(p.MediaType, "image/") {
				p.Kind = pipeline.PartImage
			}
			media.FromAddress(p, f.address(*p))
			return n
		}
	}
	for key := range v.Fields() {
		p.Type = string(key)
		break
	}
	return n
}

// response reads the result of a function: the text of {"result":…}, {"output":…} or {"error":…} if that is all, else
// the object as JSON.
func (adk) response(v rawjson.Value) (content []layout.Node, failed bool) {
	if !v.IsObject() {
		return layout.AnyContent(v), false
	}
	n := 0
	var only rawjson.Value
	for key, field := range v.Fields() {
		if n++; n > 1 {
			break
		}
		switch string(key) {
		case "error":
			failed, only = true, field.Value
		case "result", "output":
			only = field.Value
		}
	}
	if n == 1 && only.IsString() {
		return layout.AnyContent(only), failed
	}
	if n == 0 {
		return nil, false
	}
	nodes := layout.AnyContent(v)
	nodes[0].Vacant = "{}"
	nodes[0].As = func(text string) ([]byte, error) {
		return fmt.Appendf(nil, `{"result":%s}`, rawjson.Quote(text)), nil
	}
	return nodes, failed && n == 1
}

func (adk) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if at, ok := lookupEither(rawjson.Root(b), "inline_data"); ok {
		// ADK writes bytes as base64 for URLs, which data URLs do not have.
		data := strings.NewReplacer("-", "+", "_", "/").Replace(at.Get("data").Text())
		return media.Base64URL(p.MediaType, data)
	}
	if at, ok := lookupEither(rawjson.Root(b), "file_data"); ok {
		return either(at, "file_uri").Text()
	}
	return ""
}

func (adk) detect(s rawjson.Outline) bool {
	return s.Has("events") && s.Has("events[].author") &&
		s.Has("events[].invocation_id", "events[].invocationId", "events[].content.parts")
}

func (adk) open(s *jsonstream.Reader, o Options) source {
	return openArrays(s, o, Meta{Format: ADK}, &adkSession{}, "events")
}

// adkSession reads events. It records the time of each message, for compactions that cover a period of time.
type adkSession struct {
	said []float64
	// invocations has the mark of the first event of each invocation.
	invocations map[string]int
}

func (a *adkSession) record(out *emitter, b []byte, line int) error {
	out.back.hold = holdBytes
	v := rawjson.Root(b)
	if target := either(v.Get("actions"), "rewind_before_invocation_id").Text(); target != "" {
		a.rewind(out, target, line)
		return nil
	}
	if id := either(v, "invocation_id").Text(); id != "" {
		if a.invocations == nil {
			a.invocations = map[string]int{}
		}
		if _, known := a.invocations[id]; !known {
			a.invocations[id] = out.mark()
		}
	}
	if c, ok := (adk{}).compaction(v); ok {
		return a.compaction(out, b, c, line)
	}
	if content, ok := v.Lookup("content"); !ok || !content.IsObject() {
		out.note(line, NoteRecord, "event", "an event without content is not a message")
		return nil
	}
	if partial, ok := v.Lookup("partial"); ok && partial.IsTrue() {
		out.note(line, NoteRecord, "partial", "a piece of an event that a later record completes")
		return nil
	}
	m, err := decode(adk{}, b)
	if err != nil {
		return err
	}
	model := either(v, "model_version").Text()
	if model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	a.said = append(a.said, v.Get("timestamp").Float())
	if used, ok := lookupEither(v, "usage_metadata"); ok && used.IsObject() {
		out.usage(line, adk{}.usage(used, model))
	}
	return nil
}

// rewind takes back all events from the first of an invocation on.
func (a *adkSession) rewind(out *emitter, invocation string, line int) {
	mark, known := a.invocations[invocation]
	if !known {
		out.note(line, NoteRecord, "rewind", "a rewind to an invocation that is not in the file takes nothing back")
		return
	}
	out.takeBack(mark, line, "rewound", "a rewind took the message back: it is not part of the conversation")
	a.said = a.said[:min(out.count, len(a.said))]
	for id, at := range a.invocations {
		if at >= mark {
			delete(a.invocations, id)
		}
	}
}

// compaction reads the summary of a period of time. Only a period that begins with the conversation covers all
// messages before its end. ADK's windows overlap, and the messages of a later one stay as they are.
func (a *adkSession) compaction(out *emitter, b []byte, c rawjson.Value, line int) error {
	m, err := decode(adk{}, b)
	if err != nil {
		return err
	}
	if strings.TrimSpace(pipeline.RenderMessage(m)) == "" {
		out.note(line, NoteBoundary, "compaction", "its summary is empty, so it covers nothing: the messages are kept")
		return nil
	}
	from, to := either(c, "start_timestamp").Float(), either(c, "end_timestamp").Float()
	if len(a.said) > 0 && from > a.said[0] {
		out.note(line, NoteBoundary, "compaction",
			"it covers a period that does not begin with the conversation: the messages are kept")
		return nil
	}
	kept := 0
	for i := len(a.said) - 1; i >= 0 && a.said[i] > to; i-- {
		kept++
	}
	out.compaction(line, Compaction{Summary: m, Kept: kept})
	return nil
}

// usage reads usage_metadata, whose prompt includes tokens from the cache.
func (adk) usage(v rawjson.Value, model string) *Usage {
	figure := func(key string) int { return either(v, key).Count() }
	u := &Usage{
		CacheRead: figure("cached_content_token_count"),
		Output:    figure("candidates_token_count") + figure("thoughts_token_count"), Used: figure("total_token_count"),
		Model: model,
	}
	all := figure("prompt_token_count") + figure("tool_use_prompt_token_count")
	u.Input = max(all-u.CacheRead, 0)
	if u.Used == 0 {
		u.Used = all + u.Output
	}
	return u
}

func (a *adkSession) end(out *emitter, around []byte) error {
	a.said, a.invocations = nil, nil
	if around != nil {
		out.meta.Envelope, out.meta.ID = around, rawjson.Root(around).Get("id").Text()
	}
	return nil
}

func (adk) write(out Output) ([]byte, error) {
	all, err := out.entries(adk{})
	if err != nil {
		return nil, err
	}
	at := firstStored(all, "timestamp")
	if at == nil {
		at = []byte(`0`)
	}
	compacts := firstStored(all, "actions") != nil
	for i, e := range all {
		if e.made == nil {
			continue
		}
		b := e.native
		if e.made.Kind == pipeline.KindSummary && compacts {
			// No event of the file is in the period: the messages that it covered are missing.
			content := rawjson.Root(b).Get("content")
			b = rawjson.AddPairs(
				b, `,"actions":{"compaction":{"start_timestamp":0,"end_timestamp":0,"compacted_content":%s}}`,
				content.Raw())
		}
		all[i].native = rawjson.AddPairs(b, `,"id":"%s","invocation_id":"","timestamp":%s`,
			madeUUID(string(b), strconv.Itoa(i))[:8], at)
	}
	return rawjson.PutArray(out.Meta.Envelope, rawjson.ArrayOf(nativesOf(all)), "events"), nil
}
