package responses

import (
	"cmp"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

func readMessage(l *layout.Layout, f fields) error {
	l.Role = f.role.Text()
	switch l.Role {
	case "user", "assistant", "system", "developer":
	case "":
		return l.Errorf("a message item has no role")
	default:
		return l.Errorf("the role is not user, assistant, system or developer")
	}
	typ := "input_text"
	if l.Role == "assistant" {
		typ = "output_text"
	}
	l.Entry = func(s string) []byte { return TextPart(typ, rawjson.Quote(s)) }
	if f.content.IsMissing() {
		return l.Errorf("the message has no content")
	}
	nodes, err := readContent(l, f.content)
	l.Nodes = append(l.Nodes, nodes...)
	return err
}

// TextPart writes a text part; lit is its text as JSON.
func TextPart(typ string, lit []byte) []byte {
	return fmt.Appendf(nil, `{"type":%s,"text":%s}`, rawjson.Quote(typ), lit)
}

// readContent reads a content or an output: a string, or an array of parts.
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
	return nil, l.Errorf("the content is neither a string nor an array of parts")
}

// readPart reads one part of a content.
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
	case "": // the output of a shell
		if !stdout.IsMissing() || !stderr.IsMissing() {
			p.Kind, p.Text, n.Fixed = pipeline.PartText, layout.JoinTexts(stdout.Text(), stderr.Text()), true
		}
	}
	return n
}

// Address returns the address of an image or a file of an item: a data URL for data in the item itself.
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

// mediaOfName returns the media type of a file by its name, for the few types that models accept as files.
func mediaOfName(name string) string {
	if strings.HasSuffix(strings.ToLower(name), ".pdf") {
		return "application/pdf"
	}
	return ""
}

// reasoningText returns the readable text of an item of reasoning.
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
