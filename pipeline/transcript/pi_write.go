package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"

	"precis/pipeline/transcript/rawjson"
)

// piFile writes a session.
type piFile struct {
	out   bytes.Buffer
	tree  bool
	time  []byte // JSON
	known map[string]bool
	prev  []byte // JSON of the id of the previous entry, nil for none
	n     int    // entries so far, the session line included
}

func (pi) write(out Output) ([]byte, error) {
	f := piFile{known: map[string]bool{}, time: []byte(`""`)}
	head := pi{}.head(out)
	if at, ok := rawjson.Root(head).Lookup("timestamp"); ok && at.IsString() {
		f.time = at.Raw()
	}
	all, err := out.entries(pi{})
	if err != nil {
		return nil, err
	}
	// New entries have the time of the first entry that is kept, else that of the session, so that no clock is read.
	if at := firstStored(all, "timestamp"); at != nil {
		f.time = at
	}
	for _, e := range all {
		if e.made == nil {
			p := pi{}.entry(rawjson.Root(e.native))
			f.tree = f.tree || !p.parent.IsMissing()
			f.known[p.id.Text()] = true
		}
	}
	f.line(head)
	for _, e := range all {
		if e.made != nil {
			f.made(e.native, out.TokensBefore)
		} else {
			f.stored(e.native)
		}
	}
	return bytes.TrimSuffix(f.out.Bytes(), []byte{'\n'}), nil
}

// head returns the session line.
func (pi) head(out Output) []byte {
	if e := out.Meta.Envelope; len(e) > 0 && rawjson.Check(e) == nil && rawjson.Root(e).IsArray() {
		if els := rawjson.Root(e).Elements(); len(els) == 1 && els[0].IsObject() {
			return els[0].Raw()
		}
	}
	id := out.Meta.ID
	if id == "" {
		id = madeUUID("pi", out.Meta.Model)
	}
	return fmt.Appendf(nil, `{"type":"session","id":%s,"timestamp":"","cwd":""}`, rawjson.Quote(id))
}

func (f *piFile) line(b []byte) {
	f.out.Write(b)
	f.out.WriteByte('\n')
	f.n++
}

// made writes an entry of Codec.Make, with its time and, in a tree, its place.
func (f *piFile) made(b []byte, tokensBefore int) {
	v := rawjson.Root(b)
	more := fmt.Appendf(nil, `,"timestamp":%s`, f.time)
	id := madeUUID(string(b), fmt.Sprint(f.n))[:8]
	if f.tree {
		more = fmt.Appendf(more, `,"id":"%s","parentId":%s`, id, orNull(f.prev))
		f.prev = rawjson.Quote(id)
	}
	if v.Get("type").Text() == "compaction" {
		if f.tree {
			more = fmt.Appendf(more, `,"firstKeptEntryId":"%s"`, id)
		} else {
			more = fmt.Appendf(more, `,"firstKeptEntryIndex":%d`, f.n)
		}
		if at, ok := v.Lookup("tokensBefore"); ok {
			b = at.With(rawjson.Decimal(tokensBefore))
		}
	}
	end := rawjson.Root(b).End() - 1
	f.line(rawjson.Apply(b, rawjson.Insert(end, more)))
}

func orNull(b json.RawMessage) []byte {
	if b == nil {
		return []byte(`null`)
	}
	return b
}

// stored writes an entry unchanged. In a tree its parent has to be the previous entry. If the parent was dropped, an
// empty entry with its id links the two. Only if the parent was written earlier is the parentId changed.
func (f *piFile) stored(b []byte) {
	b = rawjson.OneLine(b)
	e := pi{}.entry(rawjson.Root(b))
	if f.tree {
		switch parent := e.parent.Text(); {
		case bytes.Equal(e.parent.Raw(), f.prev), f.prev == nil && parent == "":
		case parent != "" && !f.known[parent]:
			f.known[parent] = true
			f.line(fmt.Appendf(nil, `{"type":"custom","customType":"precis","timestamp":%s,"id":%s,"parentId":%s}`,
				f.time, rawjson.Quote(parent), orNull(f.prev)))
		case !e.parent.IsMissing():
			b = e.parent.With(orNull(f.prev))
		}
		if id := e.id; !id.IsMissing() {
			f.prev = pi{}.entry(rawjson.Root(b)).id.Raw()
		}
	}
	f.line(b)
}
