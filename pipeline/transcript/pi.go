package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// Pi is session files of the Pi coding agent, JSONL: a session line, then entries. A stored message is one entry
// line. From session version 2 on entries are a tree, by id and parentId; the conversation is the path from the last
// entry to the root.
//
// Written is a session that Pi resumes: the session line, a compaction entry that keeps nothing from before itself,
// and the entries that stay, as they were.
const Pi Format = "pi"

type pi struct{}

func (pi) name() Format { return Pi }

func (f pi) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	e := f.entry(rawjson.Root(l.Native))
	m.ID = e.id.Text()
	switch {
	case e.typ == "compaction", e.role == "compactionSummary":
		m.Kind = pipeline.KindSummary
	case m.Role == pipeline.RoleUser && e.role != "user":
		m.Kind = pipeline.KindSynthetic // a command's output, an extension, what a branch left behind
	}
	return m
}

// Make writes an entry with what depends on no session: WriteFile gives it a time and a place in the tree.
func (pi) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		return fmt.Appendf(nil, `{"type":"message","message":{"role":"toolResult","toolCallId":%s,"toolName":%s,`+
			`"content":[%s],"isError":%t,"timestamp":0}}`, rawjson.Quote(m.CallID), rawjson.Quote(m.Name),
			layout.TextBlock(m.Text), m.IsError), nil
	case pipeline.RoleUser:
		if err := layout.MustSay(m); err != nil {
			return nil, err
		}
		if m.Kind == pipeline.KindSummary {
			return fmt.Appendf(nil, `{"type":"compaction","summary":%s,"tokensBefore":0}`, rawjson.Quote(m.Text)), nil
		}
		if m.Kind != pipeline.KindOrdinary {
			return fmt.Appendf(nil, `{"type":"custom_message","customType":"precis","content":[%s],"display":true}`,
				layout.TextBlock(m.Text)), nil
		}
		return fmt.Appendf(nil, `{"type":"message","message":{"role":"user","content":[%s],"timestamp":0}}`,
			layout.TextBlock(m.Text)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal,
		"what role %s says in an entry of Pi a model wrote: none can be made", m.Role)
}

// piEntry is where in an entry the values are that matter here.
type piEntry struct {
	typ, role                     string
	id, parent, message, time     rawjson.Value
	content, summary, hidden      rawjson.Value
	firstKeptIndex, firstKeptID   rawjson.Value
	tokensBefore, provider, model rawjson.Value
}

func (pi) entry(v rawjson.Value) piEntry {
	e := piEntry{}
	for key, field := range v.Fields() {
		switch string(key) {
		case "type":
			e.typ = field.Value.Text()
		case "id":
			e.id = field.Value
		case "parentId":
			e.parent = field.Value
		case "timestamp":
			e.time = field.Value
		case "message":
			e.message = field.Value
		case "content":
			e.content = field.Value
		case "summary":
			e.summary = field.Value
		case "firstKeptEntryIndex":
			e.firstKeptIndex = field.Value
		case "firstKeptEntryId":
			e.firstKeptID = field.Value
		case "tokensBefore":
			e.tokensBefore = field.Value
		case "provider":
			e.provider = field.Value
		case "modelId":
			e.model = field.Value
		}
	}
	if e.typ != "message" || !e.message.IsObject() {
		return e
	}
	for key, field := range e.message.Fields() {
		switch string(key) {
		case "role":
			e.role = field.Value.Text()
		case "content":
			e.content = field.Value
		case "summary":
			e.summary = field.Value
		case "excludeFromContext":
			e.hidden = field.Value
		}
	}
	return e
}

