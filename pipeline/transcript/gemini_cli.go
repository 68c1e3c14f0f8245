package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
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

type geminiCodec struct{}

func (geminiCodec) Format() Format { return GeminiCLI }

func (geminiCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(GeminiCLI, native, decodeGemini)
}

// decodeGemini decodes an entry that is known to be sound JSON.
func decodeGemini(native []byte) (pipeline.Message, error) {
	l, err := geminiLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.contentMessage()
	m.ID = text(native, first(get(native, root(native), "id")))
	return m, nil
}

func (geminiCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(GeminiCLI, m, edits, geminiLayout)
}

// Make writes an entry without a time, and with an id that is made of its content: WriteFile gives it the time of the
// entry that it stands beside.
func (geminiCodec) Make(m pipeline.Made) ([]byte, error) {
	_, part, err := googleMade(m)
	if err != nil {
		return nil, err
	}
	switch m.Role {
	case pipeline.RoleTool:
		b := append([]byte(`{"type":"toolResults","toolCalls":[{"id":`), quote(m.CallID)...)
		b = append(append(b, `,"name":`...), quote(m.Name)...)
		b = append(append(b, `,"result":[`...), part...)
		return append(b, "]}]}"...), nil
	case pipeline.RoleAssistant:
		return nil, pipeline.Errorf(pipeline.Internal,
			"a message of the model is an answer of the API: none can be made for a session of Gemini CLI")
	}
	b := append([]byte(`{"id":`), quote(madeUUID("user", string(m.Kind), m.Text))...)
	b = append(append(b, `,"type":"user","content":[`...), part...)
	return append(b, "]}"...), nil
}

func (geminiCodec) address(p pipeline.Part) string { return googleAddress(p) }

// toolResults is the type of the entry that holds what tools gave back. It stands in no file.
const toolResults = "toolResults"

// geminiLayout reads an entry of a session.
func geminiLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(GeminiCLI, "it is no object")
	}
	var typ, content, thoughts, calls span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "type":
			typ = f.value
		case "content":
			content = f.value
		case "thoughts":
			thoughts = f.value
		case "toolCalls":
			calls = f.value
		}
	}
	switch text(b, typ) {
	case "user":
		l.role = "user"
	case "gemini":
		l.role = "model"
	case toolResults:
		l.role = "function"
		return l, l.geminiResults(calls)
	case "":
		return nil, parseError(GeminiCLI, "it has no type")
	default:
		return nil, parseError(GeminiCLI, "an entry of type %q is no message", text(b, typ))
	}
	if l.role == "model" {
		l.geminiThoughts(thoughts)
	}
	if err := l.geminiContent(content); err != nil {
		return nil, err
	}
	if l.role == "model" {
		l.geminiCalls(calls)
	}
	return l, nil
}

func (l *layout) geminiThoughts(v span) {
	b := l.native
	if kind(b, v) != '[' {
		return
	}
	els := elements(b, v)
	row := l.addList(list{siblings: els, whole: v, parent: -1})
	for i, el := range els {
		said := joinTexts(text(b, first(get(b, el, "subject"))), text(b, first(get(b, el, "description"))))
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Type: "thought", Text: said, Raw: el.of(b)}, list: row,
			index: i,
		})
	}
}

// geminiContent reads a content: a string, a part, or an array of parts and strings.
func (l *layout) geminiContent(v span) error {
	b := l.native
	switch kind(b, v) {
	case 0, 'n':
	case '"':
		if v.end-v.start == 2 {
			return nil
		}
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)},
			list: -1, value: v, vacant: `""`, block: true,
		})
	case '{':
		n, err := l.googlePart(v)
		if err != nil {
			return err
		}
		n.list, n.value, n.vacant = -1, v, `""`
		if n.part.Kind == pipeline.PartText {
			n.as = func(s string) ([]byte, error) { return googleText(quote(s)), nil }
		}
		l.nodes = append(l.nodes, n)
	case '[':
		nodes, err := l.googleParts(v)
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, nodes...)
	default:
		return parseError(GeminiCLI, "its content is neither a string nor parts")
	}
	return nil
}

