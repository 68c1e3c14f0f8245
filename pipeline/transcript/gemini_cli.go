package transcript

import (
	"cmp"
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

// Session files of Gemini CLI are one object with messages, or since 2026 a log with one record per line. A saved
// chat is an array of Contents, or an object with one under "history"; its messages have the format google.
//
// An entry of the model contains its tool calls, and each call its result. For the model these are two messages, and
// precis reads them as two: the native bytes of the first are the entry of the file with an empty array in the place
// of every result, those of the second an object of the type "toolResults" with the calls' ids, names and results. In
// a written file they are one entry again, byte for byte.
//
// In a log a record with the id of an earlier one replaces it, "$rewindTo" removes a message and all after it, and
// "$set" changes the head, or with "messages" the whole conversation. Therefore messages are held back, up to a
// bound.

type geminiCLI struct{}

func (geminiCLI) name() Format { return GeminiCLI }

// read reads an entry of a session.
func (f geminiCLI) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	var typ, content, thoughts, calls rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ}, {"content", &content}, {"thoughts", &thoughts}, {"toolCalls", &calls},
	})
	switch typ.Text() {
	case "user":
		l.Role = "user"
	case "gemini":
		l.Role = "model"
	case toolResults:
		l.Role = "function"
		return f.results(l, calls)
	case "":
		return l.Errorf("the entry has no type")
	default:
		return l.Errorf("an entry of type %q is not a message", typ.Text())
	}
	if l.Role == "model" {
		f.thoughts(l, thoughts)
	}
	if err := f.content(l, content); err != nil {
		return err
	}
	if l.Role == "model" {
		f.calls(l, calls)
	}
	return nil
}

func (geminiCLI) message(l *layout.Layout) pipeline.Message {
	m := google.Message(l)
	m.ID = rawjson.Root(l.Native).Get("id").Text()
	return m
}

// Make writes an entry with an id that is derived from its content and without a time: Output.File adds the time of
// the entry beside it.
func (geminiCLI) Make(m pipeline.Made) ([]byte, error) {
	_, part, err := google.Made(m)
	if err != nil {
		return nil, err
	}
	switch m.Role {
	case pipeline.RoleTool:
		return fmt.Appendf(nil, `{"type":"toolResults","toolCalls":[{"id":%s,"name":%s,"result":[%s]}]}`,
			rawjson.Quote(m.CallID), rawjson.Quote(m.Name), part), nil
	case pipeline.RoleAssistant:
		return nil, pipeline.Errorf(pipeline.Internal,
			"a message of the model is an answer of the API and cannot be made for a session of Gemini CLI")
	}
	return fmt.Appendf(nil, `{"id":%s,"type":"user","content":[%s]}`,
		rawjson.Quote(madeUUID("user", string(m.Kind), m.Text)), part), nil
}

func (geminiCLI) address(p pipeline.Part) string { return google.Address(p) }

// toolResults is the type of an entry with the results of tools. No file contains such an entry.
const toolResults = "toolResults"

func (geminiCLI) thoughts(l *layout.Layout, v rawjson.Value) {
	if !v.IsArray() {
		return
	}
	els := v.Elements()
	row := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	for i, el := range els {
		said := layout.JoinTexts(el.Get("subject").Text(), el.Get("description").Text())
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Type: "thought", Text: said, Raw: el.Raw()}, List: row,
			Index: i,
		})
	}
}

// content reads a content: a string, a part, or an array of parts and strings.
func (geminiCLI) content(l *layout.Layout, v rawjson.Value) error {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
	case rawjson.String:
		if v.IsEmpty() {
			return nil
		}
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
			List: -1, Value: v, Vacant: `""`, Block: true,
		})
	case rawjson.Object:
		n, err := google.ReadPart(l, v)
		if err != nil {
			return err
		}
		n.List, n.Value, n.Vacant = -1, v, `""`
		if n.Part.Kind == pipeline.PartText {
			n.As = func(s string) ([]byte, error) { return google.Text(rawjson.Quote(s)), nil }
		}
		l.Nodes = append(l.Nodes, n)
	case rawjson.Array:
		nodes, err := google.ReadParts(l, v)
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, nodes...)
	default:
		return l.Errorf("the content is neither a string nor parts")
	}
	return nil
}

