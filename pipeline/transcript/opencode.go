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
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// OpenCode is what `opencode export` writes: {"info":…,"messages":[{"info":…,"parts":[…]}]}. A stored message is one
// entry of messages. A call and its result are one part there: such a message has both, the result right behind its
// call, and what is done to the part as a whole is done to both.
//
// Written is an export that `opencode import` loads: a user message with a compaction part, the summary as the
// assistant's answer to it, as opencode records its own, and the messages that are kept as they were.
const OpenCode Format = "opencode"

type openCode struct{}

func (openCode) name() Format { return OpenCode }

func (f openCode) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	r := f.record(rawjson.Root(l.Native))
	m.ID = r.id
	switch {
	case r.summary:
		m.Kind = pipeline.KindSummary
	case m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && !r.said:
		m.Kind = pipeline.KindSynthetic
	}
	return m
}

// Make writes a user message that no person said, without what depends on a session: WriteFile gives it that. A
// result for a call that was never answered is nothing here: the part of the call says itself that it was not
// finished, and opencode tells the model so.
func (openCode) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		return nil, nil
	case pipeline.RoleUser:
		if err := layout.MustSay(m); err != nil {
			return nil, err
		}
		return openCodePlace{}.user([]byte(`{"type":"text","text":` + string(rawjson.Quote(m.Text)) +
			`,"synthetic":true`)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "opencode stores no %s messages that a model did not write", m.Role)
}

// openCodeRecord is what a message says of itself.
type openCodeRecord struct {
	id, role, parent string
	summary, failed  bool
	said             bool          // a person said something
	compaction       rawjson.Value // the part that asks for a summary
	tokens           rawjson.Value
	model, provider  string
}

func (openCode) record(v rawjson.Value) openCodeRecord {
	info, _ := v.Lookup("info")
	r := openCodeRecord{}
	if !info.IsObject() {
		return r
	}
	for key, field := range info.Fields() {
		switch string(key) {
		case "id":
			r.id = field.Value.Text()
		case "role":
			r.role = field.Value.Text()
		case "parentID":
			r.parent = field.Value.Text()
		case "summary":
			r.summary = field.Value.IsTrue() // a user message has an object there, of diffs
		case "error":
			r.failed = field.Value.IsObject()
		case "tokens":
			r.tokens = field.Value
		case "modelID":
			r.model = field.Value.Text()
		case "providerID":
			r.provider = field.Value.Text()
		}
	}
	parts, _ := v.Lookup("parts")
	if !parts.IsArray() {
		return r
	}
	for _, el := range parts.Elements() {
		typ := el.Get("type").Text()
		synthetic, _ := el.Lookup("synthetic")
		switch {
		case typ == "compaction":
			r.compaction = el
		case typ == "file", typ == "text" && !synthetic.IsTrue():
			r.said = true
		}
	}
	return r
}

// read reads {"info":…,"parts":[…]}, sound JSON.
func (f openCode) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	info, _ := v.Lookup("info")
	parts, _ := v.Lookup("parts")
	if !info.IsObject() || !parts.IsArray() {
		return l.Errorf("it has no info and parts")
	}
	switch l.Role = info.Get("role").Text(); l.Role {
	case "user", "assistant":
	default:
		return l.Errorf("its role is not user or assistant")
	}
	els := parts.Elements()
	row := l.AddList(layout.NewList(els))
	for i, el := range els {
		if !el.IsObject() {
			return l.Errorf("a part is no object")
		}
		for _, n := range f.part(l, el) {
			if n.List == 0 { // result nodes are no entries
				n.List, n.Index = row, i
			}
			l.Nodes = append(l.Nodes, n)
		}
	}
	return nil
}

// What opencode puts in the place of parts that are not for the model as they are.
var openCodeSays = map[string]string{
	"compaction": "What did we do so far?",
	"subtask":    "The following tool was executed by the user",
}

