package responses

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// stringInputs are the types of call whose input the API treats as a string with any content.
var stringInputs = []string{"function_call", "custom_tool_call", "program"}

// readCall reads a call that the client answers.
func readCall(typ string, f fields, v rawjson.Value) layout.Node {
	n := layout.Node{Part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: typ, CallID: f.callID.Text(), Raw: v.Raw(),
		Name: cmp.Or(f.name.Text(), strings.TrimSuffix(typ, "_call")),
	}}
	for _, input := range []rawjson.Value{f.arguments, f.input, f.code, f.action, f.operation} {
		if input.IsMissing() {
			continue
		}
		n.Value = input
		if n.Part.Input = input.Text(); !input.IsString() {
			n.Part.Input = string(input.Raw())
		}
		break
	}
	return n
}

// newInput returns a new input for a tool call: a string if the API has one, else a JSON object.
func newInput(n layout.Node, text string) ([]byte, error) {
	if slices.Contains(stringInputs, n.Part.Type) {
		return rawjson.Quote(text), nil
	}
	return layout.ObjectInput(n, text)
}

// resultID returns the id of the call that a result answers. Results of the local shell have it under "id".
func (f fields) resultID(typ string) rawjson.Value {
	switch {
	case f.callID.IsString():
		return f.callID
	case typ == "local_shell_call_output" && f.id.IsString():
		return f.id
	}
	return rawjson.Value{}
}

// readResult reads the result of a call.
func readResult(l *layout.Layout, typ string, f fields, v rawjson.Value) error {
	l.Entry = func(s string) []byte { return TextPart("input_text", rawjson.Quote(s)) }
	out := f.output
	if typ == "program_output" {
		out = f.result
	}
	if typ == "tool_search_output" {
		out = f.tools
	}
	n := layout.Node{
		Part: pipeline.Part{
			Kind: pipeline.PartToolResult, Type: typ, CallID: f.resultID(typ).Text(), Name: f.name.Text(),
			IsError: f.status.Text() == "failed",
		},
		Value: out, Insert: v.End() - 1, Key: "output",
		Fixed: typ == "tool_search_output" || out.IsObject(),
	}
	if typ == "shell_call_output" {
		n.As = func(s string) ([]byte, error) { return shellOutput(s, 0), nil }
	}
	if typ == "tool_search_output" {
		n.Content = []layout.Node{{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: string(out.Raw()), Raw: out.Raw()},
			List: -1, Fixed: true,
		}}
		addItem(l, n)
		return nil
	}
	content, err := readContent(l, out)
	if err != nil {
		return err
	}
	n.Content = content
	addItem(l, n)
	return nil
}

// shellOutput returns the output of a shell in the form that its result requires.
func shellOutput(s string, exit byte) []byte {
	b := fmt.Appendf(nil, `[{"stdout":%s,"stderr":"","outcome":{"type":"exit","exit_code":`, rawjson.Quote(s))
	return append(b, '0'+exit, '}', '}', ']')
}

// readVendorCall reads a call that the vendor answers itself: the item has call and result, so both are in one
// message of the assistant.
func readVendorCall(l *layout.Layout, typ string, f fields, v rawjson.Value) {
	call := readCall(typ, f, v)
	call.Part.CallID, call.Fixed, call.Value = f.id.Text(), true, rawjson.Value{}
	if label := f.label.Text(); label != "" {
		call.Part.Name = label + "." + call.Part.Name
	}
	if call.Part.Input == "" && !f.queries.IsMissing() {
		call.Part.Input = string(f.queries.Raw())
	}
	result := layout.Node{Fixed: true, Part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: typ, CallID: call.Part.CallID, Name: call.Part.Name, Raw: v.Raw(),
		IsError: f.errorText.IsString() || f.errorText.IsObject() || f.status.Text() == "failed",
	}}
	say := func(s string) {
		if strings.TrimSpace(s) != "" {
			result.Content = append(result.Content,
				layout.Node{Fixed: true, List: -1, Part: pipeline.Part{Kind: pipeline.PartText, Text: s}})
		}
	}
	say(f.output.Text())
	if s, ok := f.errorText.Str(); ok {
		say(s)
	} else if f.errorText.IsObject() {
		say(string(f.errorText.Raw()))
	}
	for _, list := range []rawjson.Value{f.outputs, f.results} {
		if !list.IsArray() {
			continue
		}
		for _, el := range list.Elements() {
			if !el.IsObject() {
				continue
			}
			if s := layout.JoinTexts(el.Get("filename").Text(), el.Get("text").Text(),
				el.Get("logs").Text()); s != "" {
				say(s)
				continue
			}
			n := readPart(el)
			n.List, n.Fixed = -1, true
			result.Content = append(result.Content, n)
		}
	}
	if typ == "image_generation_call" && f.result.IsString() {
		p := pipeline.Part{Kind: pipeline.PartImage, Raw: v.Raw()}
		media.FromAddress(&p, Address(p))
		result.Content = append(result.Content, layout.Node{Fixed: true, List: -1, Part: p})
	}
	addItem(l, call)
	addItem(l, result)
}