// calls reads the tool calls of the model. In newer files each is also one of the parts of the content: the two are
// one call.
func (geminiCLI) calls(l *layout.Layout, v rawjson.Value) {
	if !v.IsArray() {
		return
	}
	said := map[string][]int{} // calls among the parts, by id, or by name and input
	for i, n := range l.Nodes {
		if n.Part.Kind == pipeline.PartToolCall {
			key := cmp.Or(n.Part.CallID, n.Part.Name+" "+n.Part.Input)
			said[key] = append(said[key], i)
		}
	}
	els := v.Elements()
	row := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	for i, el := range els {
		n := layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "tool_call", Raw: el.Raw()}, List: row,
			Index: i,
		}
		if el.IsObject() {
			for key, field := range el.Fields() {
				switch string(key) {
				case "id":
					n.Part.CallID = field.Value.Text()
				case "name":
					n.Part.Name = field.Value.Text()
				case "args":
					n.Value, n.Part.Input = field.Value, string(field.Value.Raw())
				}
			}
		}
		twin := false
		for _, key := range []string{n.Part.CallID, n.Part.Name + " " + n.Part.Input} {
			if at := said[key]; key != "" && len(at) > 0 {
				first := &l.Nodes[at[0]]
				first.Part.CallID = cmp.Or(first.Part.CallID, n.Part.CallID)
				first.Twins = append(first.Twins, n)
				said[key], twin = at[1:], true
				break
			}
		}
		if !twin {
			l.Nodes = append(l.Nodes, n)
		}
	}
}

// results reads the results of tools.
func (f geminiCLI) results(l *layout.Layout, v rawjson.Value) error {
	if !v.IsArray() {
		return l.Errorf("the entry has no results")
	}
	els := v.Elements()
	calls := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	for i, el := range els {
		result, ok := el.Lookup("result")
		if !ok {
			continue
		}
		id, name := el.Get("id").Text(), el.Get("name").Text()
		switch result.Kind() {
		case rawjson.String: // only a text
			l.Nodes = append(l.Nodes, layout.Node{
				Part: pipeline.Part{Kind: pipeline.PartToolResult, CallID: id, Name: name, Raw: result.Raw()},
				List: calls, Index: i, Value: result, Content: []layout.Node{{
					Part: pipeline.Part{Kind: pipeline.PartText, Text: result.Text(), Raw: result.Raw()},
					List: -1, Value: result, Vacant: `""`, Block: true,
				}},
			})
		case rawjson.Object, rawjson.Array:
			if err := f.result(l, result, calls, i, id, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// result reads one result: a functionResponse, and media beside it.
func (geminiCLI) result(l *layout.Layout, v rawjson.Value, parent, index int, id, name string) error {
	parts := []rawjson.Value{v}
	row, at := parent, index
	if v.IsArray() {
		parts = v.Elements()
		row = l.AddList(layout.List{Siblings: parts, Whole: v, Parent: parent, ParentIndex: index})
	}
	l.Entry = func(s string) []byte { return google.Text(rawjson.Quote(s)) }
	for i, el := range parts {
		n, err := google.ReadPart(l, el)
		if err != nil {
			return err
		}
		if row != parent {
			at = i
		}
		n.List, n.Index = row, at
		if n.Part.Kind == pipeline.PartToolResult {
			// The id of the call is used, because the model's entry has it.
			n.Part.CallID, n.Part.Name = cmp.Or(id, n.Part.CallID), cmp.Or(n.Part.Name, name)
		}
		l.Nodes = append(l.Nodes, n)
	}
	return nil
}

// apiMessage returns the Content that the model sees for an entry.
func (geminiCLI) apiMessage(native []byte) ([]byte, error) {
	v := rawjson.Root(native)
	typ := v.Get("type").Text()
	var parts [][]byte
	add := func(v rawjson.Value) {
		switch v.Kind() {
		case rawjson.String:
			if !v.IsEmpty() {
				parts = append(parts, google.Text(v.Raw()))
			}
		case rawjson.Object:
			parts = append(parts, v.Raw())
		case rawjson.Array:
			for _, el := range v.Elements() {
				if el.IsString() {
					parts = append(parts, google.Text(el.Raw()))
				} else {
					parts = append(parts, el.Raw())
				}
			}
		}
	}
	calls := v.Get("toolCalls")
	switch typ {
	case toolResults:
		if !calls.IsArray() {
			return nil, nil
		}
		for _, el := range calls.Elements() {
			result := el.Get("result")
			if result.IsString() {
				parts = append(parts, google.FunctionResponse(el.Get("id").Text(),
					el.Get("name").Text(), result.Raw(), false))
				continue
			}
			add(result)
		}
	default:
		add(v.Get("content"))
		if typ != "gemini" || !calls.IsArray() {
			break
		}
		l, err := layoutOf(geminiCLI{}, native)
		if err != nil {
			return nil, err
		}
		for _, n := range l.Nodes {
			if n.Part.Kind == pipeline.PartToolCall && n.Part.Type == "tool_call" {
				parts = append(parts, google.FunctionCall(n.Part))
			}
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	role := "user"
	if typ == "gemini" {
		role = "model"
	}
	return google.Wrap(role, parts), nil
}
