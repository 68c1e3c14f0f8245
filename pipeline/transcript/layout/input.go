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

// ObjectInput is a new input for a tool call that must be an object, as most APIs want it.
func ObjectInput(_ Node, text string) ([]byte, error) {
	if b := []byte(text); rawjson.Check(b) == nil && rawjson.Root(b).IsObject() {
		return b, nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "the new input of a tool call must be a JSON object")
}

// StringInput is a new input for a tool call that is a string, whatever stands in it.
func StringInput(_ Node, text string) ([]byte, error) { return rawjson.Quote(text), nil }

// InputAsBefore is a new input of the type that the old one has: a string, else an object.
func InputAsBefore(n Node, text string) ([]byte, error) {
	if n.Value.IsString() {
		return StringInput(n, text)
	}
	return ObjectInput(n, text)
}
