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
)

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

// The two forms of a session of Gemini CLI.
const (
	sourceSession    = "session"     // one object
	sourceSessionLog = "session-log" // one record per line
)

// geminiSession reads the entries of a session.
type geminiSession struct {
	log  bool
	hold int // bounds the entries of a log that are held back
	head []byte
	// held are entries that may still be replaced or removed.
	held      []geminiEntry
	at        map[string]int // by id and type: the index in held, plus emitted
	emitted   int            // number of entries that were emitted
	heldBytes int
	// answered has the ids of the calls whose results were in the entries of the model.
	answered map[string]bool
}

type geminiEntry struct {
	id   string
	typ  string
	b    []byte
	line int
}

func (g *geminiSession) record(out *emitter, b []byte, line int) error {
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
		return g.entry(out, geminiEntry{id.Text(), typ.Text(), b, line})
	case !v.Get("sessionId").IsMissing():
		g.head, _ = v.DropKeys(func(key string, _ rawjson.Value) bool { return key == "messages" })
		g.readHead(out, v)
		return nil
	}
	return errors.New("a record that is neither a message nor a change of the session")
}

// readHead reads the head of a session.
func (g *geminiSession) readHead(out *emitter, v rawjson.Value) {
	for key, field := range v.Fields() {
		switch string(key) {
		case "sessionId":
			out.meta.ID = field.Value.Text()
		case "kind":
			out.meta.Sidechain = field.Value.Text() == "subagent"
		}
	}
}

// key identifies an entry: the results of an answer may have its id.
func (e geminiEntry) key() string { return e.typ + " " + e.id }

// entry reads a message, or a later state of one.
func (g *geminiSession) entry(out *emitter, e geminiEntry) error {
	if at, ok := g.at[e.key()]; ok {
		if at < g.emitted {
			out.note(e.line, NoteDuplicate, "message",
				"it was changed too far behind its first place: the first version is kept")
			return nil
		}
		old := &g.held[at-g.emitted]
		g.heldBytes += len(e.b) - len(old.b)
		old.b = e.b // the place and the line of the first one stay
		return nil
	}
	if g.at == nil {
		g.at = map[string]int{}
	}
	g.at[e.key()] = g.emitted + len(g.held)
	g.held = append(g.held, e)
	g.heldBytes += len(e.b)
	for g.heldBytes > g.hold {
		if err := g.next(out); err != nil {
			return err
		}
	}
	return nil
}

// next emits the oldest held entry.
func (g *geminiSession) next(out *emitter) error {
	e := g.held[0]
	g.held[0] = geminiEntry{}
	g.held = g.held[1:]
	g.emitted++
	g.heldBytes -= len(e.b)
	if err := g.give(out, e); err != nil {
		return out.fault(e.line, err)
	}
	return nil
}

// rewind removes a message and all after it. For an unknown message it removes all, as Gemini CLI does.
func (g *geminiSession) rewind(out *emitter, id string, line int) error {
	at, known := g.place(id)
	if g.emitted > 0 && (!known || at < g.emitted) {
		out.note(line, NoteBranch, "$rewindTo",
			"it goes further back than the held messages: the earlier ones are kept")
		at, known = g.emitted, true
	}
	if !known {
		at = 0
	}
	g.drop(out, at-g.emitted, "a rewind removed the message")
	return nil
}

// place returns the place of the first entry with an id.
func (g *geminiSession) place(id string) (at int, known bool) {
	for _, typ := range []string{"user", "gemini", "info", "error", "warning"} {
		if i, ok := g.at[geminiEntry{id: id, typ: typ}.key()]; ok && (!known || i < at) {
			at, known = i, true
		}
	}
	return at, known
}

// drop removes the held entries from an index on.
func (g *geminiSession) drop(out *emitter, from int, why string) {
	for _, e := range g.held[from:] {
		out.note(e.line, NoteBranch, "message", why)
		delete(g.at, e.key())
		g.heldBytes -= len(e.b)
	}
	g.held = slices.Clip(g.held[:from])
}

// set applies a change of the head. With messages it replaces the conversation, as after a compaction or a restart.
func (g *geminiSession) set(out *emitter, v rawjson.Value, line int) error {
	g.readHead(out, v)
	messages, ok := v.Lookup("messages")
	if !ok || !messages.IsArray() || messages.IsEmpty() {
		out.note(line, NoteRecord, "$set", "a change of the session's head")
		return nil
	}
	if g.emitted > 0 {
		out.note(line, NoteBranch, "$set", "it replaces messages that are no longer held: those are kept")
	}
	g.drop(out, 0, "the session replaced the message")
	for _, el := range messages.Elements() {
		id := el.Get("id").Text()
		if !el.IsObject() {
			return errors.New("a message in $set is not an object")
		}
		if err := g.entry(out, geminiEntry{
			cmp.Or(id, fmt.Sprintf("line %d, byte %d", line, el.Start())),
			el.Get("type").Text(), bytes.Clone(el.Raw()), line,
		}); err != nil {
			return err
		}
	}
	return nil
}

