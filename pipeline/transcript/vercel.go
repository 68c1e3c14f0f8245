package transcript

import (
	"bytes"
	"strings"

	"precis/pipeline"
)

// Vercel is the AI SDK: lists of ModelMessage (https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message), which
// generateText and streamText take, and the log of its devtools. Version 4 had args and result where later ones have
// input and output; both are read. providerOptions stay, wherever they stand.
//
// Files: an array of messages, an object with them under "messages" or "prompt", and .devtools/generations.json,
// of whose steps each run's longest prompt is its conversation. Written is what came: the array, or the object with
// the new list in it.
const Vercel Format = "vercel"

const sourceDevtools = "ai-sdk-devtools"

type vercelCodec struct{}

func (vercelCodec) Format() Format { return Vercel }

func (vercelCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(Vercel, native, decodeVercel)
}

func decodeVercel(native []byte) (pipeline.Message, error) {
	l, err := vercelLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	return l.message(), nil
}

func (vercelCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(Vercel, m, edits, vercelLayout)
}

func (vercelCodec) Make(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleTool {
		b := append([]byte(`{"role":"tool","content":[{"type":"tool-result","toolCallId":`), quote(m.CallID)...)
		b = append(append(b, `,"toolName":`...), quote(m.Name)...)
		b = append(append(b, `,"output":`...), vercelOutput(m.Text, m.IsError)...)
		return append(b, "}]}"...), nil
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	if m.Role == pipeline.RoleSystem {
		return append(append([]byte(`{"role":"system","content":`), quote(m.Text)...), '}'), nil
	}
	return wrapBlocks(string(m.Role), [][]byte{textBlock(m.Text)}), nil
}

// mustSay refuses a made message without a text.
func mustSay(m pipeline.Made) error {
	if strings.TrimSpace(m.Text) == "" {
		return pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	return nil
}

func vercelOutput(text string, isError bool) []byte {
	b := []byte(`{"type":"text","value":`)
	if isError {
		b = []byte(`{"type":"error-text","value":`)
	}
	return append(append(b, quote(text)...), '}')
}

// vercelLayout reads {"role":…,"content":…}, sound JSON.
func vercelLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(Vercel, "it is no object")
	}
	role, _ := get(b, v, "role")
	content, _ := get(b, v, "content")
	switch l.role = text(b, role); l.role {
	case "system", "user", "assistant", "tool":
	case "":
		return nil, parseError(Vercel, "it has no role")
	default:
		return nil, parseError(Vercel, "its role is not system, user, assistant or tool")
	}
	switch kind(b, content) {
	case '"':
		l.nodes = []node{l.literalNode(content)}
	case '[':
		els := elements(b, content)
		row := l.addList(newList(els))
		for i, el := range els {
			if kind(b, el) != '{' {
				return nil, parseError(Vercel, "a part of its content is no object")
			}
			n := l.vercelPart(el)
			n.list, n.index = row, i
			l.nodes = append(l.nodes, n)
		}
	default:
		return nil, parseError(Vercel, "its content is neither a string nor an array of parts")
	}
	return l, nil
}

// literalNode is a text that is a string of its own, no entry of a list.
func (l *layout) literalNode(v span) node {
	return node{
		part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(l.native)), Raw: v.of(l.native)},
		list: -1, value: v, vacant: `""`, block: true,
	}
}