// read reads an entry that is for the model, sound JSON.
func (f pi) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	e := f.entry(v)
	l.Role = "user"
	switch {
	case e.typ == "compaction", e.typ == "branch_summary", e.role == "compactionSummary", e.role == "branchSummary":
		if !e.summary.IsString() {
			return l.Errorf("a %s entry has no summary", e.typ)
		}
		l.Nodes = []layout.Node{layout.Text(e.summary)}
		return nil
	case e.typ == "custom_message", e.role == "custom", e.role == "hookMessage", e.role == "user":
		return f.content(l, e.content)
	case e.role == "assistant":
		l.Role = "assistant"
		return f.content(l, e.content)
	case e.role == "toolResult":
		l.Role = "tool"
		return f.result(l, e)
	case e.role == "bashExecution":
		f.bash(l, e.message)
		return nil
	case e.typ != "message":
		return l.Errorf("an entry of type %q is no message", e.typ)
	}
	return l.Errorf("its role is not user, assistant, toolResult, bashExecution or custom")
}

func (f pi) content(l *layout.Layout, v rawjson.Value) error {
	switch v.Kind() {
	case rawjson.String:
		l.Nodes = []layout.Node{layout.Text(v)}
		return nil
	case rawjson.Array:
		nodes, err := f.blocks(l, v)
		l.Nodes = nodes
		return err
	}
	return l.Errorf("its content is neither a string nor an array of blocks")
}

func (f pi) blocks(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	els := v.Elements()
	row := l.AddList(layout.NewList(els))
	nodes := make([]layout.Node, 0, len(els))
	for i, el := range els {
		if !el.IsObject() {
			return nil, l.Errorf("a content block is no object")
		}
		n := f.block(el)
		n.List, n.Index = row, i
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (f pi) block(v rawjson.Value) layout.Node {
	at := v.Members()
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: at["type"].Text(), Raw: v.Raw()}}
	p := &n.Part
	switch p.Type {
	case "text":
		if at["text"].IsString() {
			p.Kind, p.Text, n.Value = pipeline.PartText, at["text"].Text(), at["text"]
		}
	case "thinking":
		p.Kind, p.Text = pipeline.PartReasoning, at["thinking"].Text()
	case "image":
		p.Kind, p.MediaType = pipeline.PartImage, at["mimeType"].Text()
		media.FromAddress(p, f.address(*p))
	case "toolCall":
		// Gemini calls so what the vendor runs itself.
		p.Type = ""
		p.Kind, p.CallID, p.Name, n.Block = pipeline.PartToolCall, at["id"].Text(), at["name"].Text(), false
		n.Value, n.Insert, n.Key = at["arguments"], v.End()-1, "arguments"
		p.Input = n.Value.TextOrRaw()
	}
	return n
}

// result reads a message that is a result as a whole.
func (f pi) result(l *layout.Layout, e piEntry) error {
	at := e.message.Members()
	n := layout.Node{
		Part: pipeline.Part{
			Kind: pipeline.PartToolResult, CallID: at["toolCallId"].Text(), Name: at["toolName"].Text(),
			IsError: at["isError"].IsTrue(),
		},
		List: -1, Value: e.content, Insert: e.message.End() - 1,
		As: func(text string) ([]byte, error) { return fmt.Appendf(nil, "[%s]", layout.TextBlock(text)), nil },
	}
	switch e.content.Kind() {
	case rawjson.Missing, rawjson.Null:
	case rawjson.String:
		n.Content = []layout.Node{layout.Text(e.content)}
	case rawjson.Array:
		nodes, err := f.blocks(l, e.content)
		if err != nil {
			return err
		}
		n.Content = nodes
	default:
		return l.Errorf("its content is neither a string nor an array of blocks")
	}
	l.Nodes = []layout.Node{n}
	return nil
}

