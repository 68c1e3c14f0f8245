package transcript

import (
	"encoding/base64"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// openCode is the format of `opencode export`: {"info":…,"messages":[{"info":…,"parts":[…]}]}. A stored message is
// one entry of messages. One part contains a call and its result: such a message has both, the result right behind
// its call, and an edit of the whole part applies to both.
//
// Output.File writes an export that `opencode import` loads: a user message with a compaction part, the summary as
// the assistant's answer to it, as opencode records its own, and the messages that are kept, unchanged.
type openCode struct{}

func (openCode) name() Format { return OpenCode }

// read reads {"info":…,"parts":[…]}, valid JSON.
func (f openCode) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	info := v.Get("info")
	parts := v.Get("parts")
	if !info.IsObject() || !parts.IsArray() {
		return l.Errorf("the message has no info and parts")
	}
	switch l.Role = info.Get("role").Text(); l.Role {
	case "user", "assistant":
	default:
		return l.Errorf("the role is not user or assistant")
	}
	els := parts.Elements()
	row := l.AddList(layout.NewList(els))
	for i, el := range els {
		if !el.IsObject() {
			return l.Errorf("a part is not an object")
		}
		for _, n := range f.part(l, el) {
			if n.List == 0 { // result nodes are not entries
				n.List, n.Index = row, i
			}
			l.Nodes = append(l.Nodes, n)
		}
	}
	return nil
}

func (f openCode) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	r := f.record(rawjson.Root(l.Native))
	m.ID = r.id
	switch {
	case r.summary:
		m.Kind = pipeline.KindSummary
	case m.Role == pipeline.RoleUser && m.Kind == pipeline.KindOrdinary && !r.said:
		m.Kind = pipeline.KindSynthetic
	}
	return m
}

// Make writes a synthetic user message without the fields that depend on a session: Output.File adds them. For the
// result of a call that was never answered it returns nil, because the part of the call has that state and opencode
// reports it to the model.
func (openCode) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		return nil, nil
	case pipeline.RoleUser:
		if err := layout.MustSay(m); err != nil {
			return nil, err
		}
		return openCodePlace{}.user([]byte(`{"type":"text","text":` + string(rawjson.Quote(m.Text)) +
			`,"synthetic":true`)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "opencode stores no %s messages that a model did not write", m.Role)
}

// openCodeRecord has the values of a message that the format reads.
type openCodeRecord struct {
	id, role, parent string
	summary, failed  bool
	finished, cut    bool          // the answer is complete; it ends at the model's output limit
	said             bool          // the user said something
	compaction       rawjson.Value // the part that asks for a summary
	tokens           rawjson.Value
	model, provider  string
}

func (openCode) record(v rawjson.Value) openCodeRecord {
	info := v.Get("info")
	r := openCodeRecord{}
	if !info.IsObject() {
		return r
	}
	for key, field := range info.Fields() {
		switch string(key) {
		case "id":
			r.id = field.Value.Text()
		case "role":
			r.role = field.Value.Text()
		case "parentID":
			r.parent = field.Value.Text()
		case "summary":
			r.summary = field.Value.IsTrue() // a user message has an object there, of diffs
		case "error":
			r.failed = field.Value.IsObject()
		case "finish":
			r.finished = r.finished || field.Value.Text() != ""
			r.cut = field.Value.Text() == "length"
		case "time":
			r.finished = r.finished || field.Value.Get("completed").IsNumber()
		case "tokens":
			r.tokens = field.Value
		case "modelID":
			r.model = field.Value.Text()
		case "providerID":
			r.provider = field.Value.Text()
		}
	}
	parts := v.Get("parts")
	if !parts.IsArray() {
		return r
	}
	for _, el := range parts.Elements() {
		typ := el.Get("type").Text()
		synthetic := el.Get("synthetic")
		switch {
		case typ == "compaction":
			r.compaction = el
		case typ == "file", typ == "text" && !synthetic.IsTrue():
			r.said = true
		}
	}
	return r
}

// What opencode sends to the model in the place of some parts.
var openCodeSays = map[string]string{
	"compaction": "What did we do so far?",
	"subtask":    "The following tool was executed by the user",
}

