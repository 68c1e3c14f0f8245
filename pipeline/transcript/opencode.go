package transcript

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"precis/pipeline"
)

// OpenCode is what `opencode export` writes: {"info":…,"messages":[{"info":…,"parts":[…]}]}. A stored message is one
// entry of messages. A call and its result are one part there: such a message has both, the result right behind its
// call, and what is done to the part as a whole is done to both.
//
// Written is an export that `opencode import` loads: a user message with a compaction part, the summary as the
// assistant's answer to it, as opencode records its own, and the messages that are kept as they were.
const OpenCode Format = "opencode"

type openCodeCodec struct{}

func (openCodeCodec) Format() Format { return OpenCode }

func (openCodeCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(OpenCode, native, decodeOpenCode)
}

func decodeOpenCode(native []byte) (pipeline.Message, error) {
	l, err := openCodeLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	r := readOpenCode(native, root(native))
	m.ID = r.id
	switch {
	case r.summary:
		m.Kind = pipeline.KindSummary
	case m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && !r.said:
		m.Kind = pipeline.KindSynthetic
	}
	return m, nil
}

func (openCodeCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(OpenCode, m, edits, openCodeLayout)
}

// Make writes a user message that no person said, without what depends on a session: WriteFile gives it that. A
// result for a call that was never answered is nothing here: the part of the call says itself that it was not
// finished, and opencode tells the model so.
func (openCodeCodec) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		return nil, nil
	case pipeline.RoleUser:
		if err := mustSay(m); err != nil {
			return nil, err
		}
		return openCodePlace{}.user([]byte(`{"type":"text","text":` + string(quote(m.Text)) + `,"synthetic":true`)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "opencode stores no %s messages that a model did not write", m.Role)
}

// openCodeRecord is what a message says of itself.
type openCodeRecord struct {
	id, role, parent string
	summary, failed  bool
	said             bool // a person said something
	compaction       span // the part that asks for a summary
	tokens           span
	model, provider  string
}

func readOpenCode(b []byte, v span) openCodeRecord {
	info, _ := get(b, v, "info")
	r := openCodeRecord{}
	if kind(b, info) != '{' {
		return r
	}
	for key, f := range fields(b, info) {
		switch string(key) {
		case "id":
			r.id = text(b, f.value)
		case "role":
			r.role = text(b, f.value)
		case "parentID":
			r.parent = text(b, f.value)
		case "summary":
			r.summary = kind(b, f.value) == 't' // a user message has an object there, of diffs
		case "error":
			r.failed = kind(b, f.value) == '{'
		case "tokens":
			r.tokens = f.value
		case "modelID":
			r.model = text(b, f.value)
		case "providerID":
			r.provider = text(b, f.value)
		}
	}
	parts, _ := get(b, v, "parts")
	if kind(b, parts) != '[' {
		return r
	}
	for _, el := range elements(b, parts) {
		typ := text(b, first(get(b, el, "type")))
		synthetic, _ := get(b, el, "synthetic")
		switch {
		case typ == "compaction":
			r.compaction = el
		case typ == "file", typ == "text" && kind(b, synthetic) != 't':
			r.said = true
		}
	}
	return r
}

// openCodeLayout reads {"info":…,"parts":[…]}, sound JSON.
func openCodeLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	info, _ := get(b, v, "info")
	parts, _ := get(b, v, "parts")
	if kind(b, info) != '{' || kind(b, parts) != '[' {
		return nil, parseError(OpenCode, "it has no info and parts")
	}
	switch l.role = text(b, first(get(b, info, "role"))); l.role {
	case "user", "assistant":
	default:
		return nil, parseError(OpenCode, "its role is not user or assistant")
	}
	els := elements(b, parts)
	row := l.addList(newList(els))
	for i, el := range els {
		if kind(b, el) != '{' {
			return nil, parseError(OpenCode, "a part is no object")
		}
		for _, n := range l.openCodePart(el) {
			if n.list == 0 { // result nodes are no entries
				n.list, n.index = row, i
			}
			l.nodes = append(l.nodes, n)
		}
	}
	return l, nil
}

// What opencode puts in the place of parts that are not for the model as they are.
var openCodeSays = map[string]string{
	"compaction": "What did we do so far?",
	"subtask":    "The following tool was executed by the user",
}