// geminiCalls reads the tool calls of the model. Newer files have each among the parts of the content as well: then
// the two are one call.
func (l *layout) geminiCalls(v span) {
	b := l.native
	if kind(b, v) != '[' {
		return
	}
	said := map[string][]int{} // calls among the parts, by id, or by name and input
	for i, n := range l.nodes {
		if n.part.Kind == pipeline.PartToolCall {
			key := cmp.Or(n.part.CallID, n.part.Name+" "+n.part.Input)
			said[key] = append(said[key], i)
		}
	}
	els := elements(b, v)
	row := l.addList(list{siblings: els, whole: v, parent: -1})
	for i, el := range els {
		n := node{
			part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "tool_call", Raw: el.of(b)}, list: row,
			index: i,
		}
		if kind(b, el) == '{' {
			for key, f := range fields(b, el) {
				switch string(key) {
				case "id":
					n.part.CallID = text(b, f.value)
				case "name":
					n.part.Name = text(b, f.value)
				case "args":
					n.value, n.part.Input = f.value, string(f.value.of(b))
				}
			}
		}
		twin := false
		for _, key := range []string{n.part.CallID, n.part.Name + " " + n.part.Input} {
			if at := said[key]; key != "" && len(at) > 0 {
				first := &l.nodes[at[0]]
				first.part.CallID = cmp.Or(first.part.CallID, n.part.CallID)
				first.twins = append(first.twins, n)
				said[key], twin = at[1:], true
				break
			}
		}
		if !twin {
			l.nodes = append(l.nodes, n)
		}
	}
}

