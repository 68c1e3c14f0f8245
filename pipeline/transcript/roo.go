package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

const sourceCline = "cline"

// roo is the format of the task files of Roo Code and Cline: arrays of messages in Anthropic's shape with a time
// (api_conversation_history.json of both), and the session and compaction files of Cline's SDK, which are objects
// with such messages. Older versions of Roo wrote tool calls as XML into the text, and their results into user
// messages: in those messages only what the user typed in between is from the user.
//
// Output.File writes the same kind of file. The summary is a message with isSummary for Roo, which sends the messages
// from it on, and one with metadata of kind compaction_summary for Cline.
type roo struct{}

func (roo) name() Format { return Roo }

// read reads {"role":…,"content":…,"ts":…}, valid JSON.
func (f roo) read(l *layout.Layout) error {
	if err := anthropic.Read(l, rawjson.Root(l.Native), -1, 0); err != nil {
		return err
	}
	for i := range l.Nodes {
		f.block(l, &l.Nodes[i])
	}
	return nil
}

func (f roo) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	v := rawjson.Root(l.Native)
	m.ID = v.Get("id").Text()
	summary := v.Get("isSummary")
	mark := v.Get("metadata", "kind")
	switch {
	case summary.IsTrue(), mark.Text() == "compaction_summary":
		m.Kind = pipeline.KindSummary
	case m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && f.answers(m):
		m.Kind = pipeline.KindSynthetic
	}
	return m
}

// The elements that Roo puts around text of the user inside of its own messages.
var rooSaid = []string{"<task>", "<feedback>", "<user_message>", "<answer>"}

// answers reports whether a user message is entirely Roo's own: the result of a call in the text before, or a
// complaint about the format.
func (roo) answers(m pipeline.Message) bool {
	answers := false
	for _, p := range m.Parts {
		if p.Kind != pipeline.PartText {
			continue // an image without text is the result of a tool
		}
		s := strings.TrimSpace(p.Text)
		if slices.ContainsFunc(rooSaid, func(tag string) bool { return strings.Contains(s, tag) }) {
			return false
		}
		head, _, _ := strings.Cut(s, "\n")
		if strings.HasPrefix(head, "[") && strings.HasSuffix(head, "] Result:") || strings.HasPrefix(head, "[ERROR] ") {
			answers = true
		}
	}
	return answers
}

// Make writes a message of Roo without a time, which Output.File adds.
func (roo) Make(m pipeline.Made) ([]byte, error) {
	role, block, err := anthropic.Made(m)
	if err != nil {
		return nil, err
	}
	b := anthropic.Wrap(role, [][]byte{block})
	if m.Kind == pipeline.KindSummary {
		b = append(b[:len(b)-1], `,"isSummary":true}`...)
	}
	return b, nil
}

// block reads the blocks that Anthropic's API does not have.
func (roo) block(l *layout.Layout, n *layout.Node) {
	p := &n.Part
	for i := range n.Content {
		c := &n.Content[i]
		// The results of Cline are objects with a shape for each tool. The model sees their JSON.
		if c.Part.Kind == pipeline.PartOpaque && c.Part.Type == "" && c.List >= 0 {
			c.Part.Kind, c.Part.Text = pipeline.PartText, string(c.Part.Raw)
			c.Value = l.Lists[c.List].Siblings[c.Index]
			c.As = func(text string) ([]byte, error) { return layout.TextBlock(text), nil }
		}
	}
	if p.Kind != pipeline.PartOpaque {
		return
	}
	field := func(key string) string { return rawjson.Root(p.Raw).Get(key).Text() }
	switch p.Type {
	case "reasoning":
		p.Kind, p.Text = pipeline.PartReasoning, field("text")
	case "file": // a file that the user named, with its content
		p.Kind, p.Name, p.Text = pipeline.PartFile, field("path"), field("content")
		p.Bytes = len(p.Text)
	}
}

func (roo) address(p pipeline.Part) string { return anthropic.Address(p) }

func (f roo) detect(s rawjson.Outline) bool {
	return f.window(s) || s.Has("[].ts") && s.Has("[].role") && s.Has("[].content") ||
		s.Has("messages[].ts", "messages[].modelInfo", "messages[].metrics", "messages[].metadata.kind") &&
			s.Has("messages[].role") && s.Has("sessionId", "agent", "messages[].ts")
}

// window reports whether a file is the log of what the window displays, which is not what the model saw.
func (roo) window(s rawjson.Outline) bool {
	return s.Has("[].ts") && s.Has("[].say", "[].ask") && !s.Has("[].role")
}

func (f roo) open(s *jsonstream.Reader, o Options) source {
	sk := rawjson.OutlineOf(s.Window())
	if f.window(sk) {
		return refused{pipeline.Errorf(pipeline.BadRequest, "this is the log of what Roo's window displays "+
			"(ui_messages.json), not of what its model saw; take api_conversation_history.json, which is in the "+
			"same folder")}
	}
	m := Meta{Format: Roo}
	if !sk.Has("[].role") {
		m.Source = sourceCline
	}
	return openArrays(s, o, m, &rooTask{}, "messages", "")
}

// refused is the source of a file that is recognized but not read.
type refused struct{ why error }

