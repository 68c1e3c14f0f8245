package transcript

import (
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
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
	v := root(native)
	m.ID = text(native, first(get(native, v, "id")))
	if c, ok := adkCompaction(native, v); ok && !c.empty() {
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
		b = fmt.Appendf(b, `{"function_response":{"id":%s,"name":%s,"response":{"%s":%s}}}`, quote(m.CallID),
			quote(m.Name), key, quote(m.Text))
		return append(b, "]}}"...), nil
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	if m.Role != pipeline.RoleUser {
		return nil, pipeline.Errorf(pipeline.Internal,
			"what role %s says in an event of ADK an agent wrote: none can be made", m.Role)
	}
	return append(append(append(b, `{"text":`...), quote(m.Text)...), "}]}}"...), nil
}

// either gives the value of a key in snake case or in camel case.
func either(b []byte, v span, snake string) (span, bool) {
	if at, ok := get(b, v, snake); ok {
		return at, true
	}
	words := strings.Split(snake, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return get(b, v, strings.Join(words, ""))
}

// adkCompaction is the compaction that an event records.
func adkCompaction(b []byte, v span) (span, bool) {
	actions, ok := get(b, v, "actions")
	if !ok {
		return span{}, false
	}
	c, ok := get(b, actions, "compaction")
	if !ok || kind(b, c) != '{' {
		return span{}, false
	}
	return c, true
}

// adkLayout reads an event, sound JSON.
func adkLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(ADK, "it is no object")
	}
	content, _ := get(b, v, "content")
	if c, ok := adkCompaction(b, v); ok {
		content, _ = either(b, c, "compacted_content")
	}
	if kind(b, content) != '{' {
		return nil, parseError(ADK, "an event without content is no message")
	}
	switch role := text(b, first(get(b, content, "role"))); role {
	case "model":
		l.role = "assistant"
	case "user", "function", "":
		l.role = "user"
		if role == "" && text(b, first(get(b, v, "author"))) != "user" {
			l.role = "assistant"
		}
	default:
		return nil, parseError(ADK, "the role of its content is not user or model")
	}
	l.entry = func(text string) []byte { return append(append([]byte(`{"text":`), quote(text)...), '}') }
	parts, _ := get(b, content, "parts")
	switch kind(b, parts) {
	case 0, 'n':
		return l, nil
	case '[':
	default:
		return nil, parseError(ADK, "its parts are no array")
	}
	asked := ""
	if options, ok := get(b, v, "options"); ok {
		asked = text(b, first(either(b, options, "function_call_event_id")))
	}
	els := elements(b, parts)
	row := l.addList(newList(els))
	calls, results := 0, 0
	for i, el := range els {
		if kind(b, el) != '{' {
			return nil, parseError(ADK, "a part is no object")
		}
		n := l.adkPart(el)
		n.list, n.index = row, i
		switch n.part.Kind {
		case pipeline.PartToolCall:
			n.part.CallID = adkID(n.part.CallID, text(b, first(get(b, v, "id"))), calls)
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

func (l *layout) adkPart(v span) node {
	b := l.native
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.of(b)}}
	p := &n.part
	if said, ok := get(b, v, "text"); ok && kind(b, said) == '"' {
		p.Kind, p.Text, n.value = pipeline.PartText, text(b, said), said
		if thought, _ := get(b, v, "thought"); kind(b, thought) == 't' {
			p.Kind = pipeline.PartReasoning
		}
		return n
	}
	if call, ok := either(b, v, "function_call"); ok && kind(b, call) == '{' {
		p.Kind, p.Type, n.block = pipeline.PartToolCall, "function_call", false
		p.CallID, p.Name = text(b, first(get(b, call, "id"))), text(b, first(get(b, call, "name")))
		n.value, _ = get(b, call, "args")
		n.insert, n.key, p.Input = call.end-1, "args", inputText(b, n.value)
		return n
	}
	if given, ok := either(b, v, "function_response"); ok && kind(b, given) == '{' {
		p.Kind, p.Type, n.block = pipeline.PartToolResult, "function_response", false
		p.CallID, p.Name = text(b, first(get(b, given, "id"))), text(b, first(get(b, given, "name")))
		response, _ := get(b, given, "response")
		n.value, n.insert, n.key = response, given.end-1, "response"
		n.as = func(text string) ([]byte, error) {
			return append(append([]byte(`{"result":`), quote(text)...), '}'), nil
		}
		n.content, p.IsError = l.adkResponse(response)
		return n
	}
	for _, key := range []string{"inline_data", "file_data"} {
		if at, ok := either(b, v, key); ok && kind(b, at) == '{' {
			p.Kind, p.Type = pipeline.PartFile, key
			p.MediaType, p.Name = text(b, first(either(b, at, "mime_type"))),
				text(b, first(either(b, at, "display_name")))
			if strings.HasPrefix(p.MediaType, "image/") {
				p.Kind = pipeline.PartImage
			}
			fromAddress(p, adkCodec{}.address(*p))
			return n
		}
	}
	for key := range fields(b, v) {
		p.Type = string(key)
		break
	}
	return n
}

// adkResponse reads what a function gave back: the one text of {"result":…}, {"output":…} or {"error":…}, else the
// object as its JSON.
func (l *layout) adkResponse(v span) (content []node, failed bool) {
	b := l.native
	if kind(b, v) != '{' {
		return l.anyContent(v), false
	}
	n := 0
	var only span
	for key, f := range fields(b, v) {
		if n++; n > 1 {
			break
		}
		switch string(key) {
		case "error":
			failed, only = true, f.value
		case "result", "output":
			only = f.value
		}
	}
	if n == 1 && kind(b, only) == '"' {
		return l.anyContent(only), failed
	}
	if n == 0 {
		return nil, false
	}
	nodes := l.anyContent(v)
	nodes[0].vacant = "{}"
	nodes[0].as = func(text string) ([]byte, error) {
		return append(append([]byte(`{"result":`), quote(text)...), '}'), nil
	}
	return nodes, failed && n == 1
}

func (adkCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if at, ok := either(b, root(b), "inline_data"); ok {
		// ADK writes bytes as base64 for URLs, which data URLs do not have.
		data := strings.NewReplacer("-", "+", "_", "/").Replace(text(b, first(get(b, at, "data"))))
		return base64URL(p.MediaType, data)
	}
	if at, ok := either(b, root(b), "file_data"); ok {
		return text(b, first(either(b, at, "file_uri")))
	}
	return ""
}

// ---- files

func detectADK(s sketched) bool {
	return s.has("events") && s.has("events[].author") &&
		s.has("events[].invocation_id", "events[].invocationId", "events[].content.parts")
}

func openADK(s *stream, o Options) source {
	return openArrays(s, o, Meta{Format: ADK}, &adkSession{}, "events")
}

// adkSession reads events. It notes when each message was said, for the compactions that cover a stretch of time.
type adkSession struct {
	said []float64
}

func (a *adkSession) record(out *scribe, b []byte, line int) error {
	v := root(b)
	if c, ok := adkCompaction(b, v); ok {
		return a.compaction(out, b, c, line)
	}
	if content, ok := get(b, v, "content"); !ok || kind(b, content) != '{' {
		out.note(line, NoteRecord, "event", "an event without content, no message")
		return nil
	}
	if partial, ok := get(b, v, "partial"); ok && kind(b, partial) == 't' {
		out.note(line, NoteRecord, "partial", "a piece of an event that comes whole later")
		return nil
	}
	m, err := decodeADK(b)
	if err != nil {
		return err
	}
	model := text(b, first(either(b, v, "model_version")))
	if model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	a.said = append(a.said, decimalOf(b, first(get(b, v, "timestamp"))))
	if used, ok := either(b, v, "usage_metadata"); ok && kind(b, used) == '{' {
		out.usage(line, geminiUsage(b, used, model))
	}
	return nil
}

// compaction takes the summary of a stretch of time. Only one that begins where the conversation does stands for all
// before it; ADK's windows overlap, and what a later one covers stays as it is.
func (a *adkSession) compaction(out *scribe, b []byte, c span, line int) error {
	m, err := decodeADK(b)
	if err != nil {
		return err
	}
	from, to := decimalOf(b, first(either(b, c, "start_timestamp"))), decimalOf(b, first(either(b, c, "end_timestamp")))
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
func geminiUsage(b []byte, v span, model string) *Usage {
	figure := func(key string) int { return number(b, first(either(b, v, key))) }
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
		out.meta.Envelope, out.meta.ID = around, text(around, first(get(around, root(around), "id")))
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
		at = []byte("0")
	}
	compacts := firstStored(all, "actions") != nil
	for i, e := range all {
		if e.made == nil {
			continue
		}
		b := e.native
		if e.made.Kind == pipeline.KindSummary && compacts {
			// A stretch of time that no event of the file lies in: what it covered is not there.
			content, _ := get(b, root(b), "content")
			b = addPairs(b, `,"actions":{"compaction":{"start_timestamp":0,"end_timestamp":0,"compacted_content":%s}}`,
				content.of(b))
		}
		all[i].native = addPairs(b, `,"id":"%s","invocation_id":"","timestamp":%s`,
			madeUUID(string(b), strconv.Itoa(i))[:8], at)
	}
	return putArray(out.Meta.Envelope, arrayOf(nativesOf(all)), "events"), nil
}
