package transcript

import (
	"bytes"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
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

type vercel struct{}

func (vercel) name() Format { return Vercel }

func (vercel) message(l *layout.Layout) pipeline.Message { return l.Message() }

func (f vercel) Make(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleTool {
		return fmt.Appendf(
			nil, `{"role":"tool","content":[{"type":"tool-result","toolCallId":%s,"toolName":%s,"output":%s}]}`,
			rawjson.Quote(m.CallID), rawjson.Quote(m.Name), f.output(m.Text, m.IsError)), nil
	}
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	if m.Role == pipeline.RoleSystem {
		return fmt.Appendf(nil, `{"role":"system","content":%s}`, rawjson.Quote(m.Text)), nil
	}
	return anthropic.Wrap(string(m.Role), [][]byte{layout.TextBlock(m.Text)}), nil
}

func (vercel) output(text string, isError bool) []byte {
	b := []byte(`{"type":"text","value":`)
	if isError {
		b = []byte(`{"type":"error-text","value":`)
	}
	return fmt.Appendf(b, "%s}", rawjson.Quote(text))
}

// read reads {"role":…,"content":…}, sound JSON.
func (f vercel) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	role, _ := v.Lookup("role")
	content, _ := v.Lookup("content")
	switch l.Role = role.Text(); l.Role {
	case "system", "user", "assistant", "tool":
	case "":
		return l.Errorf("it has no role")
	default:
		return l.Errorf("its role is not system, user, assistant or tool")
	}
	switch content.Kind() {
	case rawjson.String:
		l.Nodes = []layout.Node{layout.Text(content)}
	case rawjson.Array:
		els := content.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			if !el.IsObject() {
				return l.Errorf("a part of its content is no object")
			}
			n := f.part(l, el)
			n.List, n.Index = row, i
			l.Nodes = append(l.Nodes, n)
		}
	default:
		return l.Errorf("its content is neither a string nor an array of parts")
	}
	return nil
}

// part reads one part of a message, or of a result's content, whose types differ from each other.
func (f vercel) part(l *layout.Layout, v rawjson.Value) layout.Node {
	at := v.Members()
	str := func(keys ...string) string {
		for _, key := range keys {
			if s := at[key].Text(); s != "" {
				return s
			}
		}
		return ""
	}
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: str("type"), Raw: v.Raw()}}
	p := &n.Part
	switch p.Type {
	case "text":
		if at["text"].IsString() {
			p.Kind, p.Text, n.Value = pipeline.PartText, str("text"), at["text"]
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
		media.FromAddress(p, f.address(*p))
	case "tool-call":
		p.Kind, p.CallID, p.Name, n.Block = pipeline.PartToolCall, str("toolCallId"), str("toolName"), false
		n.Insert, n.Key = v.End()-1, "input"
		for _, key := range []string{"args", "input"} {
			if in, ok := at[key]; ok {
				p.Input, n.Value = in.TextOrRaw(), in
			}
		}
	case "tool-result":
		f.result(l, &n, v, at)
		p.Name = str("toolName")
	}
	return n
}

// result reads a result, whose content is {"type":…,"value":…} under output, or anything under result.
func (f vercel) result(l *layout.Layout, n *layout.Node, v rawjson.Value, at map[string]rawjson.Value) {
	p := &n.Part
	p.Kind, p.CallID, n.Block = pipeline.PartToolResult, at["toolCallId"].Text(), false
	p.IsError = at["isError"].IsTrue()
	n.Insert, n.Key = v.End()-1, "output"
	output, isNew := at["output"]
	if !isNew {
		if old, ok := at["result"]; ok {
			n.Value, n.Key = old, "result"
			n.Content = layout.AnyContent(old)
			return
		}
	}
	n.Value = output
	typ := output.Get("type").Text()
	p.IsError = p.IsError || strings.HasPrefix(typ, "error") || typ == "execution-denied"
	isError := p.IsError
	n.As = func(text string) ([]byte, error) { return f.output(text, isError), nil }
	value, _ := output.Lookup("value")
	switch {
	case typ == "content" && value.IsArray():
		els := value.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			c := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: el.Raw()}}
			if el.IsObject() {
				c = f.part(l, el)
			}
			c.List, c.Index = row, i
			n.Content = append(n.Content, c)
		}
	case typ == "execution-denied":
		if reason, _ := output.Lookup("reason"); reason.IsString() {
			n.Content = []layout.Node{layout.Text(reason)}
		}
	default:
		n.Content = layout.AnyContent(value)
	}
}

// address reads {"image":…}, {"data":…} or {"url":…}: base64, a data URL or an address.
func (vercel) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	for _, key := range []string{"image", "data", "url"} {
		if s := rawjson.Root(b).Get(key).Text(); s != "" {
			return media.Base64URL(p.MediaType, s)
		}
	}
	return ""
}

// ---- files

func (vercel) detect(s rawjson.Outline) bool {
	if s.Has("steps[].run_id") && s.Has("steps[].input") {
		return true
	}
	for _, at := range []string{"[]", "messages[]", "prompt[]"} {
		if s.Has(at+".role") && !s.Has(at+".ts") &&
			s.Has(at+".content[].type=tool-call", at+".content[].type=tool-result",
				at+".content[].type=reasoning", at+".providerOptions", at+".content[].providerOptions",
				at+".content[].toolCallId") {
			return true
		}
	}
	return s.Has("prompt[].role", "model_id") && s.Has("messages[].role", "prompt[].role") &&
		s.Has("providerOptions", "toolChoice", "tools[].inputSchema")
}

// vercelPaths are where the messages of a file are.
var vercelPaths = []string{"messages", "prompt", ""}

