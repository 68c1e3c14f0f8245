package transcript

import (
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
}

type openCodeAsked struct {
	message pipeline.Message
	line    int
	id      string
	auto    bool
	tail    string // the first message that is kept
}

func (o *openCodeSession) record(out *emitter, b []byte, line int) error {
	m, err := decode(openCode{}, b)
	if err != nil {
		return err
	}
	r := openCode{}.record(rawjson.Root(b))
	if m.Role == pipeline.RoleUser && !r.compaction.IsMissing() {
		o.unanswered(out)
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

// unanswered emits a request for a summary that was not answered.
func (o *openCodeSession) unanswered(out *emitter) {
	if a := o.asked; a != nil {
		o.asked = nil
		out.note(a.line, NoteBoundary, "compaction", "it has no summary, so it covers no messages")
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
	out.meta.Envelope = around
	v := rawjson.Root(around)
	out.meta.ID = v.Get("info", "id").Text()
	if out.meta.Model == "" {
		out.meta.Model = v.Get("info", "model", "id").Text()
	}
	*o = openCodeSession{}
	return nil
}
