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

// itemFields are the values of an item that matter here.
type fields struct {
	typ, role, content, id, callID, name       rawjson.Value
	arguments, input, action, operation, code  rawjson.Value
	output, result, outputs, results, tools    rawjson.Value
	queries, summary, status, errorText, label rawjson.Value
}

func (f *fields) read(v rawjson.Value) {
	v.Read(rawjson.Want{
		{"type", &f.typ},
		{"role", &f.role},
		{"content", &f.content},
		{"id", &f.id},
		{"call_id", &f.callID},
		{"name", &f.name},
		{"arguments", &f.arguments},
		{"input", &f.input},
		{"action", &f.action},
		{"operation", &f.operation},
		{"code", &f.code},
		{"output", &f.output},
		{"result", &f.result},
		{"outputs", &f.outputs},
		{"results", &f.results},
		{"tools", &f.tools},
		{"queries", &f.queries},
		{"summary", &f.summary},
		{"status", &f.status},
		{"error", &f.errorText},
		{"server_label", &f.label},
	})
}

// item appends the nodes of the item at v.
func Read(l *layout.Layout, v rawjson.Value) error {
	if !v.IsObject() {
		return l.Errorf("it is no object")
	}
	l.Input = newInput
	var f fields
	f.read(v)
	switch typ := f.typ.Text(); {
	case typ == "message", typ == "" && !f.role.IsMissing():
		return readMessage(l, f)
	case typ == "":
		return l.Errorf("it has neither a type nor a role")
	case typ == "agent_message":
		// What another agent of the same run said to this one.
		l.Decide(pipeline.RoleUser, pipeline.KindSynthetic)
		nodes, err := readContent(l, f.content)
		l.Nodes = append(l.Nodes, nodes...)
		return err
	case typ == "reasoning":
		l.Decide(pipeline.RoleAssistant, pipeline.KindOrdinary)
		addItem(l, layout.Node{Part: pipeline.Part{
			Kind: pipeline.PartReasoning, Type: typ, Text: reasoningText(f), Raw: v.Raw(),
		}})
	case strings.HasSuffix(typ, "_output") && !f.resultID(typ).IsMissing():
		l.Decide(pipeline.RoleTool, pipeline.KindOrdinary)
		return readResult(l, typ, f, v)
	case strings.HasSuffix(typ, "_call") && f.callID.IsString(), typ == "program" && f.callID.IsString():
		l.Decide(pipeline.RoleAssistant, pipeline.KindOrdinary)
		addItem(l, readCall(typ, f, v))
	case strings.HasSuffix(typ, "_call"):
		l.Decide(pipeline.RoleAssistant, pipeline.KindOrdinary)
		readVendorCall(l, typ, f, v)
	default:
		l.Decide(opaqueItem(typ))
		addItem(l, layout.Node{Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: typ, Raw: v.Raw()}, Block: true})
	}
	return nil
}

// one adds a node that is the item as a whole.
func addItem(l *layout.Layout, n layout.Node) {
	n.List = -1
	l.Nodes = append(l.Nodes, n)
}

// opaqueItem says whose words an item is of which no more is known than its type.
func opaqueItem(typ string) (pipeline.Role, pipeline.Kind) {
	switch typ {
	case "additional_tools", "configuration_update":
		return pipeline.RoleSystem, pipeline.KindOrdinary
	case "mcp_approval_response":
		return pipeline.RoleTool, pipeline.KindOrdinary
	case "compaction_trigger":
		return pipeline.RoleUser, pipeline.KindSynthetic
	}
	return pipeline.RoleAssistant, pipeline.KindOrdinary // compaction, item_reference, mcp_list_tools…
}