// vercelPart reads one part of a message, or of a result's content, whose types differ from each other.
func (l *layout) vercelPart(v span) node {
	b := l.native
	at := map[string]span{}
	for key, f := range fields(b, v) {
		switch string(key) {
		case "type", "text", "toolCallId", "toolName", "input", "args", "output", "result", "isError", "filename",
			"mediaType", "mimeType":
			at[string(key)] = f.value
		}
	}
	str := func(keys ...string) string {
		for _, key := range keys {
			if s := text(b, at[key]); s != "" {
				return s
			}
		}
		return ""
	}
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Type: str("type"), Raw: v.of(b)}}
	p := &n.part
	switch p.Type {
	case "text":
		if kind(b, at["text"]) == '"' {
			p.Kind, p.Text, n.value = pipeline.PartText, str("text"), at["text"]
		}
	case "reasoning":
		p.Kind, p.Text = pipeline.PartReasoning, str("text")
	case "redacted-reasoning":
		p.Kind = pipeline.PartReasoning
	case "image", "image-data", "image-url", "file", "file-data", "file-url", "media":
		p.Kind, p.MediaType, p.Name = pipeline.PartFile, str("mediaType", "mimeType"), str("filename")
		if strings.HasPrefix(p.Type, "image") || strings.HasPrefix(p.MediaType, "image/") {
			p.Kind = pipeline.PartImage
		}
		fromAddress(p, vercelCodec{}.address(*p))
	case "tool-call":
		p.Kind, p.CallID, p.Name, n.block = pipeline.PartToolCall, str("toolCallId"), str("toolName"), false
		n.insert, n.key = v.end-1, "input"
		for _, key := range []string{"args", "input"} {
			if in, ok := at[key]; ok {
				p.Input, n.value = inputText(b, in), in
			}
		}
	case "tool-result":
		l.vercelResult(&n, v, at)
		p.Name = str("toolName")
	}
	return n
}

// inputText is the input of a call as it came: an object as its JSON, a string decoded.
func inputText(b []byte, v span) string {
	if s, ok := str(b, v); ok {
		return s
	}
	return string(v.of(b))
}

// vercelResult reads a result, whose content is {"type":…,"value":…} under output, or anything under result.
func (l *layout) vercelResult(n *node, v span, at map[string]span) {
	b, p := l.native, &n.part
	p.Kind, p.CallID, n.block = pipeline.PartToolResult, text(b, at["toolCallId"]), false
	p.IsError = kind(b, at["isError"]) == 't'
	n.insert, n.key = v.end-1, "output"
	output, isNew := at["output"]
	if !isNew {
		if old, ok := at["result"]; ok {
			n.value, n.key = old, "result"
			n.content = l.anyContent(old)
			return
		}
	}
	n.value = output
	typ := text(b, first(get(b, output, "type")))
	p.IsError = p.IsError || strings.HasPrefix(typ, "error") || typ == "execution-denied"
	isError := p.IsError
	n.as = func(text string) ([]byte, error) { return vercelOutput(text, isError), nil }
	value, _ := get(b, output, "value")
	switch {
	case typ == "content" && kind(b, value) == '[':
		els := elements(b, value)
		row := l.addList(newList(els))
		for i, el := range els {
			c := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: el.of(b)}}
			if kind(b, el) == '{' {
				c = l.vercelPart(el)
			}
			c.list, c.index = row, i
			n.content = append(n.content, c)
		}
	case typ == "execution-denied":
		if reason, _ := get(b, output, "reason"); kind(b, reason) == '"' {
			n.content = []node{l.literalNode(reason)}
		}
	default:
		n.content = l.anyContent(value)
	}
}

// anyContent is a result that may be any JSON: a string as a text, anything else as its JSON.
func (l *layout) anyContent(v span) []node {
	b := l.native
	switch kind(b, v) {
	case 0, 'n':
		return nil
	case '"':
		if v.end-v.start == 2 {
			return nil
		}
		return []node{l.literalNode(v)}
	}
	return []node{{
		part: pipeline.Part{Kind: pipeline.PartText, Text: string(v.of(b)), Raw: v.of(b)},
		list: -1, value: v, vacant: `""`, block: true,
	}}
}

// address reads {"image":…}, {"data":…} or {"url":…}: base64, a data URL or an address.
func (vercelCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	for _, key := range []string{"image", "data", "url"} {
		if s := text(b, first(get(b, root(b), key))); s != "" {
			return base64URL(p.MediaType, s)
		}
	}
	return ""
}

// ---- files

func detectVercel(s sketched) bool {
	if s.has("steps[].run_id") && s.has("steps[].input") {
		return true
	}
	for _, at := range []string{"[]", "messages[]", "prompt[]"} {
		if s.has(at+".role") && !s.has(at+".ts") &&
			s.has(at+".content[].type=tool-call", at+".content[].type=tool-result",
				at+".content[].type=reasoning", at+".providerOptions", at+".content[].providerOptions",
				at+".content[].toolCallId") {
			return true
		}
	}
	return s.has("prompt[].role", "model_id") && s.has("messages[].role", "prompt[].role") &&
		s.has("providerOptions", "toolChoice", "tools[].inputSchema")
}