// bash reads a command that the person ran beside the agent, which Pi tells the model in these words. A text in
// its place goes where the output is.
func (pi) bash(l *layout.Layout, v rawjson.Value) {
	at := v.Members()
	said := "Ran `" + at["command"].Text() + "`\n"
	if output := at["output"].Text(); output != "" {
		said += "```\n" + output + "\n```"
	} else {
		said += "(no output)"
	}
	if code := at["exitCode"].Numeral(); at["cancelled"].IsTrue() {
		said += "\n\n(command cancelled)"
	} else if code != "" && code != "0" {
		said += "\n\nCommand exited with code " + code
	}
	if path := at["fullOutputPath"].Text(); path != "" && at["truncated"].IsTrue() {
		said += "\n\n[Output truncated. Full output: " + path + "]"
	}
	l.Nodes = []layout.Node{{
		Part: pipeline.Part{Kind: pipeline.PartText, Type: "bashExecution", Text: said},
		List: -1, Value: at["output"], Insert: v.End() - 1, Key: "output", Vacant: `""`, Block: true,
	}}
}

func (pi) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return media.Base64URL(p.MediaType, rawjson.Root(b).Get("data").Text())
}

// ---- files

func (pi) detect(s rawjson.Outline) bool {
	return s.Has("type=session") && s.Has("cwd") ||
		s.Has("type=message") && s.Has("message.role=user", "message.role=assistant", "message.role=toolResult") &&
			!s.Has("uuid", "isSidechain")
}

func (pi) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Pi}, &piSession{hold: holdBytes})
}

// piSession reads entries. Those of version 1 are given out as they come. Which of a tree's belong to the
// conversation is known at its end only: until then they are held back, up to a bound, past which all are given out
// in the order of the file.
type piSession struct {
	// before is, for the last entries, how many messages came before each; skipped counts those no longer there.
	before  []int32
	skipped int
	seen    recentIDs
	tree    bool
	held    []piHeld
	bytes   int
	hold    int
}

type piHeld struct {
	native     []byte
	line       int
	id, parent string
	isMessage  bool
}

// piEntriesKept bounds how far back the first kept entry of a compaction is looked for by its index.
const piEntriesKept = 1 << 20

func (p *piSession) record(out *scribe, b []byte, line int) error {
	e := pi{}.entry(rawjson.Root(b))
	p.index(out)
	if e.typ == "" {
		return errors.New("an entry without a type")
	}
	if e.typ == "session" {
		if out.meta.Envelope != nil {
			out.note(line, NoteRecord, e.typ, "a second session line")
		} else {
			p.session(out, b, e)
		}
		return nil
	}
	isMessage, why := pi{}.isMessage(e)
	if isMessage {
		// What is broken is said with its line, also where it is given out later.
		if _, err := decode(pi{}, b); err != nil {
			return err
		}
	} else {
		out.note(line, NoteRecord, e.typ, why)
	}
	if !e.parent.IsMissing() && !e.id.IsMissing() && !out.begun {
		p.tree = true
	}
	if !p.tree {
		p.seen.add(e.id.Text(), int64(out.count)+1)
		p.give(out, b, e, line, isMessage)
		return nil
	}
	h := piHeld{line: line, id: e.id.Text(), parent: e.parent.Text(), isMessage: isMessage}
	if isMessage || e.typ == "model_change" {
		h.native = b
	}
	p.held = append(p.held, h)
	if p.bytes += len(h.native) + 64; p.bytes > p.hold {
		out.note(line, NoteBranch, "file",
			"it is too large to tell its branches apart: all entries are taken in their order")
		p.flush(out, func(int) bool { return true })
		p.tree = false
	}
	return nil
}

// isMessage says whether an entry is for the model, and if not, why.
func (pi) isMessage(e piEntry) (bool, string) {
	switch e.typ {
	case "message":
		if e.hidden.IsTrue() {
			return false, "a command that the person kept from the model"
		}
		return true, ""
	case "custom_message", "branch_summary", "compaction":
		return true, ""
	}
	return false, "an entry of the client, no message"
}

func (p *piSession) session(out *scribe, b []byte, e piEntry) {
	out.meta.ID = e.id.Text()
	out.meta.Model = e.model.Text()
	out.meta.Vendor = protocolOf(e.provider.Text())
	out.meta.Envelope = lineArray(b)
}

