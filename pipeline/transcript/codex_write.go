package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// write writes a rollout.
func (f codex) write(out Output) ([]byte, error) {
	lines, time := f.head(out.Meta.Envelope, "session_meta")
	state, at := f.head(out.Meta.Envelope, "world_state", "turn_context")
	if at != nil {
		time = at
	}
	entries := make([][]byte, len(out.Items))
	last := -1 // the last of the made entries at the head
	head, timed := true, false
	for i, it := range out.Items {
		b, err := Codec{codex{}}.EncodeItem(it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b != nil {
			if err := rawjson.Check(b); err != nil {
				return nil, fmt.Errorf("entry %d of the context: %w", i, err)
			}
		}
		entries[i] = b
		switch {
		case it.Made != nil && it.Made.Role != pipeline.RoleTool && head:
			last = i
		case it.Message != nil && it.Message.Role != pipeline.RoleSystem && it.Message.Kind == pipeline.KindOrdinary:
			head = false
		}
		// New records have the time of the first message that is kept, else that of the session, so that no clock is
		// read.
		if !timed && it.Message != nil && b != nil {
			if at, ok := rawjson.Root(b).Lookup("timestamp"); ok {
				time, timed = at.Raw(), true
			}
		}
	}
	if last >= 0 {
		lines = append(lines, f.compacted(time, out.Items[:last+1], entries[:last+1]))
	}
	// Codex writes the state that holds after a compaction behind it, and would otherwise inject it once more.
	lines = append(lines, state...)
	for i := last + 1; i < len(entries); i++ {
		b := entries[i]
		if b == nil {
			continue
		}
		if time = timeOf(rawjson.Root(b), time); out.Items[i].Made != nil {
			payload := rawjson.Root(b).Get("payload")
			b = f.item(time, payload.Raw())
		}
		lines = append(lines, b)
	}
	return rawjson.Lines(lines), nil
}

// head returns records of the envelope, and the time of the last as JSON.
func (codex) head(envelope []byte, keys ...string) (lines [][]byte, time []byte) {
	if len(envelope) == 0 || rawjson.Check(envelope) != nil {
		return nil, nil
	}
	for _, key := range keys {
		if v, ok := rawjson.Root(envelope).Lookup(key); ok && v.IsObject() {
			lines, time = append(lines, v.Raw()), timeOf(v, time)
		}
	}
	return lines, time
}

func timeOf(v rawjson.Value, or []byte) []byte {
	if at, ok := v.Lookup("timestamp"); ok {
		return at.Raw()
	}
	return or
}

// compacted writes the record of a compaction, with the whole context up to the last made entry.
func (f codex) compacted(time []byte, items []pipeline.ContextItem, entries [][]byte) []byte {
	summary := ""
	var history [][]byte
	for i, it := range items {
		if entries[i] == nil {
			continue
		}
		if it.Made != nil && it.Made.Kind == pipeline.KindSummary {
			summary = it.Made.Text
		}
		payload := rawjson.Root(entries[i]).Get("payload")
		history = append(history, payload.Raw())
	}
	payload := fmt.Appendf(nil, `{"message":%s,"replacement_history":[%s]}`, rawjson.Quote(summary),
		rawjson.Join(history))
	return f.record(time, "compacted", payload)
}
