package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// vercel is the format of the AI SDK: lists of ModelMessage
// (https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message), which generateText and streamText take, and the log
// of its devtools. Version 4 had args and result where later ones have input and output; both are read.
// providerOptions stay at every level.
//
// A file is an array of messages, an object with them under "messages" or "prompt", or .devtools/generations.json,
// where the longest prompt of each run is a conversation. Output.File writes the array, or the object with the new
// list.
type vercel struct{}

func (vercel) name() Format { return Vercel }

// read reads {"role":…,"content":…}, valid JSON.
func (f vercel) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	role := v.Get("role")
	content := v.Get("content")
	switch l.Role = role.Text(); l.Role {
	case "system", "user", "assistant", "tool":
	case "":
		return l.Errorf("the message has no role")
	default:
		return l.Errorf("the role is not system, user, assistant or tool")
	}
	switch content.Kind() {
	case rawjson.String:
		l.Nodes = []layout.Node{layout.Text(content)}
	case rawjson.Array:
		els := content.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			if !el.IsObject() {
				return l.Errorf("a part of the content is not an object")
			}
			n := f.part(l, el)
			n.List, n.Index = row, i
			l.Nodes = append(l.Nodes, n)
		}
	default:
		return l.Errorf("the content is neither a string nor an array of parts")
	}
	return nil
}

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
	value := output.Get("value")
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
		if reason := output.Get("reason"); reason.IsString() {
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

// protocolOf returns the vendor whose protocol a provider speaks, "" for any other provider.
func protocolOf(provider string) string {
	name, _, _ := strings.Cut(provider, ".")
	name, _, _ = strings.Cut(name, "-")
	switch name {
	case "anthropic", "openai":
		return name
	}
	return ""
}