// vercelPaths are where the messages of a file are.
var vercelPaths = []string{"messages", "prompt", ""}

func openVercel(s *stream, o Options) source {
	if sk := sketch(s.window()); sk.has("steps[].run_id", "runs[].started_at") {
		return openArrays(s, o, Meta{Format: Vercel, Source: sourceDevtools}, &devtools{hold: holdBytes}, "steps")
	}
	return openArrays(s, o, Meta{Format: Vercel}, vercelMessages{}, vercelPaths...)
}

type vercelMessages struct{}

func (vercelMessages) record(out *scribe, b []byte, line int) error {
	m, err := decodeVercel(b)
	if err == nil {
		out.message(line, m)
	}
	return err
}

func (vercelMessages) end(out *scribe, around []byte) error {
	if around != nil {
		vercelMeta(&out.meta, around)
	}
	return nil
}

// vercelMeta reads what stands beside messages: the arguments of the SDK's call.
func vercelMeta(m *Meta, around []byte) {
	m.Envelope = around
	for key, f := range fields(around, root(around)) {
		switch string(key) {
		case "model", "model_id":
			m.Model = text(around, f.value)
		case "provider":
			m.Vendor = protocolOf(text(around, f.value))
		case "system":
			m.System = present(around, f.value)
		case "tools":
			if kind(around, f.value) == '[' {
				m.Tools = f.value.of(around)
			}
		case "maxOutputTokens", "maxTokens":
			m.MaxTokens = number(around, f.value)
		}
	}
}

// protocolOf is the vendor whose protocol a provider's name tells of, "" for any other.
func protocolOf(provider string) string {
	name, _, _ := strings.Cut(provider, ".")
	name, _, _ = strings.Cut(name, "-")
	switch name {
	case "anthropic", "openai":
		return name
	}
	return ""
}

// ---- the log of the devtools

// devtools reads steps, each with the whole prompt so far, as a JSON string. Of each run the longest is kept until
// the end, in bounded memory: past that the run that was touched longest ago is given out.
type devtools struct {
	runs        []*devtoolsRun
	bytes, hold int
	clock       int
}

type devtoolsRun struct {
	id            string
	line, touched int
	input, output []byte
	count         int
	model         string
	provider      string
	usage         *Usage
}

func (d *devtools) record(out *scribe, b []byte, line int) error {
	v := root(b)
	embedded := func(key string) []byte {
		s, ok := str(b, first(get(b, v, key)))
		if !ok || whole([]byte(s)) != nil {
			return nil
		}
		return []byte(s)
	}
	r := &devtoolsRun{
		id: text(b, first(get(b, v, "run_id"))), line: line, input: embedded("input"),
		output: embedded("output"),
	}
	prompt, ok := get(r.input, rootOf(r.input), "prompt")
	if !ok || kind(r.input, prompt) != '[' {
		out.note(line, NoteRecord, "step", "a step without a prompt")
		return nil
	}
	r.count = len(elements(r.input, prompt))
	if failed, _ := get(b, v, "error"); kind(b, failed) == '"' {
		r.output = nil // cut off: it is in no later prompt
	}
	r.model, r.provider = text(b, first(get(b, v, "model_id"))), text(b, first(get(b, v, "provider")))
	if u := embedded("usage"); u != nil {
		r.usage = vercelUsage(u, root(u), r.model)
	}
	d.clock++
	r.touched = d.clock
	for i, old := range d.runs {
		if old.id != r.id {
			continue
		}
		out.note(line, NoteRequest, sourceDevtools, "the last step of the run contains it")
		if r.count < old.count {
			old.touched = d.clock
			return nil
		}
		d.bytes += len(r.input) - len(old.input)
		r.line = old.line
		d.runs[i] = r
		return d.trim(out)
	}
	d.runs = append(d.runs, r)
	d.bytes += len(r.input)
	return d.trim(out)
}

func rootOf(b []byte) span {
	if len(b) == 0 {
		return span{}
	}
	return root(b)
}

func (d *devtools) trim(out *scribe) error {
	for d.bytes > d.hold && len(d.runs) > 1 {
		oldest := 0
		for i, r := range d.runs {
			if r.touched < d.runs[oldest].touched {
				oldest = i
			}
		}
		if err := d.give(out, oldest); err != nil {
			return err
		}
	}
	return nil
}

