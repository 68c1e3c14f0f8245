package transcript

import (
	"cmp"
	"slices"
	"strings"

	"precis/pipeline"
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
	typ, role, content, id, callID, name       span
	arguments, input, action, operation, code  span
	output, result, outputs, results, tools    span
	queries, summary, status, errorText, label span
}

func (f *itemFields) read(b []byte, v span) {
	for key, x := range fields(b, v) {
		switch string(key) {
		case "type":
			f.typ = x.value
		case "role":
			f.role = x.value
		case "content":
			f.content = x.value
		case "id":
			f.id = x.value
		case "call_id":
			f.callID = x.value
		case "name":
			f.name = x.value
		case "arguments":
			f.arguments = x.value
		case "input":
			f.input = x.value
		case "action":
			f.action = x.value
		case "operation":
			f.operation = x.value
		case "code":
			f.code = x.value
		case "output":
			f.output = x.value
		case "result":
			f.result = x.value
		case "outputs":
			f.outputs = x.value
		case "results":
			f.results = x.value
		case "tools":
			f.tools = x.value
		case "queries":
			f.queries = x.value
		case "summary":
			f.summary = x.value
		case "status":
			f.status = x.value
		case "error":
			f.errorText = x.value
		case "server_label":
			f.label = x.value
		}
	}
}

// item appends the nodes of the item at v.
func (l *layout) item(format Format, v span) (item, error) {
	b := l.native
	if kind(b, v) != '{' {
		return item{}, parseError(format, "it is no object")
	}
	var f itemFields
	f.read(b, v)
	it := item{typ: text(b, f.typ)}
	switch {
	case it.typ == "message", it.typ == "" && !f.role.empty():
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
			Kind: pipeline.PartReasoning, Type: it.typ, Text: itemReasoning(b, f),
			Raw: v.of(b),
		}})
	case strings.HasSuffix(it.typ, "_output") && !first(l.resultID(it.typ, f)).empty():
		it.role = pipeline.RoleTool
		return it, l.itemResult(it.typ, f, v)
	case strings.HasSuffix(it.typ, "_call") && kind(b, f.callID) == '"',
		it.typ == "program" && kind(b, f.callID) == '"':
		it.role = pipeline.RoleAssistant
		l.one(l.itemCall(it.typ, f, v))
	case strings.HasSuffix(it.typ, "_call"):
		it.role = pipeline.RoleAssistant
		l.vendorCall(it.typ, f, v)
	default:
		it.role, it.kind = opaqueItem(it.typ)
		l.one(node{part: pipeline.Part{Kind: pipeline.PartOpaque, Type: it.typ, Raw: v.of(b)}, block: true})
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
	l.role = text(l.native, f.role)
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
	l.entry = func(s string) []byte { return itemTextPart(typ, quote(s)) }
	if f.content.empty() {
		return parseError(format, "it has no content")
	}
	nodes, err := l.itemContent(f.content)
	l.nodes = append(l.nodes, nodes...)
	return err
}

// itemTextPart writes a text part; lit is its text as JSON.
func itemTextPart(typ string, lit []byte) []byte {
	b := append([]byte(`{"type":`), quote(typ)...)
	b = append(append(b, `,"text":`...), lit...)
	return append(b, '}')
}

// itemContent reads a content or an output: a string, or an array of parts.
func (l *layout) itemContent(v span) ([]node, error) {
	b := l.native
	switch kind(b, v) {
	case 0, 'n':
		return nil, nil
	case '"':
		if v.end-v.start == 2 {
			return nil, nil
		}
		return []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)},
			list: -1, value: v, vacant: `""`, block: true,
		}}, nil
	case '[':
		els := elements(b, v)
		row := l.addList(list{siblings: els, whole: v, vacant: `""`, parent: -1})
		nodes := make([]node, 0, len(els))
		for i, el := range els {
			n := l.itemPart(el)
			n.list, n.index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	case '{': // a screenshot
		n := l.itemPart(v)
		n.list, n.fixed = -1, true
		return []node{n}, nil
	}
	return nil, parseError(OpenAIResponses, "its content is neither a string nor an array of parts")
}