// part reads one part: none for what is no part of the request, two for a call with its result.
func (f openCode) part(l *layout.Layout, v rawjson.Value) []layout.Node {
	at := v.Members()
	typ := at["type"].Text()
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartText, Type: typ, Raw: v.Raw()}}
	switch typ {
	case "text":
		if at["ignored"].IsTrue() || !at["text"].IsString() {
			return nil
		}
		n.Part.Text, n.Value = at["text"].Text(), at["text"]
	case "reasoning":
		n.Part.Kind, n.Part.Text = pipeline.PartReasoning, at["text"].Text()
	case "compaction", "subtask":
		n.Part.Text, n.Fixed = openCodeSays[typ], true
	case "file":
		switch at["mime"].Text() {
		case "text/plain", "application/x-directory":
			return nil // its content stands in a text part beside it
		}
		f.file(&n.Part, at)
		n.Value = v
		n.As = func(text string) ([]byte, error) {
			out := fmt.Appendf(nil, `{"type":"text","text":%s`, rawjson.Quote(text))
			for _, key := range []string{"id", "sessionID", "messageID"} {
				if s, ok := at[key]; ok {
					out = fmt.Appendf(out, ",%s:%s", rawjson.Quote(key), s.Raw())
				}
			}
			return append(out, "}"...), nil
		}
	case "tool":
		return f.tool(l, at)
	default:
		return nil
	}
	return []layout.Node{n}
}

func (openCode) file(p *pipeline.Part, at map[string]rawjson.Value) {
	p.Kind, p.MediaType, p.Name = pipeline.PartFile, at["mime"].Text(), at["filename"].Text()
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Kind = pipeline.PartImage
	}
	url := at["url"].Text()
	media.FromAddress(p, url)
	if _, data, ok := media.SplitDataURL(url); ok && p.MediaType == "text/plain" {
		if s, err := base64.StdEncoding.DecodeString(data); err == nil {
			p.Text = string(s)
		}
	}
}

// tool reads a call and, when it has ended, its result.
func (f openCode) tool(l *layout.Layout, at map[string]rawjson.Value) []layout.Node {
	state := at["state"]
	// The block holds the result too: it is none of the call alone.
	call := layout.Node{Part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: "tool", CallID: at["callID"].Text(), Name: at["tool"].Text(),
	}}
	if !state.IsObject() {
		return []layout.Node{call}
	}
	in := state.Members()
	if at, ok := in["input"]; ok {
		call.Value, call.Part.Input = at, string(at.Raw())
	}
	result := layout.Node{List: -1, Vacant: `""`, Part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: "tool_result", CallID: call.Part.CallID, Name: call.Part.Name,
	}}
	switch in["status"].Text() {
	case "completed":
		result.Value = in["output"]
	case "error":
		result.Value, result.Part.IsError = in["error"], true
	default:
		return []layout.Node{call}
	}
	if !result.Value.IsString() {
		return []layout.Node{call}
	}
	if !result.Value.IsEmpty() {
		result.Content = []layout.Node{layout.Text(result.Value)}
	}
	// Without its result a call has not ended.
	status := in["status"].Raw()
	result.Twins = []layout.Node{{
		List: -1, Value: in["status"], Vacant: `"running"`,
		As: func(string) ([]byte, error) { return status, nil },
	}}
	if files := in["attachments"]; files.IsArray() {
		none := func(string) ([]byte, error) { return []byte(`[]`), nil }
		result.Twins = append(result.Twins, layout.Node{List: -1, Value: files, Vacant: "[]", As: none})
		els := files.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			if el.IsObject() {
				result.Content = append(result.Content, f.attachment(el, row, i))
			}
		}
	}
	return []layout.Node{call, result}
}

// attachment reads a file of a result. A text in its place is a file of text.
func (f openCode) attachment(v rawjson.Value, row, index int) layout.Node {
	at := v.Members()
	n := layout.Node{
		Part: pipeline.Part{Type: at["type"].Text(), Raw: v.Raw()}, Block: true, List: row, Index: index,
		Value: at["url"],
		As: func(text string) ([]byte, error) {
			return rawjson.Quote("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(text))), nil
		},
		Twins: []layout.Node{{
			List: row, Index: index, Value: at["mime"],
			As: func(string) ([]byte, error) { return rawjson.Quote("text/plain"), nil },
		}},
	}
	f.file(&n.Part, at)
	return n
}

func (openCode) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return rawjson.Root(b).Get("url").Text()
}

// ---- files

func (openCode) detect(s rawjson.Outline) bool {
	return s.Has("messages[].info.role", "messages[].info.sessionID") && s.Has("messages[].parts") ||
		s.Has("info.projectID", "info.slug") && s.Has("messages")
}