func (d *devtools) end(out *scribe, _ []byte) error {
	for len(d.runs) > 0 {
		if err := d.give(out, 0); err != nil {
			return err
		}
	}
	return nil
}

// give gives a run out as a conversation.
func (d *devtools) give(out *scribe, i int) error {
	r := d.runs[i]
	d.runs = append(d.runs[:i:i], d.runs[i+1:]...)
	d.bytes -= len(r.input)
	prompt, _ := get(r.input, root(r.input), "prompt")
	// The step says beside its input who was asked.
	around := apply(r.input, []splice{{prompt, []byte("[]")}})
	around = addPair(addPair(around, "model_id", quote(r.model)), "provider", quote(r.provider))
	vercelMeta(&out.meta, around)
	out.meta.ID = r.id
	out.begin(r.line)
	natives := [][]byte{}
	for _, el := range elements(r.input, prompt) {
		natives = append(natives, el.of(r.input))
	}
	if answer := devtoolsAnswer(r.output); answer != nil {
		natives = append(natives, answer)
	}
	for _, native := range natives {
		m, err := decodeVercel(native)
		if err != nil {
			if err = out.fault(r.line, err); err != nil {
				return err
			}
			continue
		}
		out.message(r.line, m)
	}
	out.usage(r.line, r.usage)
	out.close(r.line)
	return nil
}

// devtoolsAnswer makes the output of a step into the message that the next prompt would hold, nil for none.
func devtoolsAnswer(output []byte) []byte {
	if kind(output, rootOf(output)) != '{' {
		return nil
	}
	v := root(output)
	var blocks [][]byte
	each := func(key string, block func(el span) []byte) {
		list, ok := get(output, v, key)
		if !ok || kind(output, list) != '[' {
			return
		}
		for _, el := range elements(output, list) {
			if kind(output, el) == '{' {
				if b := block(el); b != nil {
					blocks = append(blocks, b)
				}
			}
		}
	}
	said := func(typ string) func(span) []byte {
		return func(el span) []byte {
			lit, ok := get(output, el, "text")
			if !ok || kind(output, lit) != '"' || lit.end-lit.start == 2 {
				return nil
			}
			return append(append([]byte(`{"type":"`+typ+`","text":`), lit.of(output)...), '}')
		}
	}
	each("reasoningParts", said("reasoning"))
	each("textParts", said("text"))
	each("toolCalls", func(el span) []byte {
		// The log has the input as the model wrote it, a string; a message holds the object.
		in, ok := get(output, el, "input")
		if s, isString := str(output, in); ok && isString && whole([]byte(s)) == nil {
			b := apply(output, []splice{{in, bytes.TrimSpace([]byte(s))}})
			return valueAt(b, el.start).of(b)
		}
		return el.of(output)
	})
	if len(blocks) == 0 {
		return nil
	}
	return wrapBlocks("assistant", blocks)
}

// vercelUsage reads the SDK's usage: figures, or from version 6 on objects of them.
func vercelUsage(b []byte, v span, model string) *Usage {
	u := &Usage{Model: model}
	input, _ := get(b, v, "inputTokens")
	output, _ := get(b, v, "outputTokens")
	all := number(b, input)
	u.Output, u.CacheRead = number(b, output), number(b, first(get(b, v, "cachedInputTokens")))
	if kind(b, input) == '{' {
		all = number(b, first(get(b, input, "total")))
		u.CacheRead = number(b, first(get(b, input, "cacheRead")))
		u.CacheCreation = number(b, first(get(b, input, "cacheWrite")))
	}
	if kind(b, output) == '{' {
		u.Output = number(b, first(get(b, output, "total")))
	}
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	if u.Used = number(b, first(get(b, v, "totalTokens"))); u.Used == 0 {
		u.Used = all + u.Output
	}
	return u
}

func writeVercel(out Output) ([]byte, error) {
	all, err := entriesOf(vercelCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	list := arrayOf(nativesOf(all))
	if out.Meta.Envelope == nil {
		return list, nil
	}
	return putArray(out.Meta.Envelope, list, vercelPaths[:2]...), nil
}
