package transcript

import (
	"bytes"
	"fmt"
	"strconv"

	"precis/pipeline/transcript/rawjson"
)

func (f copilot) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	if e := out.Meta.Envelope; len(e) > 0 && e[0] == '{' {
		return f.writeChat(e, all)
	}
	head := envelopeLines(out.Meta.Envelope)
	// New events have the time of the first event that is kept, else that of the session, so that no clock is read.
	at := []byte(`""`)
	for _, event := range head {
		if t, ok := rawjson.Root(event).Lookup("timestamp"); ok {
			at = t.Raw()
		}
	}
	if t := firstStored(all, "timestamp"); t != nil {
		at = t
	}
	var b bytes.Buffer
	var prev []byte // JSON of the id of the event before, nil for none
	put := func(event []byte) {
		event = rawjson.OneLine(event)
		if parent, ok := rawjson.Root(event).Lookup("parentId"); ok && !bytes.Equal(parent.Raw(), orNull(prev)) {
			// The events between were dropped. This is the only value that changes.
			event = parent.With(orNull(prev))
		}
		if id, ok := rawjson.Root(event).Lookup("id"); ok {
			prev = id.Raw()
		}
		b.Write(event)
		b.WriteByte('\n')
	}
	for _, event := range head {
		put(event)
	}
	for i, e := range all {
		if e.made != nil {
			e.native = f.made(e.native, i, at, out.TokensBefore)
		}
		put(e.native)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// made adds the fields of every event to one that precis made.
func (copilot) made(event []byte, n int, at []byte, tokensBefore int) []byte {
	if summary, ok := rawjson.Root(event).Lookup("data", "summaryContent"); ok && tokensBefore > 0 {
		event = rawjson.Apply(event, rawjson.Insert(summary.End(),
			fmt.Appendf(nil, `,"preCompactionTokens":%d`, tokensBefore)))
	}
	return rawjson.AddPairs(event, `,"id":"%s","timestamp":%s,"parentId":null`,
		madeUUID(string(event), strconv.Itoa(n)), at)
}

// writeChat writes the older object. Its chat messages are OpenAI's.
func (copilot) writeChat(around []byte, all []entry) ([]byte, error) {
	for i, e := range all {
		if e.made == nil {
			continue
		}
		b, err := openAIChat{}.Make(*e.made)
		if err != nil {
			return nil, err
		}
		all[i].native = b
	}
	return rawjson.PutArray(around, rawjson.ArrayOf(nativesOf(all)), "chatMessages"), nil
}
