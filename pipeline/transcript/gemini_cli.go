package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

// Session files of Gemini CLI: one object with messages, or since 2026 a log of records, one a line. And what it
// saves of a chat: an array of Contents, or an object with one under "history", whose natives are Google's.
//
// A message of the model has its tool calls in it, and each call its result. To the model these are two messages, and
// so they are here: the native of the first is the entry of the file with an empty array in the place of every
// result, that of the second an object of the type "toolResults" with the calls' ids, names and results. Written as a
// file they are one again, byte for byte.
//
// In a log a record with the id of an earlier one replaces it, "$rewindTo" takes a message back and all after it, and
// "$set" changes the head, or with "messages" all of the conversation. So messages are held back, up to a bound.

type geminiCLI struct{}

func (geminiCLI) name() Format { return GeminiCLI }

func (geminiCLI) message(l *layout.Layout) pipeline.Message {
	m := google.Message(l)
	m.ID = rawjson.Root(l.Native).Get("id").Text()
	return m
}

// Make writes an entry without a time, and with an id that is made of its content: WriteFile gives it the time of the
// entry that it stands beside.
func (geminiCLI) Make(m pipeline.Made) ([]byte, error) {
	_, part, err := google.Made(m)
	if err != nil {
		return nil, err
	}
	switch m.Role {
	case pipeline.RoleTool:
		return fmt.Appendf(nil, `{"type":"toolResults","toolCalls":[{"id":%s,"name":%s,"result":[%s]}]}`,
			rawjson.Quote(m.CallID), rawjson.Quote(m.Name), part), nil
	case pipeline.RoleAssistant:
		return nil, pipeline.Errorf(pipeline.Internal,
			"a message of the model is an answer of the API: none can be made for a session of Gemini CLI")
	}
	return fmt.Appendf(nil, `{"id":%s,"type":"user","content":[%s]}`,
		rawjson.Quote(madeUUID("user", string(m.Kind), m.Text)), part), nil
}

func (geminiCLI) address(p pipeline.Part) string { return google.Address(p) }

// toolResults is the type of the entry that holds what tools gave back. It stands in no file.
const toolResults = "toolResults"

// read reads an entry of a session.
func (f geminiCLI) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	var typ, content, thoughts, calls rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ}, {"content", &content}, {"thoughts", &thoughts}, {"toolCalls", &calls},
	})
	switch typ.Text() {
	case "user":
		l.Role = "user"
	case "gemini":
		l.Role = "model"
	case toolResults:
		l.Role = "function"
		return f.results(l, calls)
	case "":
		return l.Errorf("it has no type")
	default:
		return l.Errorf("an entry of type %q is no message", typ.Text())
	}
	if l.Role == "model" {
		f.thoughts(l, thoughts)
	}
	if err := f.content(l, content); err != nil {
		return err
	}
	if l.Role == "model" {
		f.calls(l, calls)
	}
	return nil
}

func (geminiCLI) thoughts(l *layout.Layout, v rawjson.Value) {
	if !v.IsArray() {
		return
	}
	els := v.Elements()
	row := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	for i, el := range els {
		said := layout.JoinTexts(el.Get("subject").Text(), el.Get("description").Text())
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Type: "thought", Text: said, Raw: el.Raw()}, List: row,
			Index: i,
		})
	}
}

// content reads a content: a string, a part, or an array of parts and strings.
func (geminiCLI) content(l *layout.Layout, v rawjson.Value) error {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
	case rawjson.String:
		if v.IsEmpty() {
			return nil
		}
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
			List: -1, Value: v, Vacant: `""`, Block: true,
		})
	case rawjson.Object:
		n, err := google.ReadPart(l, v)
		if err != nil {
			return err
		}
		n.List, n.Value, n.Vacant = -1, v, `""`
		if n.Part.Kind == pipeline.PartText {
			n.As = func(s string) ([]byte, error) { return google.Text(rawjson.Quote(s)), nil }
		}
		l.Nodes = append(l.Nodes, n)
	case rawjson.Array:
		nodes, err := google.ReadParts(l, v)
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, nodes...)
	default:
		return l.Errorf("its content is neither a string nor parts")
	}
	return nil
}

