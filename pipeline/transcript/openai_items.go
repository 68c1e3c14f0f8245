package transcript

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Items of the Responses API, which are also what Codex keeps in its files. Each is a message of its own: what the
// model says, thinks and calls comes as a row of items, and so does what its tools gave back.

// An item is what was read of one, beside its nodes.
type item struct {
	typ  string
	role pipeline.Role // set where the item's type alone decides
	kind pipeline.Kind
}

// itemFields are the values of an item that matter here.
type itemFields struct {
	typ, role, content, id, callID, name       rawjson.Value
	arguments, input, action, operation, code  rawjson.Value
	output, result, outputs, results, tools    rawjson.Value
	queries, summary, status, errorText, label rawjson.Value
}

func (f *itemFields) read(v rawjson.Value) {
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
func (l *layout) item(format Format, v rawjson.Value) (item, error) {
	if !v.IsObject() {
		return item{}, parseError(format, "it is no object")
	}
	var f itemFields
	f.read(v)
	it := item{typ: f.typ.Text()}
	switch {
	case it.typ == "message", it.typ == "" && !f.role.IsMissing():
		return it, l.itemText(format, f)
	case it.typ == "":
		return it, parseError(format, "it has neither a type nor a role")
	case it.typ == "agent_message":
		// What another agent of the same run said to this one.
		it.role, it.kind = pipeline.RoleUser, pipeline.KindSynthetic
		l.role = "user"
		nodes, err := l.itemContent(f.content)
		l.nodes = append(l.nodes, nodes...)
		return it, err
	case it.typ == "reasoning":
		it.role = pipeline.RoleAssistant
		l.one(node{part: pipeline.Part{
			Kind: pipeline.PartReasoning, Type: it.typ, Text: itemReasoning(f),
			Raw: v.Raw(),
		}})
	case strings.HasSuffix(it.typ, "_output") && !f.resultID(it.typ).IsMissing():
		it.role = pipeline.RoleTool
		return it, l.itemResult(it.typ, f, v)
	case strings.HasSuffix(it.typ, "_call") && f.callID.IsString(),
		it.typ == "program" && f.callID.IsString():
		it.role = pipeline.RoleAssistant
		l.one(l.itemCall(it.typ, f, v))
	case strings.HasSuffix(it.typ, "_call"):
		it.role = pipeline.RoleAssistant
		l.vendorCall(it.typ, f, v)
	default:
		it.role, it.kind = opaqueItem(it.typ)
		l.one(node{part: pipeline.Part{Kind: pipeline.PartOpaque, Type: it.typ, Raw: v.Raw()}, block: true})
	}
	return it, nil
}

// one adds a node that is the item as a whole.
func (l *layout) one(n node) {
	n.list = -1
	l.nodes = append(l.nodes, n)
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

func (l *layout) itemText(format Format, f itemFields) error {
	l.role = f.role.Text()
	switch l.role {
	case "user", "assistant", "system", "developer":
	case "":
		return parseError(format, "a message item has no role")
	default:
		return parseError(format, "its role is not user, assistant, system or developer")
	}
	typ := "input_text"
	if l.role == "assistant" {
		typ = "output_text"
	}
	l.entry = func(s string) []byte { return itemTextPart(typ, rawjson.Quote(s)) }
	if f.content.IsMissing() {
		return parseError(format, "it has no content")
	}
	nodes, err := l.itemContent(f.content)
	l.nodes = append(l.nodes, nodes...)
	return err
}

// itemTextPart writes a text part; lit is its text as JSON.
func itemTextPart(typ string, lit []byte) []byte {
	return fmt.Appendf(nil, `{"type":%s,"text":%s}`, rawjson.Quote(typ), lit)
}

// itemContent reads a content or an output: a string, or an array of parts.
func (l *layout) itemContent(v rawjson.Value) ([]node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
			list: -1, value: v, vacant: `""`, block: true,
		}}, nil
	case rawjson.Array:
		els := v.Elements()
		row := l.addList(list{siblings: els, whole: v, vacant: `""`, parent: -1})
		nodes := make([]node, 0, len(els))
		for i, el := range els {
			n := l.itemPart(el)
			n.list, n.index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	case rawjson.Object: // a screenshot
		n := l.itemPart(v)
		n.list, n.fixed = -1, true
		return []node{n}, nil
	}
	return nil, parseError(OpenAIResponses, "its content is neither a string nor an array of parts")
}

