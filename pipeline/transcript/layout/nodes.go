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

// OptionalText returns the node of a text, or none if the text is missing.
func OptionalText(v rawjson.Value) []Node {
	if !v.IsString() || v.IsEmpty() {
		return nil
	}
	return []Node{Text(v)}
}

// MustSay returns an error for a made message without a text.
func MustSay(m pipeline.Made) error {
	if strings.TrimSpace(m.Text) == "" {
		return pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	return nil
}

// Text returns the node of a text that is a string outside of any list.
func Text(v rawjson.Value) Node {
	return Node{
		Part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
		List: -1, Value: v, Vacant: `""`, Block: true,
	}
}

// AnyContent returns the node of a result that may be any JSON: a string is read as a text, any other value as its
// JSON.
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