func (r refused) step(func(Item)) error { return r.why }

// rooTask reads the messages of a task. Newer files tag each message that a summary covers with the id of the summary;
// what has no tag, or the tag of a summary that is not in the file, the model still sees.
type rooTask struct {
	tags    []string // by message: the id of the summary that covers it
	tagged  bool
	covered map[int]bool // messages that a summary so far covers
}

func (t *rooTask) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	role, hasRole := v.Lookup("role")
	if content, ok := v.Lookup("content"); !ok || content.IsNull() {
		if typ := v.Get("type").Text(); typ != "" || !hasRole {
			out.note(line, NoteRecord, typ, "an entry without content is not a message")
			return nil
		}
	}
	if mark, ok := v.Lookup("isTruncationMarker"); ok && mark.IsTrue() {
		out.note(line, NoteBoundary, "truncation",
			"messages were hidden from the model without a summary and are kept")
		return nil
	}
	m, err := decode(roo{}, b)
	if err != nil {
		return err
	}
	model := v.Get("modelInfo", "id").Text()
	if model != "" {
		out.meta.Model, out.meta.Vendor = model, protocolOf(v.Get("modelInfo", "provider").Text())
	}
	if m.Kind == pipeline.KindSummary {
		c := Compaction{Summary: m, TokensBefore: v.Get("metadata", "tokensBefore").Count()}
		if id := v.Get("condenseId").Text(); id != "" && t.tagged {
			if !t.cover(id) {
				out.note(line, NoteBoundary, "summary", "no message has its tag, so it covers nothing")
			}
			for n := 1; n <= out.count; n++ {
				if !t.covered[n] {
					c.Carried = append(c.Carried, n)
				}
			}
			out.compaction(line, c)
			return nil
		}
		// Roo puts the first message of a task before a summary that would otherwise be the first message, with the
		// role of the assistant.
		if out.count == 1 && role.Text() == "assistant" {
			c.KeptFirst = 1
		}
		out.compaction(line, c)
		return nil
	}
	if mark := v.Get("metadata", "kind").Text(); mark == "compaction" {
		removed := v.Get("metadata", "messagesRemoved").Count()
		out.note(line, NoteBoundary, mark,
			fmt.Sprintf("%d messages were taken out before this file was written; notices in the person's "+
				"messages stand for them", removed))
	}
	out.message(line, m)
	tag := v.Get("condenseParent").Text()
	t.tags, t.tagged = append(t.tags, tag), t.tagged || tag != ""
	if used, ok := v.Lookup("metrics"); ok && used.IsObject() {
		out.usage(line, roo{}.usage(used, model))
	}
	return nil
}

// usage reads metrics, whose inputTokens include tokens from the cache.
func (roo) usage(v rawjson.Value, model string) *Usage {
	figure := func(key string) int { return v.Get(key).Count() }
	u := &Usage{
		CacheRead: figure("cacheReadTokens"), CacheCreation: figure("cacheWriteTokens"),
		Output: figure("outputTokens"), Model: model,
	}
	all := figure("inputTokens")
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	u.Used = all + u.Output
	return u
}

// cover marks the messages with a summary's tag as covered, and reports whether there are any.
func (t *rooTask) cover(id string) (found bool) {
	if t.covered == nil {
		t.covered = map[int]bool{}
	}
	for i, tag := range t.tags {
		if tag == id {
			t.covered[i+1], found = true, true
		}
	}
	return found
}

func (t *rooTask) end(out *emitter, around []byte) error {
	*t = rooTask{}
	if around == nil {
		return nil
	}
	v := rawjson.Root(around)
	out.meta.Envelope = around
	out.meta.ID = v.Get("sessionId").Text()
	if system, ok := v.Lookup("system_prompt"); ok && system.IsString() {
		out.meta.System = system.Raw()
	}
	return nil
}

func (f roo) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	ts := firstStored(all, "ts")
	if ts == nil {
		ts = []byte(`0`)
	}
	cline := len(out.Meta.Envelope) > 0
	for i, e := range all {
		switch {
		case e.made == nil:
		case cline:
			all[i].native = f.clineMade(e.native, *e.made, i, ts, out.TokensBefore)
		default:
			all[i].native = rawjson.AddPairs(e.native, `,"ts":%s`, ts)
		}
	}
	list := rawjson.ArrayOf(nativesOf(all))
	if !cline {
		return list, nil
	}
	return rawjson.PutArray(out.Meta.Envelope, list, "messages"), nil
}

// clineMade puts a message of Make into the form of Cline's SDK.
func (roo) clineMade(b []byte, m pipeline.Made, n int, ts []byte, tokensBefore int) []byte {
	b, _ = rawjson.Root(b).DropKeys(func(key string, _ rawjson.Value) bool { return key == "isSummary" })
	b = rawjson.AddPairs(b, `,"id":"msg_%s","ts":%s`, madeUUID(string(b), strconv.Itoa(n))[:8], ts)
	if m.Kind == pipeline.KindSummary {
		b = rawjson.AddPairs(b, `,"metadata":{"kind":"compaction_summary","summary":%s,"tokensBefore":%d}`,
			rawjson.Quote(m.Text),
			tokensBefore)
	}
	return b
}