// itemPart reads one part of a content.
func (l *layout) itemPart(v rawjson.Value) node {
	if v.IsString() {
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, value: v,
			block: true,
		}
	}
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.Raw()}}
	p := &n.part
	if !v.IsObject() {
		return n
	}
	var txt, refusal, filename, stdout, stderr rawjson.Value
	for key, f := range v.Fields() {
		switch string(key) {
		case "type":
			p.Type = f.Value.Text()
		case "text":
			txt = f.Value
		case "refusal":
			refusal = f.Value
		case "filename":
			filename = f.Value
		case "stdout":
			stdout = f.Value
		case "stderr":
			stderr = f.Value
		}
	}
	switch p.Type {
	case "refusal":
		txt = refusal
		fallthrough
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if s, ok := txt.Str(); ok {
			p.Kind, p.Text, n.value = pipeline.PartText, s, txt
		}
	case "input_image", "computer_screenshot", "image":
		p.Kind = pipeline.PartImage
		fromAddress(p, itemAddress(*p))
	case "input_file", "input_audio":
		p.Kind, p.Name = pipeline.PartFile, filename.Text()
		fromAddress(p, itemAddress(*p))
	case "": // what a shell gave out
		if !stdout.IsMissing() || !stderr.IsMissing() {
			p.Kind, p.Text, n.fixed = pipeline.PartText, joinTexts(stdout.Text(), stderr.Text()), true
		}
	}
	return n
}

// joinTexts puts texts on lines of their own, blank ones left out.
func joinTexts(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}

// itemAddress is where an image or a file of an item is: a data URL for what stands in the item itself.
func itemAddress(p pipeline.Part) string {
	if len(p.Raw) == 0 || !rawjson.Root(p.Raw).IsObject() {
		return ""
	}
	v := rawjson.Root(p.Raw)
	var data, format string
	for key, f := range v.Fields() {
		switch string(key) {
		case "image_url", "file_url", "url":
			if s := f.Value.Text(); s != "" {
				return s
			}
		case "file_data", "result":
			data = cmp.Or(f.Value.Text(), data)
		case "output_format":
			format = f.Value.Text()
		case "input_audio":
			data = f.Value.Get("data").Text()
			format = "audio/" + f.Value.Get("format").Text()
		}
	}
	switch {
	case format != "" && !strings.Contains(format, "/"):
		format = "image/" + format
	case format == "":
		format = cmp.Or(p.MediaType, mediaOfName(p.Name))
	}
	return base64URL(format, data)
}

// mediaOfName tells the media type of a file by its name, for the few that a model is given as files.
func mediaOfName(name string) string {
	if strings.HasSuffix(strings.ToLower(name), ".pdf") {
		return "application/pdf"
	}
	return ""
}

// itemReasoning is what an item of reasoning lets be read of it.
func itemReasoning(f itemFields) string {
	var texts []string
	for _, list := range []rawjson.Value{f.summary, f.content} {
		if !list.IsArray() {
			continue
		}
		for _, el := range list.Elements() {
			texts = append(texts, el.Get("text").Text())
		}
	}
	return joinTexts(texts...)
}

// stringInputs are the types of call whose input is a string to the API, whatever stands in it.
var stringInputs = []string{"function_call", "custom_tool_call", "program"}

// itemCall reads a call that the client answers.
func (l *layout) itemCall(typ string, f itemFields, v rawjson.Value) node {
	n := node{part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: typ, CallID: f.callID.Text(), Raw: v.Raw(),
		Name: cmp.Or(f.name.Text(), strings.TrimSuffix(typ, "_call")),
	}}
	for _, input := range []rawjson.Value{f.arguments, f.input, f.code, f.action, f.operation} {
		if input.IsMissing() {
			continue
		}
		n.value = input
		if n.part.Input = input.Text(); !input.IsString() {
			n.part.Input = string(input.Raw())
		}
		break
	}
	return n
}

// itemInput is a new input for a tool call: a string where the API has one, else a JSON object.
func itemInput(n node, text string) ([]byte, error) {
	if slices.Contains(stringInputs, n.part.Type) {
		return rawjson.Quote(text), nil
	}
	return anthropicInput(n, text)
}

// resultID returns the id of the call that a result answers. Results of the local shell name it under "id".
func (f itemFields) resultID(typ string) rawjson.Value {
	switch {
	case f.callID.IsString():
		return f.callID
	case typ == "local_shell_call_output" && f.id.IsString():
		return f.id
	}
	return rawjson.Value{}
}

