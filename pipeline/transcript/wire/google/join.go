package google

import (
	"bytes"
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// Join merges contents where the API requires one: a content with calls follows one of the user, and one content has
// the results of a step, as many as there are calls. Results that were made follow those that are stored. All other
// contents keep their bytes.
func Join(messages [][]byte) ([][]byte, error) {
	out := make([][]byte, 0, len(messages))
	var last shape
	for _, native := range messages {
		s, err := shapeOf(native)
		if err != nil {
			return nil, err
		}
		n := len(out)
		join := n > 0 && (last.model && s.model && (s.calls || last.calls) || !last.model && !s.model && last.results &&
			s.results)
		switch {
		case !join:
			out = append(out, native)
			last = s
			continue
		case !s.model && last.made && !s.made:
			out[n-1] = JoinParts(native, out[n-1])
		default:
			out[n-1] = JoinParts(out[n-1], native)
		}
		last.calls, last.results, last.made = last.calls || s.calls, last.results || s.results, last.made && s.made
	}
	return out, nil
}

// shape has the properties of a content that decide what it can be merged with.
type shape struct{ model, calls, results, made bool }

func shapeOf(native []byte) (shape, error) {
	l := layout.New("google", native)
	if err := rawjson.Check(native); err != nil {
		return shape{}, l.Errorf("%v", err)
	}
	if err := Read(l); err != nil {
		return shape{}, err
	}
	m := Message(l)
	s := shape{
		model: m.Role == pipeline.RoleAssistant, calls: len(m.Calls()) > 0,
		results: m.Role != pipeline.RoleAssistant && len(m.Results()) > 0,
	}
	// A made result for a call without an id has no id either; most recorded results have one.
	s.made = s.results && len(m.Parts) == 1 && m.Parts[0].IsError &&
		bytes.HasPrefix(native, []byte(`{"role":"user","parts":[{"functionResponse":{"name":`))
	return s, nil
}

// JoinParts appends the parts of b to those of a.
func JoinParts(a, b []byte) []byte {
	to, ok := rawjson.Root(a).Lookup("parts")
	from, found := rawjson.Root(b).Lookup("parts")
	if !ok || !found || !to.IsArray() || !from.IsArray() || from.IsEmpty() {
		return a
	}
	more := b[from.Start()+1 : from.End()-1]
	if !to.IsEmpty() {
		more = fmt.Appendf(nil, ",%s", more)
	}
	at := to.End() - 1
	return rawjson.Apply(a, rawjson.Insert(at, more))
}
