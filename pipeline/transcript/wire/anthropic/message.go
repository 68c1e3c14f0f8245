// Package anthropic reads and writes the messages of Anthropic's Messages API and their content blocks:
// https://docs.claude.com/en/api/messages. Several agents store theirs in the same form.
package anthropic

import (
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// Read appends the nodes of the message at v. parent and index name the list entry that is removed if the message has
// no content left.
func Read(l *layout.Layout, v rawjson.Value, parent, index int) error {
	if !v.IsObject() {
		return l.Errorf("the message is not a JSON object")
	}
	var content rawjson.Value
	l.Role = ""
	for key, field := range v.Fields() {
		switch string(key) {
		case "role":
			l.Role = field.Value.Text()
		case "content":
			content = field.Value
		}
	}
	switch l.Role {
	case "user", "assistant", "system":
	case "":
		return l.Errorf("the message has no role")
	default:
		return l.Errorf("the role is not user, assistant or system")
	}
	switch content.Kind() {
	case rawjson.String:
		l.Nodes = append(l.Nodes, layout.Node{
			Part:  pipeline.Part{Kind: pipeline.PartText, Text: content.Text(), Raw: content.Raw()},
			Value: content, List: parent, Index: index, Block: true,
		})
	case rawjson.Array:
		nodes, err := ReadBlocks(l, content, layout.List{Parent: parent, ParentIndex: index})
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, nodes...)
	case rawjson.Missing:
		return l.Errorf("the message has no content")
	default:
		return l.Errorf("the content is neither a string nor an array of blocks")
	}
	return nil
}

// ReadBlocks reads an array of content blocks, as a list of its own.
func ReadBlocks(l *layout.Layout, v rawjson.Value, as layout.List) ([]layout.Node, error) {
	as.Siblings, as.Whole = v.Elements(), v
	at := l.AddList(as)
	nodes := make([]layout.Node, 0, len(as.Siblings))
	for i, el := range as.Siblings {
		n, err := ReadBlock(l, el)
		if err != nil {
			return nil, err
		}
		n.List, n.Index = at, i
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// ReadBlock reads one content block.
func ReadBlock(l *layout.Layout, v rawjson.Value) (layout.Node, error) {
	if v.IsString() { // a plain string among blocks
		return layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, Value: v,
			Block: true,
		}, nil
	}
	if !v.IsObject() {
		return layout.Node{}, l.Errorf("a content block is not an object")
	}
	var typ, txt, thinking, id, useID, name, input, content, src, isError, title, mediaType rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ},
		{"text", &txt},
		{"thinking", &thinking},
		{"id", &id},
		{"tool_use_id", &useID},
		{"name", &name},
		{"input", &input},
		{"content", &content},
		{"source", &src},
		{"is_error", &isError},
		{"title", &title},
		{"media_type", &mediaType},
	})
	n := layout.Node{Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: typ.Text(), Raw: v.Raw()}}
	p := &n.Part
	switch {
	case p.Type == "text":
		p.Kind, p.Text, n.Value = pipeline.PartText, txt.Text(), txt
		if !txt.IsString() {
			p.Kind, n.Value = pipeline.PartOpaque, rawjson.Value{}
		}
	case p.Type == "thinking", p.Type == "redacted_thinking":
		p.Kind, p.Text = pipeline.PartReasoning, thinking.Text()
	case p.Type == "image":
		p.Kind, p.MediaType = pipeline.PartImage, mediaType.Text()
		fromSource(p, src)
	case p.Type == "document":
		p.Kind, p.Name = pipeline.PartFile, title.Text()
		fromSource(p, src)
	case useID.IsString(): // of any type: it answers the call of that id
		p.Kind, p.CallID, p.Name = pipeline.PartToolResult, useID.Text(), name.Text()
		p.IsError = isError.IsTrue()
		// The results of server tools have shapes of their own: no text can replace them.
		n.Value, n.Insert, n.Fixed = content, v.End()-1, p.Type != "tool_result" && p.Type != "mcp_tool_result"
		switch content.Kind() {
		case rawjson.String:
			n.Content = []layout.Node{{
				Part:  pipeline.Part{Kind: pipeline.PartText, Text: content.Text(), Raw: content.Raw()},
				Value: content, List: -1, Vacant: `""`, Block: true,
			}}
		case rawjson.Array:
			nodes, err := ReadBlocks(l, content, layout.List{Parent: -1, Vacant: `""`})
			if err != nil {
				return layout.Node{}, err
			}
			n.Content = nodes
		case rawjson.Object: // an error object of a server tool
			p.IsError = true
			n.Content = []layout.Node{{
				Part: pipeline.Part{
					Kind: pipeline.PartOpaque, Type: content.Get("type").Text(),
					Raw: content.Raw(),
				},
				List: -1, Value: content, Vacant: `""`, Block: true,
			}}
		}
	case strings.HasSuffix(p.Type, "tool_use") && id.IsString():
		p.Kind, p.CallID, p.Name = pipeline.PartToolCall, id.Text(), name.Text()
		p.Input, n.Value = string(input.Raw()), input
	}
	n.Block = p.Kind != pipeline.PartToolCall && p.Kind != pipeline.PartToolResult
	return n, nil
}

// fromSource reads the source object of an image or a document.
func fromSource(p *pipeline.Part, src rawjson.Value) {
	if !src.IsObject() {
		return
	}
	var typ, data, mediaType rawjson.Value
	src.Read(rawjson.Want{{"type", &typ}, {"data", &data}, {"media_type", &mediaType}})
	if s := mediaType.Text(); s != "" {
		p.MediaType = s
	}
	switch typ.Text() {
	case "base64":
		media.Binary(p, data.Text())
	case "text":
		p.Text = data.Text()
		p.Bytes = len(p.Text)
	}
}

// Address returns the address of an image or document of Anthropic: a data URL for base64.
func Address(p pipeline.Part) string {
	if len(p.Raw) == 0 {
		return ""
	}
	b := []byte(p.Raw)
	src, ok := rawjson.Root(b).Lookup("source")
	if !ok || !src.IsObject() {
		return ""
	}
	if url := src.Get("url").Text(); url != "" {
		return url
	}
	data := src.Get("data").Text()
	if data == "" || src.Get("type").Text() != "base64" {
		return ""
	}
	if strings.ContainsAny(data, "\r\n") {
		data = strings.NewReplacer("\r", "", "\n", "").Replace(data)
	}
	return "data:" + p.MediaType + ";base64," + data
}