func readMessage(l *layout.Layout, f fields) error {
	l.Role = f.role.Text()
	switch l.Role {
	case "user", "assistant", "system", "developer":
	case "":
		return l.Errorf("a message item has no role")
	default:
		return l.Errorf("its role is not user, assistant, system or developer")
	}
	typ := "input_text"
	if l.Role == "assistant" {
		typ = "output_text"
	}
	l.Entry = func(s string) []byte { return TextPart(typ, rawjson.Quote(s)) }
	if f.content.IsMissing() {
		return l.Errorf("it has no content")
	}
	nodes, err := readContent(l, f.content)
	l.Nodes = append(l.Nodes, nodes...)
	return err
}

// itemTextPart writes a text part; lit is its text as JSON.
func TextPart(typ string, lit []byte) []byte {
	return fmt.Appendf(nil, `{"type":%s,"text":%s}`, rawjson.Quote(typ), lit)
}

// itemContent reads a content or an output: a string, or an array of parts.
func readContent(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []layout.Node{{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
			List: -1, Value: v, Vacant: `""`, Block: true,
		}}, nil
	case rawjson.Array:
		els := v.Elements()
		row := l.AddList(layout.List{Siblings: els, Whole: v, Vacant: `""`, Parent: -1})
		nodes := make([]layout.Node, 0, len(els))
		for i, el := range els {
			n := readPart(el)
			n.List, n.Index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	case rawjson.Object: // a screenshot
		n := readPart(v)
		n.List, n.Fixed = -1, true
		return []layout.Node{n}, nil
	}
	return nil, l.Errorf("its content is neither a string nor an array of parts")
}

// itemPart reads one part of a content.
func readPart(v rawjson.Value) layout.Node {
	if v.IsString() {
		return layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, Value: v,
			Block: true,
		}
	}
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.Raw()}}
	p := &n.Part
	if !v.IsObject() {
		return n
	}
	var txt, refusal, filename, stdout, stderr rawjson.Value
	for key, field := range v.Fields() {
		switch string(key) {
		case "type":
			p.Type = field.Value.Text()
		case "text":
			txt = field.Value
		case "refusal":
			refusal = field.Value
		case "filename":
			filename = field.Value
		case "stdout":
			stdout = field.Value
		case "stderr":
			stderr = field.Value
		}
	}
	switch p.Type {
	case "refusal":
		txt = refusal
		fallthrough
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if s, ok := txt.Str(); ok {
			p.Kind, p.Text, n.Value = pipeline.PartText, s, txt
		}
	case "input_image", "computer_screenshot", "image":
		p.Kind = pipeline.PartImage
		media.FromAddress(p, Address(*p))
	case "input_file", "input_audio":
		p.Kind, p.Name = pipeline.PartFile, filename.Text()
		media.FromAddress(p, Address(*p))
	case "": // what a shell gave out
		if !stdout.IsMissing() || !stderr.IsMissing() {
			p.Kind, p.Text, n.Fixed = pipeline.PartText, layout.JoinTexts(stdout.Text(), stderr.Text()), true
		}
	}
	return n
}

// itemAddress is where an image or a file of an item is: a data URL for what stands in the item itself.
func Address(p pipeline.Part) string {
	if len(p.Raw) == 0 || !rawjson.Root(p.Raw).IsObject() {
		return ""
	}
	v := rawjson.Root(p.Raw)
	var data, format string
	for key, field := range v.Fields() {
		switch string(key) {
		case "image_url", "file_url", "url":
			if s := field.Value.Text(); s != "" {
				return s
			}
		case "file_data", "result":
			data = cmp.Or(field.Value.Text(), data)
		case "output_format":
			format = field.Value.Text()
		case "input_audio":
			data = field.Value.Get("data").Text()
			format = "audio/" + field.Value.Get("format").Text()
		}
	}
	switch {
	case format != "" && !strings.Contains(format, "/"):
		format = "image/" + format
	case format == "":
		format = cmp.Or(p.MediaType, mediaOfName(p.Name))
	}
	return media.Base64URL(format, data)
}

// mediaOfName tells the media type of a file by its name, for the few that a model is given as files.
func mediaOfName(name string) string {
	if strings.HasSuffix(strings.ToLower(name), ".pdf") {
		return "application/pdf"
	}
	return ""
}

