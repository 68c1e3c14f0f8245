package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// Claude Code writes what it attached to a request into records of its own: files that the user mentioned with @,
// files that changed, and files that it attaches again after a compaction. The model sees their content.

// attachedText has the paths of the text and of the name of an attachment, by its type.
var attachedText = map[string]struct{ text, name []string }{
	"file":                   {[]string{"content", "file", "content"}, []string{"filename"}},
	"edited_text_file":       {[]string{"snippet"}, []string{"filename"}},
	"selected_lines_in_ide":  {[]string{"content"}, []string{"filename"}},
	"directory":              {[]string{"content"}, []string{"path"}},
	"nested_memory":          {[]string{"content", "content"}, []string{"path"}},
	"plan_file_reference":    {[]string{"planContent"}, []string{"planFilePath"}},
	"compact_file_reference": {nil, []string{"filename"}},
}

// attachedFile returns the content that a record attaches, as a text that names it or as an image.
func (r record) attachedFile() (layout.Node, bool) {
	if r.typ != "attachment" || !r.attachment.IsObject() {
		return layout.Node{}, false
	}
	paths, ok := attachedText[r.attachment.Get("type").Text()]
	if !ok {
		return layout.Node{}, false
	}
	name := r.attachment.Get(paths.name...).Text()
	if n, ok := attachedImage(r.attachment, name); ok {
		return n, true
	}
	text := r.attachment.Get(paths.text...)
	if len(paths.text) == 0 || !text.IsString() || text.IsEmpty() {
		return layout.Node{}, false
	}
	return layout.Node{
		Part: pipeline.Part{
			Kind: pipeline.PartText, Type: "attachment", Name: name,
			Text: anthropic.Marked(fmt.Sprintf("Content of %s:\n%s", name, text.Text())),
		},
		Value: text, Block: true,
	}, true
}

// attachedImage returns an attached image.
func attachedImage(v rawjson.Value, name string) (layout.Node, bool) {
	content := v.Get("content")
	file := content.Get("file")
	if content.Get("type").Text() != "image" || !file.Get("base64").IsString() {
		return layout.Node{}, false
	}
	raw := fmt.Appendf(nil, `{"type":"image","source":{"type":"base64","media_type":%s,"data":%s}}`,
		jsonOr(file, "type"), file.Get("base64").Raw())
	n, err := anthropic.ReadBlock(layout.New(string(ClaudeCode), raw), rawjson.Root(raw))
	n.Part.Name, n.Fixed = name, true
	return n, err == nil
}
