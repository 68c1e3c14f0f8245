package transcript

import (
	"errors"

	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

func (qwen) detect(s rawjson.Outline) bool {
	return s.Has("parentUuid") && s.Has("sessionId") && !s.Has("isSidechain") &&
		s.Has("message.parts", "provenance", "systemPayload")
}

func (qwen) open(s *jsonstream.Reader, o Options) source {
	return openLines(s, o, Meta{Format: Qwen}, &qwenSession{hold: holdBytes})
}

// qwenSession reads records. Which of them belong to the conversation, the chain of the last record, is known only at
// the end of the file: until then they are held back, up to a bound, beyond which all are taken in the order of the
// file.
type qwenSession struct {
	held  []qwenHeld
	bytes int
	hold  int
	whole bool
	// natives are the Contents of the messages so far, for compressions that keep some of them.
	natives [][]byte
	last    []byte
}

type qwenHeld struct {
	b          []byte
	line       int
	id, parent string
}

func (q *qwenSession) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	if v.Get("type").Text() == "" {
		return errors.New("a record without a type")
	}
	if q.whole {
		return q.give(out, b, line)
	}
	// What cannot be read keeps its place in the chain.
	q.held = append(q.held, qwenHeld{b, line, v.Get("uuid").Text(), v.Get("parentUuid").Text()})
	if q.bytes += len(b) + 64; q.bytes <= q.hold {
		return nil
	}
	out.note(line, NoteBranch, "file",
		"it is too large to follow its branches: all records are taken in the order of the file")
	q.whole = true
	return q.release(out, func(int) bool { return true })
}

// end emits the chain of the last record.
func (q *qwenSession) end(out *emitter, _ []byte) error {
	at := map[string]int{}
	for i, h := range q.held {
		if h.id != "" {
			at[h.id] = i
		}
	}
	live := map[int]bool{}
	for i := len(q.held) - 1; i >= 0 && !live[i]; {
		live[i] = true
		h := q.held[i]
		parent, known := at[h.parent]
		switch {
		case known:
			i = parent
		case h.parent == "" && h.id != "":
			i = -1
		default:
			if h.id != "" && i > 0 {
				out.note(h.line, NoteBranch, "parentUuid",
					"a record names a parent that is not in the file: the order of the lines is taken there")
			}
			i--
		}
	}
	if err := q.release(out, func(i int) bool { return live[i] || q.held[i].id == "" }); err != nil {
		return err
	}
	if q.last != nil {
		out.meta.Envelope, _ = rawjson.Root(q.last).KeepKeys(qwenKeys...)
	}
	return nil
}

// release emits the held records for which live returns true.
func (q *qwenSession) release(out *emitter, live func(int) bool) error {
	for i, h := range q.held {
		if live(i) {
			if err := q.give(out, h.b, h.line); err != nil {
				if err := out.fault(h.line, err); err != nil {
					return err
				}
			}
			continue
		}
		if rawjson.Root(h.b).Get("message").IsObject() {
			out.note(h.line, NoteBranch, "record", "it is on a branch that the conversation left")
		}
	}
	q.held, q.bytes = nil, 0
	return nil
}

// give emits a record.
func (q *qwenSession) give(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	if id := v.Get("sessionId").Text(); id != "" {
		out.meta.ID = id
	}
	typ := v.Get("type").Text()
	switch {
	case typ == "system" && v.Get("subtype").Text() == "chat_compression":
		return q.compression(out, b, v, line)
	case typ != "user" && typ != "assistant" && typ != "tool_result":
		what := typ
		if sub := v.Get("subtype").Text(); sub != "" {
			what += "/" + sub
		}
		out.note(line, NoteRecord, what, "a record of the client, no message")
		return nil
	}
	m, err := decode(qwen{}, b)
	if err != nil {
		return err
	}
	model := v.Get("model").Text()
	if model != "" {
		out.meta.Model = model
	}
	if n := v.Get("contextWindowSize").Count(); n > 0 {
		out.meta.Window = n
	}
	out.message(line, m)
	q.natives, q.last = append(q.natives, v.Get("message").Raw()), b
	out.usage(line, googleAPI{}.usage(v.Get("usageMetadata"), model))
	return nil
}

// compression reads Qwen Code's own compaction: the whole new history, which begins with the summary and may end with
// messages that it kept.
func (q *qwenSession) compression(out *emitter, b []byte, v rawjson.Value, line int) error {
	m, err := decode(qwen{}, b)
	if err != nil || len(m.Parts) == 0 {
		out.note(line, NoteBoundary, "chat_compression",
			"it has no summary, so it covers nothing: all messages are kept")
		return nil
	}
	before := v.Get("systemPayload", "info", "originalTokenCount")
	c := Compaction{Summary: m, Trigger: "auto", TokensBefore: before.Count()}
	history := v.Get("systemPayload", "compressedHistory").Elements()
	for i, j := len(history)-1, len(q.natives)-1; i > 0 && j >= 0; i, j = i-1, j-1 {
		if !rawjson.Same(history[i].Raw(), q.natives[j]) {
			break
		}
		c.Kept++
	}
	q.last = b
	out.compaction(line, c)
	return nil
}
