package transcript

import (
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// ADK is sessions of Google's Agent Development Kit: an object with events, in snake case or camel case. A stored
// message is one event with content. Older events have no ids of calls: a call is named after its event and its
// place there, and a response after the event that its options name.
//
// Written is a session with the new list of events: the summary is an event, and for sessions whose events have
// actions one that compacts what stood before it, as ADK's own compaction does.
const ADK Format = "adk"

type adkCodec struct{}

func (adkCodec) Format() Format { return ADK }

func (adkCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(ADK, native, decodeADK)
}

func decodeADK(native []byte) (pipeline.Message, error) {
	l, err := adkLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	v := rawjson.Root(native)
	m.ID = v.Get("id").Text()
	if c, ok := adkCompaction(v); ok && !c.IsMissing() {
		m.Kind = pipeline.KindSummary
	}
	return m, nil
}

func (adkCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(ADK, m, edits, adkLayout)
}

// Make writes an event with what depends on no session: WriteFile gives it an id and a time.
func (adkCodec) Make(m pipeline.Made) ([]byte, error) {
	b := []byte(`{"author":"user","content":{"role":"user","parts":[`)
	if m.Role == pipeline.RoleTool {
		key := "result"
		if m.IsError {
			key = "error"
		}
		return fmt.Appendf(b, `{"function_response":{"id":%s,"name":%s,"response":{"%s":%s}}}]}}`,
			rawjson.Quote(m.CallID), rawjson.Quote(m.Name), key, rawjson.Quote(m.Text)), nil
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	if m.Role != pipeline.RoleUser {
		return nil, pipeline.Errorf(pipeline.Internal,
			"what role %s says in an event of ADK an agent wrote: none can be made", m.Role)
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

// adkCompaction is the compaction that an event records.
func adkCompaction(v rawjson.Value) (rawjson.Value, bool) {
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

// adkLayout reads an event, sound JSON.
func adkLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	v := rawjson.Root(native)
	if !v.IsObject() {
		return nil, parseError(ADK, "it is no object")
	}
	content, _ := v.Lookup("content")
	if c, ok := adkCompaction(v); ok {
		content, _ = lookupEither(c, "compacted_content")
	}
	if !content.IsObject() {
		return nil, parseError(ADK, "an event without content is no message")
	}
	switch role := content.Get("role").Text(); role {
	case "model":
		l.role = "assistant"
	case "user", "function", "":
		l.role = "user"
		if role == "" && v.Get("author").Text() != "user" {
			l.role = "assistant"
		}
	default:
		return nil, parseError(ADK, "the role of its content is not user or model")
	}
	l.entry = func(text string) []byte { return fmt.Appendf(nil, `{"text":%s}`, rawjson.Quote(text)) }
	parts, _ := content.Lookup("parts")
	switch parts.Kind() {
	case rawjson.Missing, rawjson.Null:
		return l, nil
	case rawjson.Array:
	default:
		return nil, parseError(ADK, "its parts are no array")
	}
	asked := ""
	if options, ok := v.Lookup("options"); ok {
		asked = either(options, "function_call_event_id").Text()
	}
	els := parts.Elements()
	row := l.addList(newList(els))
	calls, results := 0, 0
	for i, el := range els {
		if !el.IsObject() {
			return nil, parseError(ADK, "a part is no object")
		}
		n := l.adkPart(el)
		n.list, n.index = row, i
		switch n.part.Kind {
		case pipeline.PartToolCall:
			n.part.CallID = adkID(n.part.CallID, v.Get("id").Text(), calls)
			calls++
		case pipeline.PartToolResult:
			n.part.CallID = adkID(n.part.CallID, asked, results)
			results++
		}
		l.nodes = append(l.nodes, n)
	}
	return l, nil
}

// adkID names a call that has no id after its event and its place.
func adkID(id, event string, n int) string {
	if id != "" || event == "" {
		return id
	}
	return fmt.Sprintf("%s-%d", event, n)
}

func (l *layout) adkPart(v rawjson.Value) node {
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.Raw()}}
	p := &n.part
	if said, ok := v.Lookup("text"); ok && said.IsString() {
		p.Kind, p.Text, n.value = pipeline.PartText, said.Text(), said
		if thought, _ := v.Lookup("thought"); thought.IsTrue() {
			p.Kind = pipeline.PartReasoning
		}
		return n
	}
	if call, ok := lookupEither(v, "function_call"); ok && call.IsObject() {
		p.Kind, p.Type, n.block = pipeline.PartToolCall, "function_call", false
		p.CallID, p.Name = call.Get("id").Text(), call.Get("name").Text()
		n.value, _ = call.Lookup("args")
		n.insert, n.key, p.Input = call.End()-1, "args", n.value.TextOrRaw()
		return n
	}
	if given, ok := lookupEither(v, "function_response"); ok && given.IsObject() {
		p.Kind, p.Type, n.block = pipeline.PartToolResult, "function_response", false
		p.CallID, p.Name = given.Get("id").Text(), given.Get("name").Text()
		response, _ := given.Lookup("response")
		n.value, n.insert, n.key = response, given.End()-1, "response"
		n.as = func(text string) ([]byte, error) {
			return fmt.Appendf(nil, `{"result":%s}`, rawjson.Quote(text)), nil
		}
		n.content, p.IsError = l.adkResponse(response)
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
			fromAddress(p, adkCodec{}.address(*p))
			return n
		}
	}
	for key := range v.Fields() {
		p.Type = string(key)
		break
	}
	return n
}

// adkResponse reads what a function gave back: the one text of {"result":…}, {"output":…} or {"error":…}, else the
// object as its JSON.
func (l *layout) adkResponse(v rawjson.Value) (content []node, failed bool) {
	if !v.IsObject() {
		return l.anyContent(v), false
	}
	n := 0
	var only rawjson.Value
	for key, f := range v.Fields() {
		if n++; n > 1 {
			break
		}
		switch string(key) {
		case "error":
			failed, only = true, f.Value
		case "result", "output":
			only = f.Value
		}
	}
	if n == 1 && only.IsString() {
		return l.anyContent(only), failed
	}
	if n == 0 {
		return nil, false
	}
	nodes := l.anyContent(v)
	nodes[0].vacant = "{}"
	nodes[0].as = func(text string) ([]byte, error) {
		return fmt.Appendf(nil, `{"result":%s}`, rawjson.Quote(text)), nil
	}
	return nodes, failed && n == 1
}

func (adkCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if at, ok := lookupEither(rawjson.Root(b), "inline_data"); ok {
		// ADK writes bytes as base64 for URLs, which data URLs do not have.
		data := strings.NewReplacer("-", "+", "_", "/").Replace(at.Get("data").Text())
		return base64URL(p.MediaType, data)
	}
	if at, ok := lookupEither(rawjson.Root(b), "file_data"); ok {
		return either(at, "file_uri").Text()
	}
	return ""
}

// ---- files

func detectADK(s rawjson.Outline) bool {
	return s.Has("events") && s.Has("events[].author") &&
		s.Has("events[].invocation_id", "events[].invocationId", "events[].content.parts")
}

func openADK(s *stream, o Options) source {
	return openArrays(s, o, Meta{Format: ADK}, &adkSession{}, "events")
}

// adkSession reads events. It notes when each message was said, for the compactions that cover a stretch of time.
type adkSession struct {
	said []float64
}

func (a *adkSession) record(out *scribe, b []byte, line int) error {
	v := rawjson.Root(b)
	if c, ok := adkCompaction(v); ok {
		return a.compaction(out, b, c, line)
	}
	if content, ok := v.Lookup("content"); !ok || !content.IsObject() {
		out.note(line, NoteRecord, "event", "an event without content, no message")
		return nil
	}
	if partial, ok := v.Lookup("partial"); ok && partial.IsTrue() {
		out.note(line, NoteRecord, "partial", "a piece of an event that comes whole later")
		return nil
	}
	m, err := decodeADK(b)
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
		out.usage(line, geminiUsage(used, model))
	}
	return nil
}

