package transcript

import (
	"errors"
	"strings"

	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

func (pi) detect(s rawjson.Outline) bool {
	return s.Has("type=session") && s.Has("cwd") ||
		s.Has("type=message") && s.Has("message.role=user", "message.role=assistant", "message.role=toolResult") &&
			!s.Has("uuid", "isSidechain")
}

func (pi) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Pi}, &piSession{hold: holdBytes})
}

// piSession reads entries. Entries of version 1 are emitted as they are read. Which entries of a tree belong to the
// conversation is known only at its end: until then they are held back, up to a bound, beyond which all are emitted
// in the order of the file.
type piSession struct {
	// before has the number of messages before each of the last entries; skipped counts the entries that were removed
	// from it.
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

// piEntriesKept bounds how far back the first kept entry of a compaction is found by its index.
const piEntriesKept = 1 << 20

func (p *piSession) record(out *emitter, b []byte, line int) error {
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
	if e.role == "system" {
		p.system(out, e)
	}
	isMessage, why := pi{}.isMessage(e)
	var unreadable error
	if isMessage {
		// Errors name the line of the entry, also if it is emitted later.
		_, unreadable = decode(pi{}, b)
		isMessage = unreadable == nil
	} else {
		out.note(line, NoteRecord, e.typ, why)
	}
	if !e.parent.IsMissing() && !e.id.IsMissing() && !out.begun {
		p.tree = true
	}
	if unreadable != nil && !p.tree {
		return unreadable
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
			"it is too large to follow its branches: all entries are taken in the order of the file")
		p.flush(out, func(int) bool { return true })
		p.tree = false
	}
	return unreadable // it keeps its place in the tree
}

// system reads the system prompt, which Pi writes as a message with a section for each of its parts. The newest counts.
func (p *piSession) system(out *emitter, e piEntry) {
	var parts []string
	if s := e.content.Text(); s != "" {
		parts = append(parts, s)
	}
	if sections := e.message.Get("sections"); sections.IsObject() {
		for _, field := range sections.Fields() {
			if s := field.Value.Text(); s != "" {
				parts = append(parts, s)
			}
		}
	}
	if len(parts) > 0 {
		out.meta.System = rawjson.Quote(strings.Join(parts, "\n\n"))
	}
}

// isMessage reports whether an entry is for the model, and why not.
func (pi) isMessage(e piEntry) (bool, string) {
	switch e.typ {
	case "message":
		if e.role == "system" {
			return false, "the system prompt, which is kept beside the messages"
		}
		if e.hidden.IsTrue() {
			return false, "a command that the person kept from the model"
		}
		return true, ""
	case "custom_message", "branch_summary", "compaction":
		return true, ""
	}
	return false, "an entry of the client, no message"
}

func (p *piSession) session(out *emitter, b []byte, e piEntry) {
	out.meta.ID = e.id.Text()
	out.meta.Model = e.model.Text()
	out.meta.Vendor = protocolOf(e.provider.Text())
	out.meta.Envelope = lineArray(b)
}

// index records the number of messages before one more entry.
func (p *piSession) index(out *emitter) {
	p.before = append(p.before, int32(out.count))
	if len(p.before) > 2*piEntriesKept {
		p.skipped += piEntriesKept
		p.before = append(p.before[:0], p.before[piEntriesKept:]...)
	}
}

// give emits an entry.
func (p *piSession) give(out *emitter, b []byte, e piEntry, line int, isMessage bool) {
	if e.typ == "model_change" {
		out.meta.Model, out.meta.Vendor = e.model.Text(), protocolOf(e.provider.Text())
	}
	if !isMessage {
		return
	}
	m, err := decode(pi{}, b)
	if err != nil {
		return // it was checked when it was read
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

// kept returns the number of messages between the first kept entry of a compaction and the compaction.
func (p *piSession) kept(out *emitter, e piEntry) int {
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

func (p *piSession) end(out *emitter, _ []byte) error {
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
		parent := p.held[i].parent
		if parent == "" {
			break
		}
		before, ok := at[parent]
		if !ok && i > 0 {
			out.note(p.held[i].line, NoteBranch, "parentId",
				"an entry names a parent that is not in the file: the order of the lines is taken there")
		}
		if !ok {
			before = i - 1
		}
		i = before
	}
	p.flush(out, func(i int) bool { return live[i] })
	return nil
}

// flush emits the held entries for which live returns true, in the order of the file.
func (p *piSession) flush(out *emitter, live func(int) bool) {
	for i, h := range p.held {
		if !live(i) {
			if h.isMessage {
				out.note(h.line, NoteBranch, "entry", "it is on a branch that the conversation left")
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