// itemResult reads the result of a call.
func (l *layout) itemResult(typ string, f itemFields, v rawjson.Value) error {
	l.entry = func(s string) []byte { return itemTextPart("input_text", rawjson.Quote(s)) }
	out := f.output
	if typ == "program_output" {
		out = f.result
	}
	if typ == "tool_search_output" {
		out = f.tools
	}
	n := node{
		part: pipeline.Part{
			Kind: pipeline.PartToolResult, Type: typ, CallID: f.resultID(typ).Text(), Name: f.name.Text(),
			IsError: f.status.Text() == "failed",
		},
		value: out, insert: v.End() - 1, key: "output",
		fixed: typ == "tool_search_output" || out.IsObject(),
	}
	if typ == "shell_call_output" {
		n.as = func(s string) ([]byte, error) { return shellOutput(s, 0), nil }
	}
	if typ == "tool_search_output" {
		n.content = []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: string(out.Raw()), Raw: out.Raw()},
			list: -1, fixed: true,
		}}
		l.one(n)
		return nil
	}
	content, err := l.itemContent(out)
	if err != nil {
		return err
	}
	n.content = content
	l.one(n)
	return nil
}

// shellOutput is what a shell gave out, as its result wants it.
func shellOutput(s string, exit byte) []byte {
	b := fmt.Appendf(nil, `[{"stdout":%s,"stderr":"","outcome":{"type":"exit","exit_code":`, rawjson.Quote(s))
	return append(b, '0'+exit, '}', '}', ']')
}

// vendorCall reads a call that the vendor answers itself: the item has call and result in it, so that both stand in
// one message of the assistant.
func (l *layout) vendorCall(typ string, f itemFields, v rawjson.Value) {
	call := l.itemCall(typ, f, v)
	call.part.CallID, call.fixed, call.value = f.id.Text(), true, rawjson.Value{}
	if label := f.label.Text(); label != "" {
		call.part.Name = label + "." + call.part.Name
	}
	if call.part.Input == "" && !f.queries.IsMissing() {
		call.part.Input = string(f.queries.Raw())
	}
	result := node{fixed: true, part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: typ, CallID: call.part.CallID, Name: call.part.Name, Raw: v.Raw(),
		IsError: f.errorText.IsString() || f.errorText.IsObject() || f.status.Text() == "failed",
	}}
	say := func(s string) {
		if strings.TrimSpace(s) != "" {
			result.content = append(result.content,
				node{fixed: true, list: -1, part: pipeline.Part{Kind: pipeline.PartText, Text: s}})
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
			if s := joinTexts(el.Get("filename").Text(), el.Get("text").Text(),
				el.Get("logs").Text()); s != "" {
				say(s)
				continue
			}
			n := l.itemPart(el)
			n.list, n.fixed = -1, true
			result.content = append(result.content, n)
		}
	}
	if typ == "image_generation_call" && f.result.IsString() {
		p := pipeline.Part{Kind: pipeline.PartImage, Raw: v.Raw()}
		fromAddress(&p, itemAddress(p))
		result.content = append(result.content, node{fixed: true, list: -1, part: p})
	}
	l.one(call)
	l.one(result)
}

// itemMessage gives what the layout of an item says.
func (l *layout) itemMessage(it item) pipeline.Message {
	switch l.role {
	case "", "developer":
		l.role = string(pipeline.RoleSystem)
	}
	m := l.message()
	if it.role != "" {
		m.Role, m.Kind = it.role, it.kind
	}
	if m.Role == pipeline.RoleUser && m.Kind != pipeline.KindSynthetic {
		if k, ok := codexKind(m); ok {
			m.Kind = k
		}
	}
	return m
}

// isCompaction says whether the item at v is a summary that the vendor alone can read.
func isCompaction(v rawjson.Value) bool {
	return v.IsObject() && v.Get("type").Text() == "compaction"
}

// madeItem writes an item for a message of the pipeline's own.
func madeItem(m pipeline.Made) ([]byte, error) {
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
		itemTextPart(typ, rawjson.Quote(m.Text))), nil
}

// noScreenshot is a picture of one white point, for a computer call that was never answered: nothing else than a
// picture can answer it.
const noScreenshot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="

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
		output = fmt.Appendf(nil, `{"type":"computer_screenshot","image_url":%s}`, rawjson.Quote(noScreenshot))
	default:
		typ = "function_call_output"
	}
	return fmt.Appendf(nil, `{"type":%s,"%s":%s%s,"output":%s}`, rawjson.Quote(typ), key, rawjson.Quote(m.CallID), more,
		output)
}