// index notes for one more entry how many messages came before it.
func (p *piSession) index(out *scribe) {
	p.before = append(p.before, int32(out.count))
	if len(p.before) > 2*piEntriesKept {
		p.skipped += piEntriesKept
		p.before = append(p.before[:0], p.before[piEntriesKept:]...)
	}
}

// give gives out an entry.
func (p *piSession) give(out *scribe, b []byte, e piEntry, line int, isMessage bool) {
	if e.typ == "model_change" {
		out.meta.Model, out.meta.Vendor = e.model.Text(), protocolOf(e.provider.Text())
	}
	if !isMessage {
		return
	}
	m, err := decode(pi{}, b)
	if err != nil {
		return // it was read before
	}
	if e.typ == "compaction" {
		out.compaction(line, Compaction{Summary: m, Kept: p.kept(out, e), TokensBefore: e.tokensBefore.Count()})
		return
	}
	var model string
	if e.role == "assistant" {
		if model = e.message.Get("model").Text(); model != "" {
			out.meta.Model = model
		}
		if v := (pi{}).vendor(e.message.Get("api").Text()); v != "" {
			out.meta.Vendor = v
		}
	}
	out.message(line, m)
	if used, ok := e.message.Lookup("usage"); ok && e.role == "assistant" && used.IsObject() {
		out.usage(line, pi{}.usage(used, model))
	}
}

// kept is how many messages stand between the first kept entry of a compaction and the compaction.
func (p *piSession) kept(out *scribe, e piEntry) int {
	if e.firstKeptIndex.IsNumber() {
		if i := e.firstKeptIndex.Count() - p.skipped; i >= 0 && i < len(p.before) {
			return out.count - int(p.before[i])
		}
		return 0
	}
	if n := int(p.seen.get(e.firstKeptID.Text())); n > 0 && n <= out.count {
		return out.count - n + 1
	}
	return 0
}

func (pi) vendor(api string) string {
	switch api {
	case "anthropic-messages":
		return "anthropic"
	case "openai-completions", "openai-responses":
		return "openai"
	}
	return ""
}

func (pi) usage(v rawjson.Value, model string) *Usage {
	figure := func(key string) int { return v.Get(key).Count() }
	u := &Usage{
		Input: figure("input"), CacheRead: figure("cacheRead"), CacheCreation: figure("cacheWrite"),
		Output: figure("output"), Model: model,
	}
	u.Used = u.Input + u.CacheRead + u.CacheCreation + u.Output
	return u
}

func (p *piSession) end(out *scribe, _ []byte) error {
	if !p.tree {
		return nil
	}
	at := map[string]int{}
	for i, h := range p.held {
		at[h.id] = i
	}
	live := map[int]bool{}
	for i := len(p.held) - 1; i >= 0 && !live[i]; {
		live[i] = true
		parent, ok := at[p.held[i].parent]
		if !ok || p.held[i].parent == "" {
			break
		}
		i = parent
	}
	p.flush(out, func(i int) bool { return live[i] })
	return nil
}

// flush gives out the held entries for which live says so, in the order of the file.
func (p *piSession) flush(out *scribe, live func(int) bool) {
	for i, h := range p.held {
		if !live(i) {
			if h.isMessage {
				out.note(h.line, NoteBranch, "entry", "it stands on a branch that the conversation left")
			}
			continue
		}
		p.seen.add(h.id, int64(out.count)+1)
		if h.native != nil {
			p.give(out, h.native, pi{}.entry(rawjson.Root(h.native)), h.line, h.isMessage)
		}
	}
	p.held, p.bytes = nil, 0
}

// ---- writing

// piFile writes a session.
type piFile struct {
	out   bytes.Buffer
	tree  bool
	time  []byte // JSON
	known map[string]bool
	prev  []byte // JSON of the id of the entry before, nil for none
	n     int    // entries so far, the session line included
}

