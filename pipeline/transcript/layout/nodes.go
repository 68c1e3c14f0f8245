package layout

import (
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

func TextBlock(s string) []byte {
	return fmt.Appendf(nil, `{"type":"text","text":%s}`, rawjson.Quote(s))
}

// JoinTexts puts texts on lines of their own, blank ones left out.
func JoinTexts(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}

// OptionalText returns a text of its own where there is one.
func OptionalText(v rawjson.Value) []Node {
	if !v.IsString() || v.IsEmpty() {
		return nil
	}
	return []Node{Text(v)}
}

// MustSay refuses a made message without a text.
func MustSay(m pipeline.Made) error {
	if strings.TrimSpace(m.Text) == "" {
		return pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	return nil
}

// Text is a text that is a string of its own, no entry of a list.
func Text(v rawjson.Value) Node {
	return Node{
		Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
		List: -1, Value: v, Vacant: `""`, Block: true,
	}
}

// AnyContent is a result that may be any JSON: a string as a text, anything else as its JSON.
func AnyContent(v rawjson.Value) []Node {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil
		}
		return []Node{Text(v)}
	}
	return []Node{{
		Part: pipeline.Part{Kind: pipeline.PartText, Text: string(v.Raw()), Raw: v.Raw()},
		List: -1, Value: v, Vacant: `""`, Block: true,
	}}
}