// openCodePart reads one part: none for what is no part of the request, two for a call with its result.
func (l *layout) openCodePart(v span) []node {
	b := l.native
	at := map[string]span{}
	for key, f := range fields(b, v) {
		at[string(key)] = f.value
	}
	typ := text(b, at["type"])
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartText, Type: typ, Raw: v.of(b)}}
	switch typ {
	case "text":
		if kind(b, at["ignored"]) == 't' || kind(b, at["text"]) != '"' {
			return nil
		}
		n.part.Text, n.value = text(b, at["text"]), at["text"]
	case "reasoning":
		n.part.Kind, n.part.Text = pipeline.PartReasoning, text(b, at["text"])
	case "compaction", "subtask":
		n.part.Text, n.fixed = openCodeSays[typ], true
	case "file":
		switch text(b, at["mime"]) {
		case "text/plain", "application/x-directory":
			return nil // its content stands in a text part beside it
		}
		openCodeFile(&n.part, b, at)
		n.value = v
		n.as = func(text string) ([]byte, error) {
			out := []byte(`{"type":"text","text":`)
			out = append(out, quote(text)...)
			for _, key := range []string{"id", "sessionID", "messageID"} {
				if s, ok := at[key]; ok {
					out = append(append(append(out, ','), quote(key)...), ':')
					out = append(out, s.of(b)...)
				}
			}
			return append(out, '}'), nil
		}
	case "tool":
		return l.openCodeTool(at)
	default:
		return nil
	}
	return []node{n}
}

func openCodeFile(p *pipeline.Part, b []byte, at map[string]span) {
	p.Kind, p.MediaType, p.Name = pipeline.PartFile, text(b, at["mime"]), text(b, at["filename"])
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Kind = pipeline.PartImage
	}
	url := text(b, at["url"])
	fromAddress(p, url)
	if _, data, ok := dataURL(url); ok && p.MediaType == "text/plain" {
		if s, err := base64.StdEncoding.DecodeString(data); err == nil {
			p.Text = string(s)
		}
	}
}

// openCodeTool reads a call and, when it has ended, its result.
func (l *layout) openCodeTool(at map[string]span) []node {
	b, state := l.native, at["state"]
	// The block holds the result too: it is none of the call alone.
	call := node{part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: "tool", CallID: text(b, at["callID"]), Name: text(b, at["tool"]),
	}}
	if kind(b, state) != '{' {
		return []node{call}
	}
	in := map[string]span{}
	for key, f := range fields(b, state) {
		in[string(key)] = f.value
	}
	if at, ok := in["input"]; ok {
		call.value, call.part.Input = at, string(at.of(b))
	}
	result := node{list: -1, vacant: `""`, part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: "tool_result", CallID: call.part.CallID, Name: call.part.Name,
	}}
	switch text(b, in["status"]) {
	case "completed":
		result.value = in["output"]
	case "error":
		result.value, result.part.IsError = in["error"], true
	default:
		return []node{call}
	}
	if kind(b, result.value) != '"' {
		return []node{call}
	}
	if result.value.end-result.value.start > 2 {
		result.content = []node{l.literalNode(result.value)}
	}
	// Without its result a call has not ended.
	status := in["status"].of(b)
	result.twins = []node{{
		list: -1, value: in["status"], vacant: `"running"`,
		as: func(string) ([]byte, error) { return status, nil },
	}}
	if files := in["attachments"]; kind(b, files) == '[' {
		none := func(string) ([]byte, error) { return []byte("[]"), nil }
		result.twins = append(result.twins, node{list: -1, value: files, vacant: "[]", as: none})
		els := elements(b, files)
		row := l.addList(newList(els))
		for i, el := range els {
			if kind(b, el) == '{' {
				result.content = append(result.content, openCodeAttachment(b, el, row, i))
			}
		}
	}
	return []node{call, result}
}

