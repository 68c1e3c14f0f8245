package transcript

import (
	"bytes"
	"fmt"
	"strconv"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// write writes a session: a boundary record and the summary if there is one, then the unchanged lines of the messages.
//
// Claude Code reads a session backwards along parentUuid, from the last record to one without a parent. The lines
// that are kept may name parents that are not kept: covered messages, and the client's own records between the
// messages. Each such parent is replaced by an empty record that links to the line before. Only a line without a
// parent, the first of the old session, gets one: that value is the only change.
func (claudeCode) write(out Output) ([]byte, error) {
	s := session{fields: sessionPairs(out.Meta.Envelope), known: map[string]bool{}}
	s.time = s.fields["timestamp"]
	s.id = string(s.fields["sessionId"])
	type entry struct {
		line []byte
		made bool
	}
	var entries []entry
	timed := false
	for i, it := range out.Items {
		b, err := Codec{claudeCode{}}.EncodeItem(it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b == nil {
			continue
		}
		err = check(claudeCode{}, b)
		if err == nil {
			_, err = layoutOf(claudeCode{}, b)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		entries = append(entries, entry{b, it.Made != nil})
		recs := recordsOf(b)
		for _, r := range recs {
			s.known[r.uuid.Text()] = true
		}
		// New records have the time of the first line that is kept, else the last time of the session, so that no
		// clock is read.
		if at, ok := recs[0].at.Lookup("timestamp"); ok && !timed && it.Made == nil {
			s.time, timed = at.Raw(), true
		}
	}
	if out.HasSummary() && len(entries) > 0 {
		s.boundary(entries[0].line, out)
	}
	for i, e := range entries {
		if e.made {
			s.made(i, e.line)
		} else {
			s.stored(e.line)
		}
	}
	return bytes.TrimSuffix(s.out.Bytes(), []byte{'\n'}), nil
}

// session writes records.
type session struct {
	out    bytes.Buffer
	fields map[string][]byte // JSON of the fields that every record repeats
	id     string
	time   []byte // JSON
	known  map[string]bool
	prev   []byte // JSON of the uuid of the record before, nil for none
}

// recordOrder is how records of Claude Code order the fields that they all have.
var recordOrder = []string{
	"isSidechain", "userType", "entrypoint", "cwd", "sessionId", "session_id", "version",
	"gitBranch", "slug", "agentId",
}

func sessionPairs(envelope []byte) map[string][]byte {
	out := map[string][]byte{"isSidechain": []byte("false"), "userType": []byte(`"external"`)}
	if len(envelope) == 0 || rawjson.Check(envelope) != nil || !rawjson.Root(envelope).IsObject() {
		return out
	}
	for key, field := range rawjson.Root(envelope).Fields() {
		out[string(key)] = field.Value.Raw()
	}
	return out
}

// recordsOf reads the record lines of a message.
func recordsOf(native []byte) []record {
	var out []record
	for i := rawjson.SkipSpace(native, 0); i < len(native); i = rawjson.SkipSpace(native, i) {
		v := rawjson.At(native, i)
		out = append(out, readRecord(v))
		i = v.End()
	}
	return out
}

// head begins a record whose parent is the previous record.
func (s *session) head() []byte {
	b := []byte(`{"parentUuid":`)
	if s.prev == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, s.prev...)
	}
	for _, key := range recordOrder {
		if v, ok := s.fields[key]; ok {
			b = fmt.Appendf(b, ",%s:%s", rawjson.Quote(key), v)
		}
	}
	return b
}

// end finishes a record with the uuid, given as JSON.
func (s *session) end(b, uuid []byte) {
	b = fmt.Appendf(b, `,"uuid":%s`, uuid)
	if s.time != nil {
		b = fmt.Appendf(b, `,"timestamp":%s`, s.time)
	}
	s.out.Write(append(b, "}\n"...))
	s.prev = uuid
}

// boundary writes the record of a compaction of the messages before it.
func (s *session) boundary(following []byte, out Output) {
	uuid := rawjson.Quote(madeUUID(s.id, "boundary", string(following)))
	// An earlier summary stays behind the boundary that it followed.
	for _, it := range out.Items {
		if it.Message != nil && it.Message.Kind == pipeline.KindSummary {
			if r := recordsOf(it.Message.Native); len(r) > 0 && r[0].parent.IsString() {
				uuid = r[0].parent.Raw()
			}
		}
	}
	trigger := out.Trigger
	if trigger == "" {
		trigger = "manual"
	}
	b := append(s.head(), `,"type":"system","subtype":"compact_boundary","content":"Conversation compacted",`+
		`"isMeta":false,"level":"info","compactMetadata":{"trigger":`...)
	b = append(b, rawjson.Quote(trigger)...)
	if out.TokensBefore > 0 {
		b = strconv.AppendInt(append(b, `,"preTokens":`...), int64(out.TokensBefore), 10)
	}
	s.known[rawjson.Unquote(uuid)] = true
	s.end(append(b, '}'), uuid)
}

// made writes a record of Codec.Make with the fields of the session.
func (s *session) made(i int, line []byte) {
	b := s.head()
	var uuid string
	for key, field := range rawjson.Root(line).Fields() {
		switch string(key) {
		case "parentUuid", "isSidechain", "userType":
		case "uuid":
			uuid = field.Value.Text()
		default:
			b = fmt.Appendf(b, ",%s", field.Pair.Raw())
		}
	}
	s.end(b, rawjson.Quote(madeUUID(s.id, strconv.Itoa(i), uuid)))
}

// stored writes the lines of a message, and before them the records that link them to the previous line.
func (s *session) stored(native []byte) {
	for _, r := range recordsOf(native) {
		line := r.at.Raw()
		switch parent, ok := r.parent.Str(); {
		case ok && !s.known[parent] && s.prev != nil:
			s.known[parent] = true
			const link = `,"type":"system","subtype":"informational","content":"","isMeta":true,"level":"info"`
			s.end(append(s.head(), link...), r.parent.Raw())
		case !ok && s.prev != nil:
			line = relink(line, s.prev)
		}
		s.out.Write(line)
		s.out.WriteByte('\n')
		if !r.uuid.IsMissing() {
			s.prev = r.uuid.Raw()
		}
	}
}

// relink sets the parent of a record that has none.
func relink(line, parent []byte) []byte {
	v := rawjson.Root(line)
	if at, ok := v.Lookup("parentUuid"); ok {
		return at.With(parent)
	}
	pair := fmt.Appendf(nil, `"parentUuid":%s,`, parent)
	return rawjson.Apply(line, rawjson.Insert(v.Start()+1, pair))
}