// itemReasoning is what an item of reasoning lets be read of it.
func reasoningText(f fields) string {
	var texts []string
	for _, list := range []rawjson.Value{f.summary, f.content} {
		if !list.IsArray() {
			continue
		}
		for _, el := range list.Elements() {
			texts = append(texts, el.Get("text").Text())
		}
	}
	return layout.JoinTexts(texts...)
}

// stringInputs are the types of call whose input is a string to the API, whatever stands in it.
var stringInputs = []string{"function_call", "custom_tool_call", "program"}

// itemCall reads a call that the client answers.
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

// itemInput is a new input for a tool call: a string where the API has one, else a JSON object.
func newInput(n layout.Node, text string) ([]byte, error) {
	if slices.Contains(stringInputs, n.Part.Type) {
		return rawjson.Quote(text), nil
	}
	return layout.ObjectInput(n, text)
}

// resultID returns the id of the call that a result answers. Results of the local shell name it under "id".
func (f fields) resultID(typ string) rawjson.Value {
	switch {
	case f.callID.IsString():
		return f.callID
	case typ == "local_shell_call_output" && f.id.IsString():
		return f.id
	}
	return rawjson.Value{}
}

// itemResult reads the result of a call.
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

// shellOutput is what a shell gave out, as its result wants it.
func shellOutput(s string, exit byte) []byte {
	b := fmt.Appendf(nil, `[{"stdout":%s,"stderr":"","outcome":{"type":"exit","exit_code":`, rawjson.Quote(s))
	return append(b, '0'+exit, '}', '}', ']')
}

// vendorCall reads a call that the vendor answers itself: the item has call and result in it, so that both stand in
// one message of the assistant.
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

// itemMessage returns what the layout of an item says.
func Message(l *layout.Layout) pipeline.Message {
	if l.Role == "developer" {
		l.Role = string(pipeline.RoleSystem)
	}
	m := l.Message()
	if m.Role == pipeline.RoleUser && m.Kind != pipeline.KindSynthetic {
		if k, ok := codexKind(m); ok {
			m.Kind = k
		}
	}
	return m
}

// isCompaction says whether the item at v is a summary that the vendor alone can read.
func IsCompaction(v rawjson.Value) bool {
	return v.IsObject() && v.Get("type").Text() == "compaction"
}

// madeItem writes an item for a message of the pipeline's own.
func Made(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleTool {
		return madeResult(m), nil
	}
	if strings.TrimSpace(m.Text) == "" {
		return nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	typ := "input_text"
	if m.Role == pipeline.RoleAssistant {
		typ = "output_text"
	}
	return fmt.Appendf(nil, `{"type":"message","role":%s,"content":[%s]}`, rawjson.Quote(string(m.Role)),
		TextPart(typ, rawjson.Quote(m.Text))), nil
}

// NoScreenshot is a picture of one white point, for a computer call that was never answered: nothing else than a
// picture can answer it.
const NoScreenshot = "data:image/png;base64," +
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="

// madeResult writes the result of a call. Each type of call wants its own type of result.
func madeResult(m pipeline.Made) []byte {
	output := rawjson.Quote(m.Text)
	typ := m.Type + "_output"
	key, more := "call_id", ""
	switch m.Type {
	case "custom_tool_call":
	case "local_shell_call":
		key = "id"
	case "shell_call":
		output = shellOutput(m.Text, 1)
	case "apply_patch_call":
		more = `,"status":"failed"`
	case "computer_call":
		output = fmt.Appendf(nil, `{"type":"computer_screenshot","image_url":%s}`, rawjson.Quote(NoScreenshot))
	default:
		typ = "function_call_output"
	}
	return fmt.Appendf(nil, `{"type":%s,"%s":%s%s,"output":%s}`, rawjson.Quote(typ), key, rawjson.Quote(m.CallID), more,
		output)
}