// geminiResults reads what tools gave back.
func (l *layout) geminiResults(v span) error {
	b := l.native
	if kind(b, v) != '[' {
		return parseError(GeminiCLI, "it has no results")
	}
	els := elements(b, v)
	calls := l.addList(list{siblings: els, whole: v, parent: -1})
	for i, el := range els {
		result, ok := get(b, el, "result")
		if !ok {
			continue
		}
		id, name := text(b, first(get(b, el, "id"))), text(b, first(get(b, el, "name")))
		switch kind(b, result) {
		case '"': // a text alone
			l.nodes = append(l.nodes, node{
				part: pipeline.Part{Kind: pipeline.PartToolResult, CallID: id, Name: name, Raw: result.of(b)},
				list: calls, index: i, value: result, content: []node{{
					part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(result.of(b)), Raw: result.of(b)},
					list: -1, value: result, vacant: `""`, block: true,
				}},
			})
		case '{', '[':
			if err := l.geminiResult(result, calls, i, id, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// geminiResult reads one result: a functionResponse, and media beside it.
func (l *layout) geminiResult(v span, parent, index int, id, name string) error {
	b := l.native
	parts := []span{v}
	row, at := parent, index
	if kind(b, v) == '[' {
		parts = elements(b, v)
		row = l.addList(list{siblings: parts, whole: v, parent: parent, parentIndex: index})
	}
	l.entry = func(s string) []byte { return googleText(quote(s)) }
	for i, el := range parts {
		n, err := l.googlePart(el)
		if err != nil {
			return err
		}
		if row != parent {
			at = i
		}
		n.list, n.index = row, at
		if n.part.Kind == pipeline.PartToolResult {
			// The call's own id counts: it is what the model's entry has.
			n.part.CallID, n.part.Name = cmp.Or(id, n.part.CallID), cmp.Or(n.part.Name, name)
		}
		l.nodes = append(l.nodes, n)
	}
	return nil
}

// apiMessage gives the Content that an entry is to the model.
func (geminiCodec) apiMessage(native []byte) ([]byte, error) {
	if err := whole(native); err != nil {
		return nil, parseError(GeminiCLI, "%v", err)
	}
	b, v := native, root(native)
	typ := text(b, first(get(b, v, "type")))
	var parts [][]byte
	add := func(v span) {
		switch kind(b, v) {
		case '"':
			if v.end-v.start > 2 {
				parts = append(parts, googleText(v.of(b)))
			}
		case '{':
			parts = append(parts, v.of(b))
		case '[':
			for _, el := range elements(b, v) {
				if kind(b, el) == '"' {
					parts = append(parts, googleText(el.of(b)))
				} else {
					parts = append(parts, el.of(b))
				}
			}
		}
	}
	calls, _ := get(b, v, "toolCalls")
	switch typ {
	case toolResults:
		if kind(b, calls) != '[' {
			return nil, nil
		}
		for _, el := range elements(b, calls) {
			result, _ := get(b, el, "result")
			if kind(b, result) == '"' {
				parts = append(parts, functionResponse(text(b, first(get(b, el, "id"))),
					text(b, first(get(b, el, "name"))), result.of(b), false))
				continue
			}
			add(result)
		}
	default:
		add(first(get(b, v, "content")))
		if typ != "gemini" || kind(b, calls) != '[' {
			break
		}
		l, err := geminiLayout(native)
		if err != nil {
			return nil, err
		}
		for _, n := range l.nodes {
			if n.part.Kind == pipeline.PartToolCall && n.part.Type == "tool_call" {
				parts = append(parts, functionCallPart(n.part))
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
	return wrapParts(role, parts), nil
}

// functionCallPart writes a call of the model.
func functionCallPart(p pipeline.Part) []byte {
	b := []byte(`{"functionCall":{`)
	if p.CallID != "" {
		b = append(append(append(b, `"id":`...), quote(p.CallID)...), ',')
	}
	b = append(append(b, `"name":`...), quote(p.Name)...)
	if args := strings.TrimSpace(p.Input); args != "" {
		b = append(append(b, `,"args":`...), args...)
	}
	return append(b, "}}"...)
}

func detectGemini(s sketched) bool {
	if s.has("projectHash") && s.has("sessionId") || s.has("$set") || s.has("messages[].type=gemini") ||
		s.has("type=gemini") && s.has("id") && s.has("content") {
		return true
	}
	return s.has("history[].parts") || s.has("[].parts") && s.has("[].role=model", "[].role=user") &&
		!s.has("[].info", "[].id")
}

func openGemini(s *stream, o Options) source {
	head := sketch(s.window())
	switch {
	case head.has("[].parts", "history[].parts", "contents[].parts"):
		return openGoogle(s, o)
	case head.has("messages[].type", "messages[].content") || head.has("messages") && !head.has("$set", "type"):
		return openArrays(s, o, Meta{Format: GeminiCLI, Vendor: "google", Source: sourceSession}, &gemini{}, "messages")
	}
	return openLines(s, o, Meta{Format: GeminiCLI, Vendor: "google", Source: sourceSessionLog},
		&gemini{log: true, hold: holdBytes})
}

// How a session of Gemini CLI is kept.
const (
	sourceSession    = "session"     // one object
	sourceSessionLog = "session-log" // a record a line
)

// gemini reads the entries of a session.
type gemini struct {
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

func (g *gemini) record(out *scribe, b []byte, line int) error {
	if !g.log {
		return g.give(out, geminiEntry{b: b, line: line})
	}
	v := root(b)
	var id, typ, rewind, set span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "id":
			id = f.value
		case "type":
			typ = f.value
		case "$rewindTo":
			rewind = f.value
		case "$set":
			set = f.value
		}
	}
	switch {
	case !rewind.empty():
		return g.rewind(out, text(b, rewind), line)
	case kind(b, set) == '{':
		return g.set(out, b, set, line)
	case kind(b, id) == '"' && !typ.empty():
		return g.entry(out, geminiEntry{text(b, id), b, line})
	case !first(get(b, v, "sessionId")).empty():
		g.head, _ = dropKeys(b, v, func(key string, _ span) bool { return key == "messages" })
		g.readHead(out, b, v)
		return nil
	}
	return errors.New("a record that is neither a message nor a change of the session")
}

// readHead reads what stands at the head of a session.
func (g *gemini) readHead(out *scribe, b []byte, v span) {
	for key, f := range fields(b, v) {
		switch string(key) {
		case "sessionId":
			out.meta.ID = text(b, f.value)
		case "kind":
			out.meta.Sidechain = text(b, f.value) == "subagent"
		}
	}
}

// entry takes a message, or a later state of one.
func (g *gemini) entry(out *scribe, e geminiEntry) error {
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
func (g *gemini) next(out *scribe) error {
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
func (g *gemini) rewind(out *scribe, id string, line int) error {
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
func (g *gemini) drop(out *scribe, from int, why string) {
	for _, e := range g.held[from:] {
		out.note(e.line, NoteBranch, "message", why)
		delete(g.at, e.id)
		g.heldBytes -= len(e.b)
	}
	g.held = slices.Clip(g.held[:from])
}

// set takes a change of the head. With messages it replaces the conversation: after a compaction, or a start anew.
func (g *gemini) set(out *scribe, b []byte, v span, line int) error {
	g.readHead(out, b, v)
	messages, ok := get(b, v, "messages")
	if !ok || kind(b, messages) != '[' || len(elements(b, messages)) == 0 {
		out.note(line, NoteRecord, "$set", "a change of what stands at the head")
		return nil
	}
	if g.gone > 0 {
		out.note(line, NoteBranch, "$set", "it replaces messages that are not held any more: those stay")
	}
	g.drop(out, 0, "a message that the session replaced")
	for _, el := range elements(b, messages) {
		id := text(b, first(get(b, el, "id")))
		if kind(b, el) != '{' {
			return errors.New("a message in $set is no object")
		}
		if err := g.entry(out, geminiEntry{
			cmp.Or(id, fmt.Sprintf("line %d, byte %d", line, el.start)),
			bytes.Clone(el.of(b)), line,
		}); err != nil {
			return err
		}
	}
	return nil
}

// give gives out what an entry holds.
func (g *gemini) give(out *scribe, e geminiEntry) error {
	b, v := e.b, root(e.b)
	typ := text(b, first(get(b, v, "type")))
	switch typ {
	case "user", "gemini":
	case "":
		return errors.New("a message without a type")
	default: // info, error, warning
		out.note(e.line, NoteRecord, typ, "shown to the person only, never sent to the model")
		return nil
	}
	native, results := splitResults(b, v)
	m, err := decodeGemini(native)
	if err != nil {
		return err
	}
	if typ == "user" {
		if s := strings.TrimSpace(said(m)); strings.HasPrefix(s, "/") || strings.HasPrefix(s, "?") {
			out.note(e.line, NoteRecord, "command", "a command to Gemini CLI, never sent to the model")
			return nil
		}
		if m.Kind == pipeline.KindOrdinary && looksLikeSummary(m) {
			m.Kind = pipeline.KindSummary
		}
	}
	if len(m.Parts) > 0 {
		out.message(e.line, m)
		model := text(b, first(get(b, v, "model")))
		if model != "" {
			out.meta.Model = model
		}
		out.usage(e.line, geminiTokens(b, first(get(b, v, "tokens")), model))
	}
	if results == nil {
		return nil
	}
	if m, err = decodeGemini(results); err != nil {
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

// geminiTokens reads the figures of one answer.
func geminiTokens(b []byte, at span, model string) *Usage {
	if kind(b, at) != '{' {
		return nil
	}
	u := Usage{Model: model}
	input := 0
	for key, f := range fields(b, at) {
		switch string(key) {
		case "input", "tool":
			input += number(b, f.value)
		case "cached":
			u.CacheRead = number(b, f.value)
		case "output", "thoughts":
			u.Output += number(b, f.value)
		case "total":
			u.Used = number(b, f.value)
		}
	}
	u.Input = max(input-u.CacheRead, 0)
	return &u
}

// splitResults takes the results out of an entry of the model: native is the entry with an empty array in the place
// of each, results the entry that holds them; nil when there are none.
func splitResults(b []byte, v span) (native, results []byte) {
	calls, ok := get(b, v, "toolCalls")
	if !ok || kind(b, calls) != '[' {
		return b, nil
	}
	var all []splice
	for _, el := range elements(b, calls) {
		result, ok := get(b, el, "result")
		if !ok || kind(b, result) == 'n' || kind(b, result) == '[' && len(elements(b, result)) == 0 {
			continue
		}
		results = append(results, ',')
		results = append(append(results, `{"id":`...), jsonOr(b, el, "id")...)
		results = append(append(results, `,"name":`...), jsonOr(b, el, "name")...)
		results = append(append(results, `,"result":`...), result.of(b)...)
		results = append(results, '}')
		all = append(all, splice{result, []byte("[]")})
	}
	if all == nil {
		return b, nil
	}
	head := append([]byte(`{"type":"toolResults","of":`), jsonOr(b, v, "id")...)
	head = append(head, `,"toolCalls":[`...)
	return apply(b, all), append(append(head, results[1:]...), "]}"...)
}

// jsonOr is the JSON of a key, an empty string when it is not there.
func jsonOr(b []byte, v span, key string) []byte {
	if at, ok := get(b, v, key); ok && kind(b, at) == '"' {
		return at.of(b)
	}
	return []byte(`""`)
}

func (g *gemini) end(out *scribe, around []byte) error {
	for len(g.held) > 0 {
		if err := g.next(out); err != nil {
			return err
		}
	}
	g.held, g.at, g.gone = nil, nil, 0
	if around != nil {
		g.readHead(out, around, root(around))
		g.head = around
	}
	out.meta.Envelope = g.head
	g.head = nil
	return nil
}

// geminiFile writes a session: one object where its head has a place for messages, else a record a line.
func geminiFile(out Output) ([]byte, error) {
	var entries [][]byte
	var time []byte
	head := out.Meta.Envelope
	if len(head) > 0 && whole(head) == nil && kind(head, root(head)) == '{' {
		time = fieldOf(head, root(head), "lastUpdated")
	} else {
		head = nil
	}
	var made []bool
	timely := false
	for i, it := range out.Items {
		b, err := encodeItem(geminiCodec{}, it)
		if err == nil && b != nil {
			err = whole(b)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b == nil {
			continue
		}
		entries, made = append(entries, b), append(made, it.Made != nil)
		// What is made has the time of the first entry that is kept, else the session's last: no clock is read.
		if at := fieldOf(b, root(b), "timestamp"); at != nil && !timely {
			time, timely = at, true
		}
	}
	for i, b := range entries {
		if made[i] {
			entries[i] = timed(b, root(b), time)
		} else if at := fieldOf(b, root(b), "timestamp"); at != nil {
			time = at
		}
	}
	entries, err := joinResults(entries)
	if err != nil {
		return nil, err
	}
	if _, isObject := get(head, rootOr(head), "messages"); isObject || head == nil {
		return putArray(head, arrayOf(entries), "messages"), nil
	}
	return linesOf(append([][]byte{head}, entries...)), nil
}

// joinResults makes entries as files have them: results stand in the calls that they are of.
func joinResults(all [][]byte) ([][]byte, error) {
	out := make([][]byte, 0, len(all))
	for _, b := range all {
		if v := root(b); text(b, first(get(b, v, "type"))) == toolResults {
			if err := putResults(out, b, v); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, b)
	}
	return out, nil
}

func rootOr(b []byte) span {
	if len(b) == 0 {
		return span{}
	}
	return root(b)
}

// fieldOf is the JSON of a key, nil when it is not there.
func fieldOf(b []byte, v span, key string) []byte {
	if at, ok := get(b, v, key); ok {
		return at.of(b)
	}
	return nil
}

// timed gives an entry that was made its time.
func timed(b []byte, v span, time []byte) []byte {
	if time == nil {
		return b
	}
	at := v.start + 1
	pair := append(append([]byte(`"timestamp":`), time...), ',')
	return apply(b, []splice{{span{at, at}, pair}})
}

// putResults puts results back into the calls that they are of: those of the entry that they were taken from, else
// the last ones with their ids.
func putResults(entries [][]byte, b []byte, v span) error {
	of := text(b, first(get(b, v, "of")))
	calls, _ := get(b, v, "toolCalls")
	if kind(b, calls) != '[' {
		return nil
	}
	for _, el := range elements(b, calls) {
		id, name := text(b, first(get(b, el, "id"))), text(b, first(get(b, el, "name")))
		result := fieldOf(b, el, "result")
		if result == nil {
			continue
		}
		found := false
		for i := len(entries) - 1; i >= 0 && !found; i-- {
			e := entries[i]
			if of != "" && text(e, first(get(e, root(e), "id"))) != of {
				continue
			}
			entries[i], found = putResult(e, id, name, result)
		}
		if !found {
			return pipeline.Errorf(pipeline.Internal, "a tool result has no call that it belongs to")
		}
	}
	return nil
}

// putResult puts a result into the first call of an entry that has its id, or without one its name, and no result.
func putResult(e []byte, id, name string, result []byte) ([]byte, bool) {
	calls, ok := get(e, root(e), "toolCalls")
	if !ok || kind(e, calls) != '[' {
		return e, false
	}
	for _, el := range elements(e, calls) {
		if kind(e, el) != '{' || text(e, first(get(e, el, "id"))) != id || id == "" &&
			text(e, first(get(e, el, "name"))) != name {
			continue
		}
		at, ok := get(e, el, "result")
		switch {
		case !ok:
			end := el.end - 1
			return apply(e, []splice{{span{end, end}, append([]byte(`,"result":`), result...)}}), true
		case kind(e, at) == 'n', kind(e, at) == '[' && len(elements(e, at)) == 0:
			return apply(e, []splice{{at, result}}), true
		}
	}
	return e, false
}

// savedChat writes contents as Gemini CLI saves a chat: as an array.
func savedChat(out Output) ([]byte, error) {
	messages, err := EncodeItems(googleCodec{}, out.Items)
	if err == nil {
		messages, err = joinContents(messages)
	}
	if err != nil {
		return nil, err
	}
	return arrayOf(messages), nil
}