func (vercel) open(s *jsonstream.Reader, o Options) source {
	if sk := rawjson.OutlineOf(s.Window()); sk.Has("steps[].run_id", "runs[].started_at") {
		return openArrays(s, o, Meta{Format: Vercel, Source: sourceDevtools}, &devtools{hold: holdBytes}, "steps")
	}
	return openArrays(s, o, Meta{Format: Vercel}, vercelMessages{}, vercelPaths...)
}

type vercelMessages struct{}

func (vercelMessages) record(out *scribe, b []byte, line int) error {
	m, err := decode(vercel{}, b)
	if err == nil {
		out.message(line, m)
	}
	return err
}

func (vercelMessages) end(out *scribe, around []byte) error {
	if around != nil {
		vercel{}.meta(&out.meta, around)
	}
	return nil
}

// meta reads what stands beside messages: the arguments of the SDK's call.
func (vercel) meta(m *Meta, around []byte) {
	m.Envelope = around
	for key, field := range rawjson.Root(around).Fields() {
		switch string(key) {
		case "model", "model_id":
			m.Model = field.Value.Text()
		case "provider":
			m.Vendor = protocolOf(field.Value.Text())
		case "system":
			m.System = field.Value.Present()
		case "tools":
			if field.Value.IsArray() {
				m.Tools = field.Value.Raw()
			}
		case "maxOutputTokens", "maxTokens":
			m.MaxTokens = field.Value.Count()
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
	v := rawjson.Root(b)
	embedded := func(key string) []byte {
		s, ok := v.Get(key).Str()
		if !ok || rawjson.Check([]byte(s)) != nil {
			return nil
		}
		return []byte(s)
	}
	r := &devtoolsRun{
		id: v.Get("run_id").Text(), line: line, input: embedded("input"),
		output: embedded("output"),
	}
	prompt, ok := rawjson.Root(r.input).Lookup("prompt")
	if !ok || !prompt.IsArray() {
		out.note(line, NoteRecord, "step", "a step without a prompt")
		return nil
	}
	r.count = len(prompt.Elements())
	if failed, _ := v.Lookup("error"); failed.IsString() {
		r.output = nil // cut off: it is in no later prompt
	}
	r.model, r.provider = v.Get("model_id").Text(), v.Get("provider").Text()
	if u := embedded("usage"); u != nil {
		r.usage = vercel{}.usage(rawjson.Root(u), r.model)
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
	prompt, _ := rawjson.Root(r.input).Lookup("prompt")
	// The step says beside its input who was asked.
	around := prompt.With([]byte("[]"))
	around = rawjson.AddPair(rawjson.AddPair(around, "model_id", rawjson.Quote(r.model)), "provider",
		rawjson.Quote(r.provider))
	vercel{}.meta(&out.meta, around)
	out.meta.ID = r.id
	out.begin(r.line)
	natives := [][]byte{}
	for _, el := range prompt.Elements() {
		natives = append(natives, el.Raw())
	}
	if answer := devtoolsAnswer(r.output); answer != nil {
		natives = append(natives, answer)
	}
	for _, native := range natives {
		m, err := decode(vercel{}, native)
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
	if !rawjson.Root(output).IsObject() {
		return nil
	}
	v := rawjson.Root(output)
	var blocks [][]byte
	each := func(key string, block func(el rawjson.Value) []byte) {
		list, ok := v.Lookup(key)
		if !ok || !list.IsArray() {
			return
		}
		for _, el := range list.Elements() {
			if el.IsObject() {
				if b := block(el); b != nil {
					blocks = append(blocks, b)
				}
			}
		}
	}
	said := func(typ string) func(rawjson.Value) []byte {
		return func(el rawjson.Value) []byte {
			lit, ok := el.Lookup("text")
			if !ok || !lit.IsString() || lit.IsEmpty() {
				return nil
			}
			return append(append([]byte(`{"type":"`+typ+`","text":`), lit.Raw()...), '}')
		}
	}
	each("reasoningParts", said("reasoning"))
	each("textParts", said("text"))
	each("toolCalls", func(el rawjson.Value) []byte {
		// The log has the input as the model wrote it, a string; a message holds the object.
		in, ok := el.Lookup("input")
		if s, isString := in.Str(); ok && isString && rawjson.Check([]byte(s)) == nil {
			b := in.With(bytes.TrimSpace([]byte(s)))
			return rawjson.At(b, el.Start()).Raw()
		}
		return el.Raw()
	})
	if len(blocks) == 0 {
		return nil
	}
	return anthropic.Wrap("assistant", blocks)
}

// usage reads the SDK's usage: figures, or from version 6 on objects of them.
func (vercel) usage(v rawjson.Value, model string) *Usage {
	u := &Usage{Model: model}
	input, _ := v.Lookup("inputTokens")
	output, _ := v.Lookup("outputTokens")
	all := input.Count()
	u.Output, u.CacheRead = output.Count(), v.Get("cachedInputTokens").Count()
	if input.IsObject() {
		all = input.Get("total").Count()
		u.CacheRead = input.Get("cacheRead").Count()
		u.CacheCreation = input.Get("cacheWrite").Count()
	}
	if output.IsObject() {
		u.Output = output.Get("total").Count()
	}
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	if u.Used = v.Get("totalTokens").Count(); u.Used == 0 {
		u.Used = all + u.Output
	}
	return u
}

func (vercel) write(out Output) ([]byte, error) {
	all, err := out.entries(vercel{})
	if err != nil {
		return nil, err
	}
	list := rawjson.ArrayOf(nativesOf(all))
	if out.Meta.Envelope == nil {
		return list, nil
	}
	return rawjson.PutArray(out.Meta.Envelope, list, vercelPaths[:2]...), nil
}