func (openCode) open(s *jsonstream.Reader, o Options) source {
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
	m, err := decode(openCode{}, b)
	if err != nil {
		return err
	}
	r := openCode{}.record(rawjson.Root(b))
	if m.Role == pipeline.RoleUser && !r.compaction.IsMissing() {
		o.unanswered(out)
		auto, _ := r.compaction.Lookup("auto")
		o.asked = &openCodeAsked{
			message: m, line: line, id: r.id, auto: auto.IsTrue(),
			tail: r.compaction.Get("tail_start_id").Text(),
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
	if r.tokens.IsObject() {
		out.usage(line, openCode{}.usage(r))
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

func (openCode) usage(r openCodeRecord) *Usage {
	figure := func(path ...string) int {
		v, _ := r.tokens.Lookup(path...)
		return v.Count()
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
	v := rawjson.Root(around)
	out.meta.ID = v.Get("info", "id").Text()
	if out.meta.Model == "" {
		out.meta.Model = v.Get("info", "model", "id").Text()
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
		rawjson.Quote(id), rawjson.Quote(p.session), p.created, rawjson.Quote(p.agent), p.modelJSON())
	return append(p.part(b, part, id), "]}"...)
}

func (p openCodePlace) part(b, part []byte, message string) []byte {
	return fmt.Appendf(b, `%s,"id":%s,"sessionID":%s,"messageID":%s}`, part, rawjson.Quote(p.id("prt", string(part))),
		rawjson.Quote(p.session), rawjson.Quote(message))
}

// summary writes the two messages of a compaction.
func (p openCodePlace) summary(text, trigger string) [][]byte {
	ask := fmt.Appendf(nil, `{"type":"compaction","auto":%t`, trigger == "auto")
	asked := p.user(ask)
	p.n++
	said := fmt.Appendf(nil, `{"type":"text","text":%s`, rawjson.Quote(text))
	id := p.id("msg", string(said))
	var model struct{ ProviderID, ModelID string }
	_ = json.Unmarshal(p.modelJSON(), &model) // made here: it cannot fail
	b := fmt.Appendf(nil, `{"info":{"id":%s,"sessionID":%s,"role":"assistant","time":{"created":%d,`+
		`"completed":%d},"parentID":%s,"modelID":%s,"providerID":%s,"mode":"compaction","agent":"compaction",`+
		`"path":{"cwd":"","root":""},"summary":true,"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,`+
		`"cache":{"read":0,"write":0}},"finish":"stop"},"parts":[`, rawjson.Quote(id), rawjson.Quote(p.session),
		p.created, p.created, rawjson.Quote(openCode{}.record(rawjson.Root(asked)).id), rawjson.Quote(model.ModelID),
		rawjson.Quote(model.ProviderID))
	return [][]byte{asked, append(p.part(b, said, id), "]}"...)}
}

func (f openCode) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	place := f.placeOf(out.Meta, all)
	var natives [][]byte
	for _, e := range all {
		switch {
		case e.made == nil:
			natives = append(natives, e.native)
		case e.made.Kind == pipeline.KindSummary:
			natives = append(natives, place.summary(e.made.Text, out.Trigger)...)
			place.n += 2
		default:
			natives = append(natives, place.user([]byte(`{"type":"text","text":`+string(rawjson.Quote(e.made.Text))+
				`,"synthetic":true`)))
			place.n++
		}
	}
	return rawjson.PutArray(out.Meta.Envelope, rawjson.ArrayOf(natives), "messages"), nil
}

// placeOf takes what made messages need from the session, and their time from just before the first message
// that is kept: no clock is read.
func (openCode) placeOf(m Meta, all []entry) openCodePlace {
	p := openCodePlace{}
	model := func(b []byte, provider, id rawjson.Value) {
		if p.model == nil && id.IsString() {
			p.model = fmt.Appendf(nil, `{"providerID":%s,"modelID":%s}`, rawjson.Quote(provider.Text()),
				rawjson.Quote(id.Text()))
		}
	}
	for _, e := range all {
		if e.made != nil {
			continue
		}
		b := e.native
		info, _ := rawjson.Root(b).Lookup("info")
		if p.created == 0 {
			p.created = max(int64(info.Get("time", "created").Count())-1, 0)
		}
		p.session = cmp.Or(p.session, info.Get("sessionID").Text())
		p.agent = cmp.Or(p.agent, info.Get("agent").Text())
		model(b, info.Get("providerID"), info.Get("modelID"))
		model(b, info.Get("model", "providerID"), info.Get("model", "modelID"))
	}
	if b := m.Envelope; len(b) > 0 && rawjson.Check(b) == nil {
		info, _ := rawjson.Root(b).Lookup("info")
		p.session = cmp.Or(info.Get("id").Text(), p.session)
		if p.created == 0 {
			p.created = int64(info.Get("time", "updated").Count())
		}
		model(b, info.Get("model", "providerID"), info.Get("model", "id"))
	}
	return p
}