func (pi) write(out Output) ([]byte, error) {
	f := piFile{known: map[string]bool{}, time: []byte(`""`)}
	head := pi{}.head(out)
	if at, ok := rawjson.Root(head).Lookup("timestamp"); ok && at.IsString() {
		f.time = at.Raw()
	}
	all, err := out.entries(pi{})
	if err != nil {
		return nil, err
	}
	// What is made has the time of the first entry that is kept, else the session's: no clock is read.
	if at := firstStored(all, "timestamp"); at != nil {
		f.time = at
	}
	for _, e := range all {
		if e.made == nil {
			p := pi{}.entry(rawjson.Root(e.native))
			f.tree = f.tree || !p.parent.IsMissing()
			f.known[p.id.Text()] = true
		}
	}
	f.line(head)
	for _, e := range all {
		if e.made != nil {
			f.made(e.native, out.TokensBefore)
		} else {
			f.stored(e.native)
		}
	}
	return bytes.TrimSuffix(f.out.Bytes(), []byte{'\n'}), nil
}

// head is the session line.
func (pi) head(out Output) []byte {
	if e := out.Meta.Envelope; len(e) > 0 && rawjson.Check(e) == nil && rawjson.Root(e).IsArray() {
		if els := rawjson.Root(e).Elements(); len(els) == 1 && els[0].IsObject() {
			return els[0].Raw()
		}
	}
	id := out.Meta.ID
	if id == "" {
		id = madeUUID("pi", out.Meta.Model)
	}
	return fmt.Appendf(nil, `{"type":"session","id":%s,"timestamp":"","cwd":""}`, rawjson.Quote(id))
}

func (f *piFile) line(b []byte) {
	f.out.Write(b)
	f.out.WriteByte('\n')
	f.n++
}

// made writes an entry of our own, with its time and, in a tree, its place.
func (f *piFile) made(b []byte, tokensBefore int) {
	v := rawjson.Root(b)
	more := fmt.Appendf(nil, `,"timestamp":%s`, f.time)
	id := madeUUID(string(b), fmt.Sprint(f.n))[:8]
	if f.tree {
		more = fmt.Appendf(more, `,"id":"%s","parentId":%s`, id, orNull(f.prev))
		f.prev = rawjson.Quote(id)
	}
	if v.Get("type").Text() == "compaction" {
		if f.tree {
			more = fmt.Appendf(more, `,"firstKeptEntryId":"%s"`, id)
		} else {
			more = fmt.Appendf(more, `,"firstKeptEntryIndex":%d`, f.n)
		}
		if at, ok := v.Lookup("tokensBefore"); ok {
			b = at.With(rawjson.Decimal(tokensBefore))
		}
	}
	end := rawjson.Root(b).End() - 1
	f.line(rawjson.Apply(b, rawjson.Insert(end, more)))
}

func orNull(b json.RawMessage) []byte {
	if b == nil {
		return []byte(`null`)
	}
	return b
}

// stored writes an entry as it was. In a tree it has to hang off the entry before it: where its parent is no longer
// there an entry stands in that does nothing but lead on, and only where the parent is there, but is not the entry
// before, its parentId is changed.
func (f *piFile) stored(b []byte) {
	b = rawjson.OneLine(b)
	e := pi{}.entry(rawjson.Root(b))
	if f.tree {
		switch parent := e.parent.Text(); {
		case bytes.Equal(e.parent.Raw(), f.prev), f.prev == nil && parent == "":
		case parent != "" && !f.known[parent]:
			f.known[parent] = true
			f.line(fmt.Appendf(nil, `{"type":"custom","customType":"precis","timestamp":%s,"id":%s,"parentId":%s}`,
				f.time, rawjson.Quote(parent), orNull(f.prev)))
		case !e.parent.IsMissing():
			b = e.parent.With(orNull(f.prev))
		}
		if id := e.id; !id.IsMissing() {
			f.prev = pi{}.entry(rawjson.Root(b)).id.Raw()
		}
	}
	f.line(b)
}