// calls reads the tool calls of the model. Newer files have each among the parts of the content as well: then
// the two are one call.
func (geminiCLI) calls(l *layout.Layout, v rawjson.Value) {
	if !v.IsArray() {
		return
	}
	said := map[string][]int{} // calls among the parts, by id, or by name and input
	for i, n := range l.Nodes {
		if n.Part.Kind == pipeline.PartToolCall {
			key := cmp.Or(n.Part.CallID, n.Part.Name+" "+n.Part.Input)
			said[key] = append(said[key], i)
		}
	}
	els := v.Elements()
	row := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	for i, el := range els {
		n := layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "tool_call", Raw: el.Raw()}, List: row,
			Index: i,
		}
		if el.IsObject() {
			for key, field := range el.Fields() {
				switch string(key) {
				case "id":
					n.Part.CallID = field.Value.Text()
				case "name":
					n.Part.Name = field.Value.Text()
				case "args":
					n.Value, n.Part.Input = field.Value, string(field.Value.Raw())
				}
			}
		}
		twin := false
		for _, key := range []string{n.Part.CallID, n.Part.Name + " " + n.Part.Input} {
			if at := said[key]; key != "" && len(at) > 0 {
				first := &l.Nodes[at[0]]
				first.Part.CallID = cmp.Or(first.Part.CallID, n.Part.CallID)
				first.Twins = append(first.Twins, n)
				said[key], twin = at[1:], true
				break
			}
		}
		if !twin {
			l.Nodes = append(l.Nodes, n)
		}
	}
}