// openCodeAttachment reads a file of a result. A text in its place is a file of text.
func openCodeAttachment(b []byte, v span, row, index int) node {
	at := map[string]span{}
	for key, f := range fields(b, v) {
		at[string(key)] = f.value
	}
	n := node{
		part: pipeline.Part{Type: text(b, at["type"]), Raw: v.of(b)}, block: true, list: row, index: index,
		value: at["url"],
		as: func(text string) ([]byte, error) {
			return quote("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(text))), nil
		},
		twins: []node{{
			list: row, index: index, value: at["mime"],
			as: func(string) ([]byte, error) { return quote("text/plain"), nil },
		}},
	}
	openCodeFile(&n.part, b, at)
	return n
}

func (openCodeCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return text(b, first(get(b, root(b), "url")))
}

// ---- files

func detectOpenCode(s sketched) bool {
	return s.has("messages[].info.role", "messages[].info.sessionID") && s.has("messages[].parts") ||
		s.has("info.projectID", "info.slug") && s.has("messages")
}

func openOpenCode(s *stream, o Options) source {
	return openArrays(s, o, Meta{Format: OpenCode}, &openCodeSession{}, "messages")
}

// openCodeSession reads the messages of a session. A compaction is two of them: a user message that asks for it, and
// the answer, which is the summary.
type openCodeSession struct {
	asked *openCodeAsked
	seen  recentIDs
}

type openCodeAsked struct {
	message pipeline.Message
	line    int
	id      string
	auto    bool
	tail    string // the first message that is kept
}

func (o *openCodeSession) record(out *scribe, b []byte, line int) error {
	m, err := decodeOpenCode(b)
	if err != nil {
		return err
	}
	r := readOpenCode(b, root(b))
	if m.Role == pipeline.RoleUser && !r.compaction.empty() {
		o.unanswered(out)
		auto, _ := get(b, r.compaction, "auto")
		o.asked = &openCodeAsked{
			message: m, line: line, id: r.id, auto: kind(b, auto) == 't',
			tail: text(b, first(get(b, r.compaction, "tail_start_id"))),
		}
		return nil
	}
	if r.model != "" {
		out.meta.Model, out.meta.Vendor = r.model, protocolOf(r.provider)
	}
	if a := o.asked; a != nil && r.summary && !r.failed && (r.parent == a.id || r.parent == "") {
		o.asked = nil
		c := Compaction{Summary: m, Trigger: "manual"}
		if a.auto {
			c.Trigger = "auto"
		}
		if n := int(o.seen.get(a.tail)); n > 0 && n <= out.count {
			c.Kept = out.count - n + 1
		}
		out.compaction(line, c)
		return nil
	}
	o.unanswered(out)
	out.message(line, m)
	o.seen.add(r.id, int64(out.count))
	if kind(b, r.tokens) == '{' {
		out.usage(line, openCodeUsage(b, r))
	}
	return nil
}

// unanswered gives out a request for a summary that got none.
func (o *openCodeSession) unanswered(out *scribe) {
	if a := o.asked; a != nil {
		o.asked = nil
		out.note(a.line, NoteBoundary, "compaction", "no summary follows it, so it covers nothing")
		out.message(a.line, a.message)
	}
}

func openCodeUsage(b []byte, r openCodeRecord) *Usage {
	figure := func(path ...string) int {
		v, _ := dig(b, r.tokens, path...)
		return number(b, v)
	}
	u := &Usage{
		Input: figure("input"), CacheRead: figure("cache", "read"), CacheCreation: figure("cache", "write"),
		Output: figure("output") + figure("reasoning"), Used: figure("total"), Model: r.model,
	}
	if u.Used == 0 {
		u.Used = u.Input + u.CacheRead + u.CacheCreation + u.Output
	}
	return u
}

func (o *openCodeSession) end(out *scribe, around []byte) error {
	o.unanswered(out)
	if around == nil {
		return nil
	}
	out.meta.Envelope = around
	v := root(around)
	out.meta.ID = text(around, first(dig(around, v, "info", "id")))
	if out.meta.Model == "" {
		out.meta.Model = text(around, first(dig(around, v, "info", "model", "id")))
	}
	*o = openCodeSession{}
	return nil
}

// ---- writing

// openCodePlace is where in a session a message is made for.
type openCodePlace struct {
	session string
	agent   string
	model   []byte // JSON: {"providerID":…,"modelID":…}
	created int64  // epoch milliseconds
	n       int    // messages made before it
}

// id names a message or a part as opencode does: by time, so that ids sort, and a rest that is made of what it is
// for.
func (p openCodePlace) id(prefix string, of ...string) string {
	at := make([]byte, 8)
	stamp := uint64(p.created)*0x1000 + uint64(p.n)
	for i := range at {
		at[7-i] = byte(stamp >> (8 * i))
	}
	sum := sha256.Sum256([]byte(strings.Join(append(of, p.session, prefix), "\x00")))
	return prefix + "_" + hex.EncodeToString(at[2:]) + hex.EncodeToString(sum[:7])
}

func (p openCodePlace) modelJSON() []byte {
	if p.model == nil {
		return []byte(`{"providerID":"","modelID":""}`)
	}
	return p.model
}

// user writes a user message of one part, given open: without its ids and its end.
func (p openCodePlace) user(part []byte) []byte {
	id := p.id("msg", string(part))
	b := fmt.Appendf(
		nil, `{"info":{"id":%s,"sessionID":%s,"role":"user","time":{"created":%d},"agent":%s,"model":%s},"parts":[`,
		quote(id), quote(p.session), p.created, quote(p.agent), p.modelJSON())
	return append(p.part(b, part, id), "]}"...)
}

func (p openCodePlace) part(b, part []byte, message string) []byte {
	b = append(b, part...)
	return fmt.Appendf(b, `,"id":%s,"sessionID":%s,"messageID":%s}`, quote(p.id("prt", string(part))), quote(p.session),
		quote(message))
}

// summary writes the two messages of a compaction.
func (p openCodePlace) summary(text, trigger string) [][]byte {
	ask := fmt.Appendf(nil, `{"type":"compaction","auto":%t`, trigger == "auto")
	asked := p.user(ask)
	p.n++
	said := append([]byte(`{"type":"text","text":`), quote(text)...)
	id := p.id("msg", string(said))
	var model struct{ ProviderID, ModelID string }
	_ = json.Unmarshal(p.modelJSON(), &model) // made here: it cannot fail
	b := fmt.Appendf(
		nil, `{"info":{"id":%s,"sessionID":%s,"role":"assistant","time":{"created":%d,"completed":%d},"parentID":%s,`+
			`"modelID":%s,"providerID":%s,"mode":"compaction","agent":"compaction","path":{"cwd":"","root":""},`+
			`"summary":true,"cost":0,`+
			`"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"},"parts":[`,
		quote(id), quote(p.session), p.created, p.created, quote(readOpenCode(asked, root(asked)).id),
		quote(model.ModelID), quote(model.ProviderID))
	return [][]byte{asked, append(p.part(b, said, id), "]}"...)}
}

func writeOpenCode(out Output) ([]byte, error) {
	all, err := entriesOf(openCodeCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	place := openCodePlaceOf(out.Meta, all)
	var natives [][]byte
	for _, e := range all {
		switch {
		case e.made == nil:
			natives = append(natives, e.native)
		case e.made.Kind == pipeline.KindSummary:
			natives = append(natives, place.summary(e.made.Text, out.Trigger)...)
			place.n += 2
		default:
			natives = append(natives, place.user([]byte(`{"type":"text","text":`+string(quote(e.made.Text))+
				`,"synthetic":true`)))
			place.n++
		}
	}
	return putArray(out.Meta.Envelope, arrayOf(natives), "messages"), nil
}

// openCodePlaceOf takes what made messages need from the session, and their time from just before the first message
// that is kept: no clock is read.
func openCodePlaceOf(m Meta, all []entry) openCodePlace {
	p := openCodePlace{}
	model := func(b []byte, provider, id span) {
		if p.model == nil && kind(b, id) == '"' {
			p.model = fmt.Appendf(nil, `{"providerID":%s,"modelID":%s}`, quote(text(b, provider)), quote(text(b, id)))
		}
	}
	for _, e := range all {
		if e.made != nil {
			continue
		}
		b := e.native
		info, _ := get(b, root(b), "info")
		if p.created == 0 {
			p.created = max(int64(number(b, first(dig(b, info, "time", "created"))))-1, 0)
		}
		p.session = cmp.Or(p.session, text(b, first(get(b, info, "sessionID"))))
		p.agent = cmp.Or(p.agent, text(b, first(get(b, info, "agent"))))
		model(b, first(get(b, info, "providerID")), first(get(b, info, "modelID")))
		model(b, first(dig(b, info, "model", "providerID")), first(dig(b, info, "model", "modelID")))
	}
	if b := m.Envelope; len(b) > 0 && whole(b) == nil {
		info, _ := get(b, root(b), "info")
		p.session = cmp.Or(text(b, first(get(b, info, "id"))), p.session)
		if p.created == 0 {
			p.created = int64(number(b, first(dig(b, info, "time", "updated"))))
		}
		model(b, first(dig(b, info, "model", "providerID")), first(dig(b, info, "model", "id")))
	}
	return p
}
