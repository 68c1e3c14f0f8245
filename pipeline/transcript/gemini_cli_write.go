package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

// write writes a session: one object if its head has a place for messages, else one record per line.
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
		// New entries have the time of the first entry that is kept, else the last time of the session, so that no
		// clock is read.
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

// join makes entries in the form of files, in which calls contain their results.
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

// fieldOf returns the JSON of a key, nil if it is missing.
func fieldOf(v rawjson.Value, key string) []byte {
	if at, ok := v.Lookup(key); ok {
		return at.Raw()
	}
	return nil
}

// timed sets the time of an entry that was made.
func timed(b []byte, v rawjson.Value, time []byte) []byte {
	if time == nil {
		return b
	}
	at := v.Start() + 1
	pair := fmt.Appendf(nil, `"timestamp":%s,`, time)
	return rawjson.Apply(b, rawjson.Insert(at, pair))
}

// putResults puts results back into their calls: those of the entry from which they were taken, else the last ones
// with their ids.
func (f geminiCLI) putResults(entries [][]byte, v rawjson.Value) error {
	of := v.Get("of").Text()
	calls := v.Get("toolCalls")
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