// results reads what tools gave back.
func (f geminiCLI) results(l *layout.Layout, v rawjson.Value) error {
	if !v.IsArray() {
		return l.Errorf("it has no results")
	}
	els := v.Elements()
	calls := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	for i, el := range els {
		result, ok := el.Lookup("result")
		if !ok {
			continue
		}
		id, name := el.Get("id").Text(), el.Get("name").Text()
		switch result.Kind() {
		case rawjson.String: // a text alone
			l.Nodes = append(l.Nodes, layout.Node{
				Part: pipeline.Part{Kind: pipeline.PartToolResult, CallID: id, Name: name, Raw: result.Raw()},
				List: calls, Index: i, Value: result, Content: []layout.Node{{
					Part: pipeline.Part{Kind: pipeline.PartText, Text: result.Text(), Raw: result.Raw()},
					List: -1, Value: result, Vacant: `""`, Block: true,
				}},
			})
		case rawjson.Object, rawjson.Array:
			if err := f.result(l, result, calls, i, id, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// result reads one result: a functionResponse, and media beside it.
func (geminiCLI) result(l *layout.Layout, v rawjson.Value, parent, index int, id, name string) error {
	parts := []rawjson.Value{v}
	row, at := parent, index
	if v.IsArray() {
		parts = v.Elements()
		row = l.AddList(layout.List{Siblings: parts, Whole: v, Parent: parent, ParentIndex: index})
	}
	l.Entry = func(s string) []byte { return google.Text(rawjson.Quote(s)) }
	for i, el := range parts {
		n, err := google.ReadPart(l, el)
		if err != nil {
			return err
		}
		if row != parent {
			at = i
		}
		n.List, n.Index = row, at
		if n.Part.Kind == pipeline.PartToolResult {
			// The call's own id counts: it is what the model's entry has.
			n.Part.CallID, n.Part.Name = cmp.Or(id, n.Part.CallID), cmp.Or(n.Part.Name, name)
		}
		l.Nodes = append(l.Nodes, n)
	}
	return nil
}

// apiMessage gives the Content that an entry is to the model.
func (geminiCLI) apiMessage(native []byte) ([]byte, error) {
	v := rawjson.Root(native)
	typ := v.Get("type").Text()
	var parts [][]byte
	add := func(v rawjson.Value) {
		switch v.Kind() {
		case rawjson.String:
			if !v.IsEmpty() {
				parts = append(parts, google.Text(v.Raw()))
			}
		case rawjson.Object:
			parts = append(parts, v.Raw())
		case rawjson.Array:
			for _, el := range v.Elements() {
				if el.IsString() {
					parts = append(parts, google.Text(el.Raw()))
				} else {
					parts = append(parts, el.Raw())
				}
			}
		}
	}
	calls, _ := v.Lookup("toolCalls")
	switch typ {
	case toolResults:
		if !calls.IsArray() {
			return nil, nil
		}
		for _, el := range calls.Elements() {
			result, _ := el.Lookup("result")
			if result.IsString() {
				parts = append(parts, google.FunctionResponse(el.Get("id").Text(),
					el.Get("name").Text(), result.Raw(), false))
				continue
			}
			add(result)
		}
	default:
		add(v.Get("content"))
		if typ != "gemini" || !calls.IsArray() {
			break
		}
		l, err := layoutOf(geminiCLI{}, native)
		if err != nil {
			return nil, err
		}
		for _, n := range l.Nodes {
			if n.Part.Kind == pipeline.PartToolCall && n.Part.Type == "tool_call" {
				parts = append(parts, google.FunctionCall(n.Part))
			}
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	role := "user"
	if typ == "gemini" {
		role = "model"
	}
	return google.Wrap(role, parts), nil
}

func (geminiCLI) detect(s rawjson.Outline) bool {
	if s.Has("projectHash") && s.Has("sessionId") || s.Has("$set") || s.Has("messages[].type=gemini") ||
		s.Has("type=gemini") && s.Has("id") && s.Has("content") {
		return true
	}
	return s.Has("history[].parts") || s.Has("[].parts") && s.Has("[].role=model", "[].role=user") &&
		!s.Has("[].info", "[].id")
}

func (geminiCLI) open(s *jsonstream.Reader, o Options) source {
	head := rawjson.OutlineOf(s.Window())
	switch {
	case head.Has("[].parts", "history[].parts", "contents[].parts"):
		return googleAPI{}.open(s, o)
	case head.Has("messages[].type", "messages[].content") || head.Has("messages") && !head.Has("$set", "type"):
		return openArrays(s, o, Meta{Format: GeminiCLI, Vendor: "google", Source: sourceSession}, &geminiSession{},
			"messages")
	}
	return openLines(s, o, Meta{Format: GeminiCLI, Vendor: "google", Source: sourceSessionLog},
		&geminiSession{log: true, hold: holdBytes})
}

// How a session of Gemini CLI is kept.
const (
	sourceSession    = "session"     // one object
	sourceSessionLog = "session-log" // a record a line
)

// geminiSession reads the entries of a session.
type geminiSession struct {
	log  bool
	hold int // how much of a log is held back
	head []byte
	// held are entries that may still be replaced or taken back.
	held      []geminiEntry
	at        map[string]int // by id, index into held plus gone
	gone      int            // entries that were given out
	heldBytes int
}

type geminiEntry struct {
	id   string
	b    []byte
	line int
}

func (g *geminiSession) record(out *scribe, b []byte, line int) error {
	if !g.log {
		return g.give(out, geminiEntry{b: b, line: line})
	}
	v := rawjson.Root(b)
	var id, typ, rewind, set rawjson.Value
	v.Read(rawjson.Want{{"id", &id}, {"type", &typ}, {"$rewindTo", &rewind}, {"$set", &set}})
	switch {
	case !rewind.IsMissing():
		return g.rewind(out, rewind.Text(), line)
	case set.IsObject():
		return g.set(out, set, line)
	case id.IsString() && !typ.IsMissing():
		return g.entry(out, geminiEntry{id.Text(), b, line})
	case !v.Get("sessionId").IsMissing():
		g.head, _ = v.DropKeys(func(key string, _ rawjson.Value) bool { return key == "messages" })
		g.readHead(out, v)
		return nil
	}
	return errors.New("a record that is neither a message nor a change of the session")
}

// readHead reads what stands at the head of a session.
func (g *geminiSession) readHead(out *scribe, v rawjson.Value) {
	for key, field := range v.Fields() {
		switch string(key) {
		case "sessionId":
			out.meta.ID = field.Value.Text()
		case "kind":
			out.meta.Sidechain = field.Value.Text() == "subagent"
		}
	}
}

// entry takes a message, or a later state of one.
func (g *geminiSession) entry(out *scribe, e geminiEntry) error {
	if at, ok := g.at[e.id]; ok {
		if at < g.gone {
			out.note(e.line, NoteDuplicate, "message",
				"it came again too far behind its first place, and stays as it was")
			return nil
		}
		old := &g.held[at-g.gone]
		g.heldBytes += len(e.b) - len(old.b)
		old.b = e.b // the place, and the line, are those of the first
		return nil
	}
	if g.at == nil {
		g.at = map[string]int{}
	}
	g.at[e.id] = g.gone + len(g.held)
	g.held = append(g.held, e)
	g.heldBytes += len(e.b)
	for g.heldBytes > g.hold {
		if err := g.next(out); err != nil {
			return err
		}
	}
	return nil
}

// next gives out the entry that is held the longest.
func (g *geminiSession) next(out *scribe) error {
	e := g.held[0]
	g.held[0] = geminiEntry{}
	g.held = g.held[1:]
	g.gone++
	g.heldBytes -= len(e.b)
	if err := g.give(out, e); err != nil {
		return out.fault(e.line, err)
	}
	return nil
}

// rewind takes back a message and all after it; one that is not known takes back everything, as Gemini CLI does.
func (g *geminiSession) rewind(out *scribe, id string, line int) error {
	at, known := g.at[id]
	if g.gone > 0 && (!known || at < g.gone) {
		out.note(line, NoteBranch, "$rewindTo", "it goes further back than what is held: the messages before that stay")
		at, known = g.gone, true
	}
	if !known {
		at = 0
	}
	g.drop(out, at-g.gone, "a message that was taken back")
	return nil
}

// drop forgets the held entries from an index on.
func (g *geminiSession) drop(out *scribe, from int, why string) {
	for _, e := range g.held[from:] {
		out.note(e.line, NoteBranch, "message", why)
		delete(g.at, e.id)
		g.heldBytes -= len(e.b)
	}
	g.held = slices.Clip(g.held[:from])
}

// set takes a change of the head. With messages it replaces the conversation: after a compaction, or a start anew.
func (g *geminiSession) set(out *scribe, v rawjson.Value, line int) error {
	g.readHead(out, v)
	messages, ok := v.Lookup("messages")
	if !ok || !messages.IsArray() || messages.IsEmpty() {
		out.note(line, NoteRecord, "$set", "a change of what stands at the head")
		return nil
	}
	if g.gone > 0 {
		out.note(line, NoteBranch, "$set", "it replaces messages that are not held any more: those stay")
	}
	g.drop(out, 0, "a message that the session replaced")
	for _, el := range messages.Elements() {
		id := el.Get("id").Text()
		if !el.IsObject() {
			return errors.New("a message in $set is no object")
		}
		if err := g.entry(out, geminiEntry{
			cmp.Or(id, fmt.Sprintf("line %d, byte %d", line, el.Start())),
			bytes.Clone(el.Raw()), line,
		}); err != nil {
			return err
		}
	}
	return nil
}

// give gives out what an entry holds.
func (g *geminiSession) give(out *scribe, e geminiEntry) error {
	b, v := e.b, rawjson.Root(e.b)
	typ := v.Get("type").Text()
	switch typ {
	case "user", "gemini":
	case "":
		return errors.New("a message without a type")
	default: // info, error, warning
		out.note(e.line, NoteRecord, typ, "shown to the person only, never sent to the model")
		return nil
	}
	native, results := geminiCLI{}.splitResults(b, v)
	m, err := decode(geminiCLI{}, native)
	if err != nil {
		return err
	}
	if typ == "user" {
		if s := strings.TrimSpace(said(m)); strings.HasPrefix(s, "/") || strings.HasPrefix(s, "?") {
			out.note(e.line, NoteRecord, "command", "a command to Gemini CLI, never sent to the model")
			return nil
		}
		if m.Kind == pipeline.KindOrdinary && layout.LooksLikeSummary(m) {
			m.Kind = pipeline.KindSummary
		}
	}
	if len(m.Parts) > 0 {
		out.message(e.line, m)
		model := v.Get("model").Text()
		if model != "" {
			out.meta.Model = model
		}
		out.usage(e.line, geminiCLI{}.tokens(v.Get("tokens"), model))
	}
	if results == nil {
		return nil
	}
	if m, err = decode(geminiCLI{}, results); err != nil {
		return err
	}
	if len(m.Parts) > 0 {
		out.message(e.line, m)
	}
	return nil
}

func said(m pipeline.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind == pipeline.PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// tokens reads the figures of one answer.
func (geminiCLI) tokens(at rawjson.Value, model string) *Usage {
	if !at.IsObject() {
		return nil
	}
	u := Usage{Model: model}
	input := 0
	for key, field := range at.Fields() {
		switch string(key) {
		case "input", "tool":
			input += field.Value.Count()
		case "cached":
			u.CacheRead = field.Value.Count()
		case "output", "thoughts":
			u.Output += field.Value.Count()
		case "total":
			u.Used = field.Value.Count()
		}
	}
	u.Input = max(input-u.CacheRead, 0)
	return &u
}

// splitResults takes the results out of an entry of the model: native is the entry with an empty array in the place
// of each, results the entry that holds them; nil when there are none.
func (geminiCLI) splitResults(b []byte, v rawjson.Value) (native, results []byte) {
	calls, ok := v.Lookup("toolCalls")
	if !ok || !calls.IsArray() {
		return b, nil
	}
	var all []rawjson.Splice
	for _, el := range calls.Elements() {
		result, ok := el.Lookup("result")
		if !ok || result.IsNull() || result.IsArray() && result.IsEmpty() {
			continue
		}
		results = fmt.Appendf(results, `,{"id":%s,"name":%s,"result":%s}`, jsonOr(el, "id"), jsonOr(el, "name"),
			result.Raw())
		all = append(all, result.Replace([]byte("[]")))
	}
	if all == nil {
		return b, nil
	}
	head := fmt.Appendf(nil, `{"type":"toolResults","of":%s,"toolCalls":[`, jsonOr(v, "id"))
	return rawjson.Apply(b, all...), append(append(head, results[1:]...), "]}"...)
}

// jsonOr is the JSON of a key, an empty string when it is not there.
func jsonOr(v rawjson.Value, key string) []byte {
	if at, ok := v.Lookup(key); ok && at.IsString() {
		return at.Raw()
	}
	return []byte(`""`)
}

func (g *geminiSession) end(out *scribe, around []byte) error {
	for len(g.held) > 0 {
		if err := g.next(out); err != nil {
			return err
		}
	}
	g.held, g.at, g.gone = nil, nil, 0
	if around != nil {
		g.readHead(out, rawjson.Root(around))
		g.head = around
	}
	out.meta.Envelope = g.head
	g.head = nil
	return nil
}

// write writes a session: one object where its head has a place for messages, else a record a line.
func (f geminiCLI) write(out Output) ([]byte, error) {
	if out.Meta.Format == Google {
		return f.savedChat(out)
	}
	var entries [][]byte
	var time []byte
	head := out.Meta.Envelope
	if len(head) > 0 && rawjson.Check(head) == nil && rawjson.Root(head).IsObject() {
		time = fieldOf(rawjson.Root(head), "lastUpdated")
	} else {
		head = nil
	}
	var made []bool
	timely := false
	for i, it := range out.Items {
		b, err := Codec{geminiCLI{}}.EncodeItem(it)
		if err == nil && b != nil {
			err = rawjson.Check(b)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b == nil {
			continue
		}
		entries, made = append(entries, b), append(made, it.Made != nil)
		// What is made has the time of the first entry that is kept, else the session's last: no clock is read.
		if at := fieldOf(rawjson.Root(b), "timestamp"); at != nil && !timely {
			time, timely = at, true
		}
	}
	for i, b := range entries {
		if made[i] {
			entries[i] = timed(b, rawjson.Root(b), time)
		} else if at := fieldOf(rawjson.Root(b), "timestamp"); at != nil {
			time = at
		}
	}
	entries, err := f.join(entries)
	if err != nil {
		return nil, err
	}
	if _, isObject := rawjson.Root(head).Lookup("messages"); isObject || head == nil {
		return rawjson.PutArray(head, rawjson.ArrayOf(entries), "messages"), nil
	}
	return rawjson.Lines(append([][]byte{head}, entries...)), nil
}

// join makes entries as files have them: results stand in the calls that they are of.
func (f geminiCLI) join(all [][]byte) ([][]byte, error) {
	out := make([][]byte, 0, len(all))
	for _, b := range all {
		if v := rawjson.Root(b); v.Get("type").Text() == toolResults {
			if err := f.putResults(out, v); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, b)
	}
	return out, nil
}

// fieldOf is the JSON of a key, nil when it is not there.
func fieldOf(v rawjson.Value, key string) []byte {
	if at, ok := v.Lookup(key); ok {
		return at.Raw()
	}
	return nil
}

// timed gives an entry that was made its time.
func timed(b []byte, v rawjson.Value, time []byte) []byte {
	if time == nil {
		return b
	}
	at := v.Start() + 1
	pair := fmt.Appendf(nil, `"timestamp":%s,`, time)
	return rawjson.Apply(b, rawjson.Insert(at, pair))
}

// putResults puts results back into the calls that they are of: those of the entry that they were taken from, else
// the last ones with their ids.
func (f geminiCLI) putResults(entries [][]byte, v rawjson.Value) error {
	of := v.Get("of").Text()
	calls, _ := v.Lookup("toolCalls")
	if !calls.IsArray() {
		return nil
	}
	for _, el := range calls.Elements() {
		id, name := el.Get("id").Text(), el.Get("name").Text()
		result := fieldOf(el, "result")
		if result == nil {
			continue
		}
		found := false
		for i := len(entries) - 1; i >= 0 && !found; i-- {
			e := entries[i]
			if of != "" && rawjson.Root(e).Get("id").Text() != of {
				continue
			}
			entries[i], found = f.putResult(e, id, name, result)
		}
		if !found {
			return pipeline.Errorf(pipeline.Internal, "a tool result has no call that it belongs to")
		}
	}
	return nil
}

// putResult puts a result into the first call of an entry that has its id, or without one its name, and no result.
func (geminiCLI) putResult(e []byte, id, name string, result []byte) ([]byte, bool) {
	calls, ok := rawjson.Root(e).Lookup("toolCalls")
	if !ok || !calls.IsArray() {
		return e, false
	}
	for _, el := range calls.Elements() {
		if !el.IsObject() || el.Get("id").Text() != id || id == "" &&
			el.Get("name").Text() != name {
			continue
		}
		at, ok := el.Lookup("result")
		switch {
		case !ok:
			end := el.End() - 1
			return rawjson.Apply(e, rawjson.Insert(end, fmt.Appendf(nil, `,"result":%s`, result))), true
		case at.IsNull(), at.IsArray() && at.IsEmpty():
			return at.With(result), true
		}
	}
	return e, false
}

// savedChat writes contents as Gemini CLI saves a chat: as an array.
func (geminiCLI) savedChat(out Output) ([]byte, error) {
	messages, err := EncodeItems(Codec{googleAPI{}}, out.Items)
	if err == nil {
		messages, err = google.Join(messages)
	}
	if err != nil {
		return nil, err
	}
	return rawjson.ArrayOf(messages), nil
}
