package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

// qwen is the format of the session files of Qwen Code, JSONL: records that form a chain by uuid and parentUuid, as
// Claude Code's do, with a Content of Gemini's API in each message. A stored message is one record line.
//
// Output.File writes a session that Qwen Code resumes: a record of its own compression with the summary, and the lines
// of the messages that stay, of which only parentUuid changes.
type qwen struct{}

func (qwen) name() Format { return Qwen }

// read reads a record that is for the model, valid JSON.
func (f qwen) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	content := f.content(v)
	parts := content.Get("parts")
	if !content.IsObject() || !parts.IsArray() {
		return l.Errorf("the record has no message with parts")
	}
	switch typ := v.Get("type").Text(); typ {
	case "user", "tool_result", "assistant", "system":
	default:
		return l.Errorf("a record of type %q is not a message", typ)
	}
	switch l.Role = content.Get("role").Text(); l.Role {
	case "", "user", "model", "function":
	default:
		return l.Errorf("the role is not user or model")
	}
	nodes, err := google.ReadParts(l, parts)
	l.Nodes = nodes
	return err
}

// content returns the Content of a record: its message, or the summary of a compression.
func (qwen) content(v rawjson.Value) rawjson.Value {
	if history := v.Get("systemPayload", "compressedHistory"); history.IsArray() && !history.IsEmpty() {
		return history.Elements()[0]
	}
	return v.Get("message")
}

func (qwen) message(l *layout.Layout) pipeline.Message {
	m := google.Message(l)
	v := rawjson.Root(l.Native)
	m.ID = v.Get("uuid").Text()
	switch said := v.Get("provenance").Text(); {
	case v.Get("type").Text() == "system":
		m.Kind = pipeline.KindSummary
	case m.Genuine() && said != "" && said != "real_user":
		m.Kind = pipeline.KindSynthetic
	}
	return m
}

// Make writes a record without the fields that depend on a session: Output.File adds them.
func (f qwen) Make(m pipeline.Made) ([]byte, error) {
	role, part, err := google.Made(m)
	if err != nil {
		return nil, err
	}
	content := google.Wrap(role, [][]byte{part})
	switch {
	case m.Role == pipeline.RoleAssistant:
		return nil, pipeline.Errorf(pipeline.Internal,
			"a record of Qwen Code with an answer is written by a model and cannot be made")
	case m.Role == pipeline.RoleTool:
		return fmt.Appendf(nil, `{"type":"tool_result","message":%s}`, content), nil
	case m.Kind == pipeline.KindSummary:
		return fmt.Appendf(nil, `{"type":"system","subtype":"chat_compression","systemPayload":{"info":{},`+
			`"compressedHistory":[%s]}}`, content), nil
	case m.Kind != pipeline.KindOrdinary:
		return fmt.Appendf(nil, `{"type":"user","provenance":"system","message":%s}`, content), nil
	}
	return fmt.Appendf(nil, `{"type":"user","provenance":"real_user","message":%s}`, content), nil
}

func (qwen) address(p pipeline.Part) string { return google.Address(p) }

// apiMessage returns the Content of a record.
func (f qwen) apiMessage(native []byte) ([]byte, error) {
	content := f.content(rawjson.Root(native))
	if parts := content.Get("parts"); !parts.IsArray() || parts.IsEmpty() {
		return nil, nil
	}
	return content.Raw(), nil
}

// qwenKeys are the keys that every record of a session repeats.
var qwenKeys = []string{"sessionId", "cwd", "version", "gitBranch", "timestamp"}

// write writes a session.
func (f qwen) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	time := firstStored(all, "timestamp")
	var repeated []byte
	if e := out.Meta.Envelope; len(e) > 0 && rawjson.Check(e) == nil && rawjson.Root(e).IsObject() {
		for key, field := range rawjson.Root(e).Fields() {
			if string(key) != "timestamp" || time == nil {
				repeated = fmt.Appendf(repeated, ",%s", field.Pair.Raw())
			}
		}
	}
	if time != nil {
		repeated = fmt.Appendf(repeated, `,"timestamp":%s`, time)
	}
	prev := []byte("null")
	lines := make([][]byte, len(all))
	for i, e := range all {
		b := e.native
		if e.made != nil {
			id := rawjson.Quote(madeUUID(out.Meta.ID, fmt.Sprint(i), string(b)))
			b = rawjson.AddPairs(b, `,"uuid":%s,"parentUuid":%s%s`, id, prev, repeated)
		} else if at, ok := rawjson.Root(b).Lookup("parentUuid"); ok {
			b = at.With(prev)
		}
		b = rawjson.OneLine(b)
		if id, ok := rawjson.Root(b).Lookup("uuid"); ok {
			prev = append([]byte(nil), id.Raw()...)
		}
		lines[i] = b
	}
	return rawjson.Lines(lines), nil
}