// part reads one part. It returns no node for a part that opencode does not send, and two for a call with its result.
func (f openCode) part(l *layout.Layout, v rawjson.Value) []layout.Node {
	at := v.Members()
	typ := at["type"].Text()
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartText, Type: typ, Raw: v.Raw()}}
	switch typ {
	case "text":
		if at["ignored"].IsTrue() || !at["text"].IsString() {
			return nil
		}
		n.Part.Text, n.Value = at["text"].Text(), at["text"]
	case "reasoning":
		n.Part.Kind, n.Part.Text = pipeline.PartReasoning, at["text"].Text()
	case "compaction", "subtask":
		n.Part.Text, n.Fixed = openCodeSays[typ], true
	case "file":
		switch at["mime"].Text() {
		case "text/plain", "application/x-directory":
			return nil // a text part beside it has its content
		}
		f.file(&n.Part, at)
		n.Value = v
		n.As = func(text string) ([]byte, error) {
			out := fmt.Appendf(nil, `{"type":"text","text":%s`, rawjson.Quote(text))
			for _, key := range []string{"id", "sessionID", "messageID"} {
				if s, ok := at[key]; ok {
					out = fmt.Appendf(out, ",%s:%s", rawjson.Quote(key), s.Raw())
				}
			}
			return append(out, "}"...), nil
		}
	case "tool":
		return f.tool(l, at)
	default:
		return nil
	}
	return []layout.Node{n}
}

func (openCode) file(p *pipeline.Part, at map[string]rawjson.Value) {
	p.Kind, p.MediaType, p.Name = pipeline.PartFile, at["mime"].Text(), at["filename"].Text()
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Kind = pipeline.PartImage
	}
	url := at["url"].Text()
	media.FromAddress(p, url)
	if _, data, ok := media.SplitDataURL(url); ok && p.MediaType == "text/plain" {
		if s, err := base64.StdEncoding.DecodeString(data); err == nil {
			p.Text = string(s)
		}
	}
}

// tool reads a call and, when it has ended, its result.
func (f openCode) tool(l *layout.Layout, at map[string]rawjson.Value) []layout.Node {
	state := at["state"]
	// The part also contains the result, so removing the call alone does not remove the part.
	call := layout.Node{Part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: "tool", CallID: at["callID"].Text(), Name: at["tool"].Text(),
	}}
	if !state.IsObject() {
		return []layout.Node{call}
	}
	in := state.Members()
	if at, ok := in["input"]; ok {
		call.Value, call.Part.Input = at, string(at.Raw())
	}
	result := layout.Node{List: -1, Vacant: `""`, Part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: "tool_result", CallID: call.Part.CallID, Name: call.Part.Name,
	}}
	switch in["status"].Text() {
	case "completed":
		result.Value = in["output"]
	case "error":
		result.Value, result.Part.IsError = in["error"], true
	default:
		return []layout.Node{call}
	}
	if !result.Value.IsString() {
		return []layout.Node{call}
	}
	if !result.Value.IsEmpty() {
		result.Content = []layout.Node{layout.Text(result.Value)}
	}
	// A call without a result has not ended.
	status := in["status"].Raw()
	result.Twins = []layout.Node{{
		List: -1, Value: in["status"], Vacant: `"running"`,
		As: func(string) ([]byte, error) { return status, nil },
	}}
	if files := in["attachments"]; files.IsArray() {
		none := func(string) ([]byte, error) { return []byte(`[]`), nil }
		result.Twins = append(result.Twins, layout.Node{List: -1, Value: files, Vacant: "[]", As: none})
		els := files.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			if el.IsObject() {
				result.Content = append(result.Content, f.attachment(el, row, i))
			}
		}
	}
	return []layout.Node{call, result}
}

// attachment reads a file of a result. A text in its place is a file of text.
func (f openCode) attachment(v rawjson.Value, row, index int) layout.Node {
	at := v.Members()
	n := layout.Node{
		Part: pipeline.Part{Type: at["type"].Text(), Raw: v.Raw()}, Block: true, List: row, Index: index,
		Value: at["url"],
		As: func(text string) ([]byte, error) {
			return rawjson.Quote("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(text))), nil
		},
		Twins: []layout.Node{{
			List: row, Index: index, Value: at["mime"],
			As: func(string) ([]byte, error) { return rawjson.Quote("text/plain"), nil },
		}},
	}
	f.file(&n.Part, at)
	return n
}

func (openCode) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return rawjson.Root(b).Get("url").Text()
}
