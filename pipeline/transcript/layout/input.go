package layout

import (
	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

func (l *Layout) newInput(n Node, text string) ([]byte, error) {
	if l.Input != nil {
		return l.Input(n, text)
	}
	return ObjectInput(n, text)
}

// ObjectInput returns a new input for a tool call that must be an object, as most APIs require.
func ObjectInput(_ Node, text string) ([]byte, error) {
	if b := []byte(text); rawjson.Check(b) == nil && rawjson.Root(b).IsObject() {
		return b, nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "the new input of a tool call must be a JSON object")
}

// StringInput returns a new input for a tool call as a string with any content.
func StringInput(_ Node, text string) ([]byte, error) { return rawjson.Quote(text), nil }

// InputAsBefore returns a new input of the type of the old one: a string, else an object.
func InputAsBefore(n Node, text string) ([]byte, error) {
	if n.Value.IsString() {
		return StringInput(n, text)
	}
	return ObjectInput(n, text)
}
