package transcript

import (
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

func (openCode) detect(s rawjson.Outline) bool {
	return s.Has("messages[].info.role", "messages[].info.sessionID") && s.Has("messages[].parts") ||
		s.Has("info.projectID", "info.slug") && s.Has("messages")
}

func (openCode) open(s *jsonstream.Reader, o Options) source {
	return openArrays(s, o, Meta{Format: OpenCode}, &openCodeSession{}, "messages")
}

// openCodeSession reads the messages of a session. A compaction consists of two: a user message that requests it, and
// the answer, which is the summary.
type openCodeSession struct {
	asked *openCodeAsked
	seen  recentIDs
	// marks has the place of each message, for a revert.
	marks map[string]openCodePlaceOf
}

type openCodePlaceOf struct{ mark, line int }

type openCodeAsked struct {
	message pipeline.Message
	line    int
	id      string
	auto    bool
	tail    string // the first message that is kept
}

func (o *openCodeSession) record(out *emitter, b []byte, line int) error {
	out.back.hold = holdBytes
	m, err := decode(openCode{}, b)
	if err != nil {
		return err
	}
	r := openCode{}.record(rawjson.Root(b))
	if o.asked == nil || !r.summary {
		o.unanswered(out)
		if o.marks == nil {
			o.marks = map[string]openCodePlaceOf{}
		}
		o.marks[r.id] = openCodePlaceOf{out.mark(), line}
	}
	if m.Role == pipeline.RoleUser && !r.compaction.IsMissing() {
		auto := r.compaction.Get("auto")
		o.asked = &openCodeAsked{
			message: m, line: line, id: r.id, auto: auto.IsTrue(),
			tail: r.compaction.Get("tail_start_id").Text(),
		}
		return nil
	}
	if r.model != "" {
		out.meta.Model, out.meta.Vendor = r.model, protocolOf(r.provider)
	}
	if a := o.asked; a != nil && r.summary && (r.parent == a.id || r.parent == "") {
		o.answered(out, m, r, line)
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

// answered reads the answer to a request for a summary. Only a complete one stands for what it covers.
func (o *openCodeSession) answered(out *emitter, m pipeline.Message, r openCodeRecord, line int) {
	a := o.asked
	o.asked = nil
	switch {
	case r.failed:
		out.note(line, NoteBoundary, "compaction", "it failed, so it covers nothing: all messages are kept")
		return
	case strings.TrimSpace(said(m)) == "":
		out.note(line, NoteBoundary, "compaction",
			"its summary has no text, so it covers nothing: all messages are kept")
		return
	case !r.finished:
		out.note(line, NoteBoundary, "compaction", "it was interrupted, so it covers nothing: all messages are kept")
		return
	case r.cut:
		out.note(line, NoteBoundary, "summary", "the summary was cut at the model's output limit and is incomplete")
	}
	c := Compaction{Summary: m, Trigger: "manual"}
	if a.auto {
		c.Trigger = "auto"
	}
	if n := int(o.seen.get(a.tail)); n > 0 && n <= out.count {
		c.Kept = out.count - n + 1
	}
	out.compaction(line, c)
}

// revert takes back what the user reverted: the message that the session names and all after it, or of that message
// only the parts from one on. It returns the session without the revert, which would name messages that are not in it.
func (o *openCodeSession) revert(out *emitter, around []byte) []byte {
	info := rawjson.Root(around).Get("info")
	at, ok := info.Lookup("revert")
	if !ok || !at.IsObject() {
		return around
	}
	id, part := at.Get("messageID").Text(), at.Get("partID").Text()
	place, known := o.marks[id]
	if !known {
		out.note(1, NoteRecord, "revert", "a revert to a message that is not in the file takes nothing back")
	} else {
		var kept *pipeline.Message
		if it := out.at(place.mark); part != "" && it != nil && it.Message != nil {
			kept = openCode{}.before(*it.Message, part)
		}
		const reason = "the user reverted the session: it is not part of the conversation"
		out.takeBack(place.mark, place.line, "reverted", reason)
		if kept != nil {
			out.message(place.line, *kept)
			out.note(place.line, NoteBranch, "reverted part", reason)
		}
	}
	short, _ := info.DropKeys(func(key string, _ rawjson.Value) bool { return key == "revert" })
	return info.With(short)
}

// before returns a message with only its parts before one of them, nil if that leaves nothing.
func (openCode) before(m pipeline.Message, part string) *pipeline.Message {
	v := rawjson.Root(m.Native)
	parts := v.Get("parts")
	if !parts.IsArray() {
		return nil
	}
	els := parts.Elements()
	n := slices.IndexFunc(els, func(el rawjson.Value) bool { return el.Get("id").Text() == part })
	if n <= 0 {
		return nil
	}
	native := rawjson.Apply(m.Native, rawjson.Without(els, func(i int) bool { return i >= n })...)
	short, err := decode(openCode{}, native)
	if err != nil || len(short.Parts) == 0 {
		return nil
	}
	return &short
}

// unanswered emits a request for a summary that was not answered.
func (o *openCodeSession) unanswered(out *emitter) {
	if a := o.asked; a != nil {
		o.asked = nil
		out.note(a.line, NoteBoundary, "compaction", "it has no summary, so it covers nothing: all messages are kept")
		out.message(a.line, a.message)
	}
}

func (openCode) usage(r openCodeRecord) *Usage {
	figure := func(path ...string) int {
		v := r.tokens.Get(path...)
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

func (o *openCodeSession) end(out *emitter, around []byte) error {
	o.unanswered(out)
	if around == nil {
		return nil
	}
	around = o.revert(out, around)
	out.meta.Envelope = around
	v := rawjson.Root(around)
	out.meta.ID = v.Get("info", "id").Text()
	if out.meta.Model == "" {
		out.meta.Model = v.Get("info", "model", "id").Text()
	}
	*o = openCodeSession{}
	return nil
}
