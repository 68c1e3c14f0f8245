// Package google reads and writes Contents, the messages of Gemini's generateContent API, and their parts:
// https://ai.google.dev/api/generate-content.
package google

import (
	"cmp"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

func Read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	var role, parts rawjson.Value
	v.Read(rawjson.Want{{"role", &role}, {"parts", &parts}})
	l.Role = role.Text()
	switch l.Role {
	case "", "user", "model", "function", "tool", "system":
	default:
		return l.Errorf("the role is not user or model")
	}
	switch parts.Kind() {
	case rawjson.Array:
	case rawjson.Missing, rawjson.Null:
		if role.IsMissing() {
			return l.Errorf("the content has neither a role nor parts")
		}
		return nil
	default:
		return l.Errorf("the parts are not an array")
	}
	nodes, err := ReadParts(l, parts)
	l.Nodes = nodes
	return err
}

// ReadParts reads an array of parts, as a list of its own.
func ReadParts(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	l.Entry = func(s string) []byte { return Text(rawjson.Quote(s)) }
	els := v.Elements()
	row := l.AddList(layout.List{Siblings: els, Whole: v, Parent: -1})
	nodes := make([]layout.Node, 0, len(els))
	for i, el := range els {
		n, err := ReadPart(l, el)
		if err != nil {
			return nil, err
		}
		n.List, n.Index = row, i
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// ReadPart reads one part.
func ReadPart(l *layout.Layout, v rawjson.Value) (layout.Node, error) {
	if v.IsString() { // the client library accepts a plain string
		return layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, Value: v,
			Block: true,
		}, nil
	}
	if !v.IsObject() {
		return layout.Node{}, l.Errorf("a part is not an object")
	}
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.Raw()}}
	p := &n.Part
	thought := false
	var txt rawjson.Value
	for key, field := range v.Fields() {
		switch rawjson.Camel(key) {
		case "text":
			txt = field.Value
		case "thought":
			thought = field.Value.IsTrue()
		case "functionCall":
			return readFunctionCall(v, field.Value), nil
		case "functionResponse":
			return readFunctionResponse(l, v, field.Value)
		case "inlineData", "fileData":
			readMedia(p, field.Value)
			return n, nil
		case "executableCode", "toolCall":
			return readVendorCall(v, rawjson.Camel(key), field.Value), nil
		case "codeExecutionResult", "toolResponse":
			return readVendorResult(v, rawjson.Camel(key), field.Value), nil
		}
	}
	if s, ok := txt.Str(); ok {
		p.Kind, p.Text, n.Value = pipeline.PartText, s, txt
		if thought {
			p.Kind, n.Value = pipeline.PartReasoning, rawjson.Value{}
		}
	} else if thought {
		p.Kind = pipeline.PartReasoning
	}
	return n, nil
}

func readFunctionCall(part, v rawjson.Value) layout.Node {
	n := layout.Node{Part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "functionCall", Raw: part.Raw()}}
	if !v.IsObject() {
		return n
	}
	n.Insert, n.Key = v.End()-1, "args"
	for key, field := range v.Fields() {
		switch string(key) {
		case "id":
			n.Part.CallID = field.Value.Text()
		case "name":
			n.Part.Name = field.Value.Text()
		case "args":
			n.Value = field.Value
			if !field.Value.IsNull() {
				n.Part.Input = string(field.Value.Raw())
			}
		}
	}
	if v.IsEmpty() {
		n.Insert = 0 // {} needs no comma before its first pair
	}
	return n
}

func readFunctionResponse(l *layout.Layout, part, v rawjson.Value) (layout.Node, error) {
	n := layout.Node{Part: pipeline.Part{Kind: pipeline.PartToolResult, Type: "functionResponse", Raw: part.Raw()}}
	if !v.IsObject() {
		return n, nil
	}
	var attached rawjson.Value
	for key, field := range v.Fields() {
		switch string(key) {
		case "id":
			n.Part.CallID = field.Value.Text()
		case "name":
			n.Part.Name = field.Value.Text()
		case "response":
			n.Value = field.Value
		case "parts":
			attached = field.Value
		}
	}
	if !v.IsEmpty() {
		n.Insert, n.Key = v.End()-1, "response"
	}
	n.Content, n.Part.IsError = readResponse(n.Value)
	isError := n.Part.IsError
	n.As = func(s string) ([]byte, error) { return wrapOutput(rawjson.Quote(s), isError), nil }
	if !attached.IsArray() {
		return n, nil
	}
	els := attached.Elements()
	row := l.AddList(layout.List{Siblings: els, Whole: attached, Parent: -1})
	for i, el := range els {
		c, err := ReadPart(l, el)
		if err != nil {
			return layout.Node{}, err
		}
		// Only media are allowed there.
		c.List, c.Index, c.MediaOnly = row, i, true
		n.Content = append(n.Content, c)
	}
	return n, nil
}