// compaction takes the summary of a stretch of time. Only one that begins where the conversation does stands for all
// before it; ADK's windows overlap, and what a later one covers stays as it is.
func (a *adkSession) compaction(out *scribe, b []byte, c rawjson.Value, line int) error {
	m, err := decodeADK(b)
	if err != nil {
		return err
	}
	from, to := either(c, "start_timestamp").Float(), either(c, "end_timestamp").Float()
	if len(a.said) > 0 && from > a.said[0] {
		out.note(line, NoteBoundary, "compaction",
			"it covers a stretch that does not begin where the conversation does: the messages are kept")
		return nil
	}
	kept := 0
	for i := len(a.said) - 1; i >= 0 && a.said[i] > to; i-- {
		kept++
	}
	out.compaction(line, Compaction{Summary: m, Kept: kept})
	return nil
}

// geminiUsage reads usage_metadata, whose prompt counts what came from the cache too.
func geminiUsage(v rawjson.Value, model string) *Usage {
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

func (a *adkSession) end(out *scribe, around []byte) error {
	a.said = nil
	if around != nil {
		out.meta.Envelope, out.meta.ID = around, rawjson.Root(around).Get("id").Text()
	}
	return nil
}

func writeADK(out Output) ([]byte, error) {
	all, err := entriesOf(adkCodec{}, out.Items)
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
			// A stretch of time that no event of the file lies in: what it covered is not there.
			content, _ := rawjson.Root(b).Lookup("content")
			b = rawjson.AddPairs(
				b, `,"actions":{"compaction":{"start_timestamp":0,"end_timestamp":0,"compacted_content":%s}}`,
				content.Raw())
		}
		all[i].native = rawjson.AddPairs(b, `,"id":"%s","invocation_id":"","timestamp":%s`,
			madeUUID(string(b), strconv.Itoa(i))[:8], at)
	}
	return rawjson.PutArray(out.Meta.Envelope, rawjson.ArrayOf(nativesOf(all)), "events"), nil
}