// give emits the messages of an entry.
func (g *geminiSession) give(out *emitter, e geminiEntry) error {
	b, v := e.b, rawjson.Root(e.b)
	typ := v.Get("type").Text()
	switch typ {
	case "user", "gemini":
	case "":
		return errors.New("a message without a type")
	default: // info, error, warning
		out.note(e.line, NoteRecord, typ, "displayed to the user only, never sent to the model")
		return nil
	}
	if typ == "user" {
		short := g.withoutAnswered(b, v)
		if short == nil {
			out.note(e.line, NoteDuplicate, "results", "the same results are in the entries of the model")
			return nil
		}
		b, v = short, rawjson.Root(short)
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
		for _, id := range m.Results() {
			if g.answered == nil {
				g.answered = map[string]bool{}
			}
			g.answered[id] = true
		}
	}
	return nil
}

// withoutAnswered returns a user entry without the results that the entries of the model have as well, nil if nothing
// is left.
func (g *geminiSession) withoutAnswered(b []byte, v rawjson.Value) []byte {
	content := v.Get("content")
	if !content.IsArray() || content.IsEmpty() || len(g.answered) == 0 {
		return b
	}
	els := content.Elements()
	again := func(i int) bool {
		response, ok := els[i].LookupCamel("functionResponse")
		return ok && g.answered[response.Get("id").Text()]
	}
	n := 0
	for i := range els {
		if again(i) {
			n++
		}
	}
	switch n {
	case 0:
		return b
	case len(els):
		return nil
	}
	return rawjson.Apply(b, rawjson.Without(els, again)...)
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

// splitResults splits an entry of the model: native is the entry with an empty array in the place of each result,
// results is an entry with the results, nil if there are none.
func (geminiCLI) splitResults(b []byte, v rawjson.Value) (native, results []byte) {
	calls, ok := v.Lookup("toolCalls")
	if !ok || !calls.IsArray() {
		return b, nil
	}
	var all []rawjson.Splice
	ids := map[string]bool{}
	for _, el := range calls.Elements() {
		ids[el.Get("id").Text()] = true
	}
	for _, el := range calls.Elements() {
		result, ok := el.Lookup("result")
		if !ok || result.IsNull() || result.IsArray() && result.IsEmpty() {
			continue
		}
		results = fmt.Appendf(results, `,{"id":%s,"name":%s,"result":%s}`, jsonOr(el, "id"), jsonOr(el, "name"),
			ownResult(result, el.Get("id").Text(), ids))
		all = append(all, result.Replace([]byte("[]")))
	}
	if all == nil {
		return b, nil
	}
	head := fmt.Appendf(nil, `{"type":"toolResults","of":%s,"toolCalls":[`, jsonOr(v, "id"))
	return rawjson.Apply(b, all...), append(append(head, results[1:]...), "]}"...)
}

// ownResult returns the result of a call without those of the entry's other calls, which Gemini CLI adds to each when
// it resumes a session.
func ownResult(result rawjson.Value, id string, ids map[string]bool) []byte {
	if !result.IsArray() {
		return result.Raw()
	}
	els := result.Elements()
	drop := rawjson.Without(els, func(i int) bool {
		response, ok := els[i].LookupCamel("functionResponse")
		of := response.Get("id").Text()
		return ok && of != id && ids[of]
	})
	if len(drop) == 0 {
		return result.Raw()
	}
	return rawjson.Apply(result.Raw(), shifted(drop, -result.Start())...)
}

// shifted returns splices of a document for a part of it that begins at -by.
func shifted(all []rawjson.Splice, by int) []rawjson.Splice {
	out := make([]rawjson.Splice, len(all))
	for i, s := range all {
		s.Start, s.End = s.Start+by, s.End+by
		out[i] = s
	}
	return out
}

// jsonOr returns the JSON of a key, an empty JSON string if it is missing.
func jsonOr(v rawjson.Value, key string) []byte {
	if at, ok := v.Lookup(key); ok && at.IsString() {
		return at.Raw()
	}
	return []byte(`""`)
}

func (g *geminiSession) end(out *emitter, around []byte) error {
	for len(g.held) > 0 {
		if err := g.next(out); err != nil {
			return err
		}
	}
	g.held, g.at, g.emitted, g.answered = nil, nil, 0, nil
	if around != nil {
		g.readHead(out, rawjson.Root(around))
		g.head = around
	}
	out.meta.Envelope = g.head
	g.head = nil
	return nil
}