// itemPart reads one part of a content.
func (l *layout) itemPart(v span) node {
	b := l.native
	if kind(b, v) == '"' {
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)}, value: v,
			block: true,
		}
	}
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.of(b)}}
	p := &n.part
	if kind(b, v) != '{' {
		return n
	}
	var txt, refusal, filename, stdout, stderr span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "type":
			p.Type = text(b, f.value)
		case "text":
			txt = f.value
		case "refusal":
			refusal = f.value
		case "filename":
			filename = f.value
		case "stdout":
			stdout = f.value
		case "stderr":
			stderr = f.value
		}
	}
	switch p.Type {
	case "refusal":
		txt = refusal
		fallthrough
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if s, ok := str(b, txt); ok {
			p.Kind, p.Text, n.value = pipeline.PartText, s, txt
		}
	case "input_image", "computer_screenshot", "image":
		p.Kind = pipeline.PartImage
		fromAddress(p, itemAddress(*p))
	case "input_file", "input_audio":
		p.Kind, p.Name = pipeline.PartFile, text(b, filename)
		fromAddress(p, itemAddress(*p))
	case "": // what a shell gave out
		if !stdout.empty() || !stderr.empty() {
			p.Kind, p.Text, n.fixed = pipeline.PartText, joinTexts(text(b, stdout), text(b, stderr)), true
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
	if len(p.Raw) == 0 || kind(p.Raw, root(p.Raw)) != '{' {
		return ""
	}
	b, v := []byte(p.Raw), root(p.Raw)
	var data, format string
	for key, f := range fields(b, v) {
		switch string(key) {
		case "image_url", "file_url", "url":
			if s := text(b, f.value); s != "" {
				return s
			}
		case "file_data", "result":
			data = cmp.Or(text(b, f.value), data)
		case "output_format":
			format = text(b, f.value)
		case "input_audio":
			data = text(b, first(get(b, f.value, "data")))
			format = "audio/" + text(b, first(get(b, f.value, "format")))
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
func itemReasoning(b []byte, f itemFields) string {
	var texts []string
	for _, list := range []span{f.summary, f.content} {
		if kind(b, list) != '[' {
			continue
		}
		for _, el := range elements(b, list) {
			texts = append(texts, text(b, first(get(b, el, "text"))))
		}
	}
	return joinTexts(texts...)
}

// stringInputs are the types of call whose input is a string to the API, whatever stands in it.
var stringInputs = []string{"function_call", "custom_tool_call", "program"}

// itemCall reads a call that the client answers.
func (l *layout) itemCall(typ string, f itemFields, v span) node {
	b := l.native
	n := node{part: pipeline.Part{
		Kind: pipeline.PartToolCall, Type: typ, CallID: text(b, f.callID), Raw: v.of(b),
		Name: cmp.Or(text(b, f.name), strings.TrimSuffix(typ, "_call")),
	}}
	for _, input := range []span{f.arguments, f.input, f.code, f.action, f.operation} {
		if input.empty() {
			continue
		}
		n.value = input
		if n.part.Input = text(b, input); kind(b, input) != '"' {
			n.part.Input = string(input.of(b))
		}
		break
	}
	return n
}

// itemInput is a new input for a tool call: a string where the API has one, else a JSON object.
func itemInput(n node, text string) ([]byte, error) {
	if slices.Contains(stringInputs, n.part.Type) {
		return quote(text), nil
	}
	return anthropicInput(n, text)
}

// resultID is the id of the call that a result answers. Results of the local shell name it under "id".
func (l *layout) resultID(typ string, f itemFields) (span, bool) {
	switch {
	case kind(l.native, f.callID) == '"':
		return f.callID, true
	case typ == "local_shell_call_output" && kind(l.native, f.id) == '"':
		return f.id, true
	}
	return span{}, false
}

// itemResult reads the result of a call.
func (l *layout) itemResult(typ string, f itemFields, v span) error {
	b := l.native
	l.entry = func(s string) []byte { return itemTextPart("input_text", quote(s)) }
	out := f.output
	if typ == "program_output" {
		out = f.result
	}
	if typ == "tool_search_output" {
		out = f.tools
	}
	n := node{
		part: pipeline.Part{
			Kind: pipeline.PartToolResult, Type: typ, CallID: text(b, first(l.resultID(typ, f))), Name: text(b, f.name),
			IsError: text(b, f.status) == "failed",
		},
		value: out, insert: v.end - 1, key: "output",
		fixed: typ == "tool_search_output" || kind(b, out) == '{',
	}
	if typ == "shell_call_output" {
		n.as = func(s string) ([]byte, error) { return shellOutput(s, 0), nil }
	}
	if typ == "tool_search_output" {
		n.content = []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: string(out.of(b)), Raw: out.of(b)},
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
	b := append([]byte(`[{"stdout":`), quote(s)...)
	b = append(b, `,"stderr":"","outcome":{"type":"exit","exit_code":`...)
	return append(b, '0'+exit, '}', '}', ']')
}

// vendorCall reads a call that the vendor answers itself: the item has call and result in it, so that both stand in
// one message of the assistant.
func (l *layout) vendorCall(typ string, f itemFields, v span) {
	b := l.native
	call := l.itemCall(typ, f, v)
	call.part.CallID, call.fixed, call.value = text(b, f.id), true, span{}
	if label := text(b, f.label); label != "" {
		call.part.Name = label + "." + call.part.Name
	}
	if call.part.Input == "" && !f.queries.empty() {
		call.part.Input = string(f.queries.of(b))
	}
	result := node{fixed: true, part: pipeline.Part{
		Kind: pipeline.PartToolResult, Type: typ, CallID: call.part.CallID, Name: call.part.Name, Raw: v.of(b),
		IsError: kind(b, f.errorText) == '"' || kind(b, f.errorText) == '{' || text(b, f.status) == "failed",
	}}
	say := func(s string) {
		if strings.TrimSpace(s) != "" {
			result.content = append(result.content,
				node{fixed: true, list: -1, part: pipeline.Part{Kind: pipeline.PartText, Text: s}})
		}
	}
	say(text(b, f.output))
	if s, ok := str(b, f.errorText); ok {
		say(s)
	} else if kind(b, f.errorText) == '{' {
		say(string(f.errorText.of(b)))
	}
	for _, list := range []span{f.outputs, f.results} {
		if kind(b, list) != '[' {
			continue
		}
		for _, el := range elements(b, list) {
			if kind(b, el) != '{' {
				continue
			}
			if s := joinTexts(text(b, first(get(b, el, "filename"))), text(b, first(get(b, el, "text"))),
				text(b, first(get(b, el, "logs")))); s != "" {
				say(s)
				continue
			}
			n := l.itemPart(el)
			n.list, n.fixed = -1, true
			result.content = append(result.content, n)
		}
	}
	if typ == "image_generation_call" && kind(b, f.result) == '"' {
		p := pipeline.Part{Kind: pipeline.PartImage, Raw: v.of(b)}
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
func isCompaction(b []byte, v span) bool {
	return kind(b, v) == '{' && text(b, first(get(b, v, "type"))) == "compaction"
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
	b := append([]byte(`{"type":"message","role":`), quote(string(m.Role))...)
	b = append(append(b, `,"content":[`...), itemTextPart(typ, quote(m.Text))...)
	return append(b, "]}"...), nil
}

// noScreenshot is a picture of one white point, for a computer call that was never answered: nothing else than a
// picture can answer it.
const noScreenshot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="

// madeResult writes the result of a call. Each type of call wants its own type of result.
func madeResult(m pipeline.Made) []byte {
	output := quote(m.Text)
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
		output = append(append([]byte(`{"type":"computer_screenshot","image_url":`), quote(noScreenshot)...), '}')
	default:
		typ = "function_call_output"
	}
	b := append([]byte(`{"type":`), quote(typ)...)
	b = append(append(append(b, ',', '"'), key...), `":`...)
	b = append(append(append(b, quote(m.CallID)...), more...), `,"output":`...)
	return append(append(b, output...), '}')
}