// readResponse reads the result of a function. A text under the usual key is read as the text, any other object as
// its JSON.
func readResponse(v rawjson.Value) (content []layout.Node, isError bool) {
	if !v.IsObject() {
		if s, ok := v.Str(); ok && s != "" {
			return []layout.Node{{
				Part: pipeline.Part{Kind: pipeline.PartText, Text: s, Raw: v.Raw()}, List: -1, Value: v,
				Vacant: `""`, Block: true,
			}}, false
		}
		return nil, false
	}
	keys, only := 0, rawjson.Value{}
	for key, field := range v.Fields() {
		keys++
		switch string(key) {
		case "error":
			isError, only = true, field.Value
		case "output", "result":
			only = field.Value
		}
	}
	switch {
	case keys == 0:
		return nil, false
	case keys == 1 && only.IsString():
		if only.IsEmpty() {
			return nil, isError
		}
		return []layout.Node{{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: only.Text(), Raw: only.Raw()},
			List: -1, Value: only, Vacant: `""`, Block: true,
		}}, isError
	}
	return []layout.Node{{
		Part: pipeline.Part{Kind: pipeline.PartText, Text: string(v.Raw()), Raw: v.Raw()},
		List: -1, Value: v, Vacant: `{}`, Block: true,
		As: func(s string) ([]byte, error) { return wrapOutput(rawjson.Quote(s), isError), nil },
	}}, isError
}

// readMedia reads inlineData or fileData.
func readMedia(p *pipeline.Part, v rawjson.Value) {
	p.Kind = pipeline.PartFile
	if !v.IsObject() {
		return
	}
	var data rawjson.Value
	for key, field := range v.Fields() {
		switch rawjson.Camel(key) {
		case "mimeType":
			p.MediaType = field.Value.Text()
		case "displayName":
			p.Name = field.Value.Text()
		case "data":
			data = field.Value
		}
	}
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Kind = pipeline.PartImage
	}
	if !data.IsMissing() {
		media.Binary(p, data.Text())
	}
}

// Address returns the address of an image or a file.
func Address(p pipeline.Part) string {
	if len(p.Raw) == 0 {
		return ""
	}
	v := rawjson.Root(p.Raw)
	if at, ok := v.LookupCamel("inlineData"); ok {
		return media.Base64URL(p.MediaType, at.GetCamel("data").Text())
	}
	at := v.GetCamel("fileData")
	uri := at.GetCamel("fileUri").Text()
	if strings.HasPrefix(uri, Files) {
		return "" // only the vendor can read its uploaded files
	}
	return uri
}

// Files is the address of files that were uploaded to the vendor.
const Files = "https://generativelanguage.googleapis.com/"

// Tools that the vendor runs itself have a call and a result in the model's own content.
func readVendorCall(part rawjson.Value, typ string, v rawjson.Value) layout.Node {
	p := pipeline.Part{
		Kind: pipeline.PartToolCall, Type: typ, Name: "code_execution", Input: string(v.Raw()),
		Raw: part.Raw(),
	}
	if typ == "toolCall" {
		p.Name, p.CallID = v.GetCamel("toolType").Text(), v.Get("id").Text()
		if args, ok := v.Lookup("args"); ok {
			p.Input = string(args.Raw())
		}
	}
	return layout.Node{Part: p, Fixed: true}
}

func readVendorResult(part rawjson.Value, typ string, v rawjson.Value) layout.Node {
	p := pipeline.Part{Kind: pipeline.PartToolResult, Type: typ, Name: "code_execution", Raw: part.Raw()}
	said := v.Get("output")
	if typ == "toolResponse" {
		p.Name, p.CallID = v.GetCamel("toolType").Text(), v.Get("id").Text()
		said = v.Get("response")
	} else {
		outcome := v.Get("outcome").Text()
		p.IsError = outcome != "" && outcome != "OUTCOME_OK"
	}
	n := layout.Node{Part: p, Fixed: true}
	if s := cmp.Or(said.Text(), string(said.Raw())); s != "" {
		n.Content = []layout.Node{{
			Fixed: true, List: -1,
			Part: pipeline.Part{Kind: pipeline.PartText, Text: s, Raw: said.Raw()},
		}}
	}
	return n
}

// The beginning of the environment message of Gemini CLI before version 0.20, outside of an element, and the user
// message that the program writes to make the model continue.
const (
	geminiEnvironment = "This is the Gemini CLI. We are setting up the context for our chat."
	geminiContinue    = "System: Please continue."
)

// Message returns the message of the layout of a Content.
func Message(l *layout.Layout) pipeline.Message {
	switch l.Role {
	case "":
		l.Role = "user"
	case "model":
		l.Role = string(pipeline.RoleAssistant)
	case "function":
		l.Role = string(pipeline.RoleTool)
	}
	m := l.Message()
	if m.Genuine() {
		if kind, ok := geminiKind(m); ok {
			m.Kind = kind
		}
	}
	return m
}

// geminiKind returns the kind of a user message that Gemini CLI itself wrote; ok is false if any of it is from the
// user.
func geminiKind(m pipeline.Message) (kind pipeline.Kind, ok bool) {
	for _, p := range m.Parts {
		s := strings.TrimSpace(p.Text)
		switch {
		case p.Kind != pipeline.PartText:
			return "", false
		case strings.HasPrefix(s, geminiEnvironment):
			kind = pipeline.KindUserInfo
		case s == geminiContinue && len(m.Parts) == 1:
			return pipeline.KindSynthetic, true
		default:
			if _, injected := layout.Injected(s, nil); !injected {
				return "", false
			}
		}
	}
	return kind, kind != ""
}
