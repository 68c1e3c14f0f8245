// Package valid says whether the API of a format would accept a list of messages, by what every one of its requests
// must have: known roles in an allowed order, each tool call with its result where the API looks for it, each result
// with its call, and no calls in the form of another API. A list that is refused here was read wrongly or put together
// wrongly, and must not be sent or written.
//
// It checks shapes only. Keys that an API may learn tomorrow, sizes and media are not its concern.
package valid

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

// Messages returns an error that names the first message that the API of the format would refuse. The messages are
// JSON objects, as a request of the API has them. continued says that the vendor stores what comes before them, as
// with OpenAI's previous_response_id. A format without an API of its own has no rules here.
func Messages(f transcript.Format, messages [][]byte, continued bool) error {
	err := error(nil)
	switch f {
	case transcript.Anthropic:
		err = anthropicMessages(messages)
	case transcript.OpenAI:
		err = openAIMessages(messages)
	case transcript.OpenAIResponses:
		err = responsesItems(messages, continued)
	case transcript.Google:
		err = googleContents(messages)
	}
	if err != nil {
		return pipeline.Errorf(pipeline.Internal, "the API of format %q would refuse these messages, so they are not "+
			"written: %w", f, err)
	}
	return nil
}

// failure describes what is wrong with message i.
func failure(i int, format string, args ...any) error {
	return fmt.Errorf("message %d: %s", i, fmt.Sprintf(format, args...))
}

// object returns a message as an object.
func object(i int, b []byte) (rawjson.Value, error) {
	v := rawjson.Root(b)
	if rawjson.Check(b) != nil || !v.IsObject() {
		return v, failure(i, "it is not a JSON object")
	}
	return v, nil
}

// elements returns the elements of an array, none of any other value.
func elements(v rawjson.Value) []rawjson.Value {
	if !v.IsArray() {
		return nil
	}
	return v.Elements()
}

// list is a list of ids in the order in which they came.
type list []string

// take removes an id and reports whether it was there.
func (l *list) take(id string) bool {
	for i, x := range *l {
		if x == id {
			*l = append((*l)[:i:i], (*l)[i+1:]...)
			return true
		}
	}
	return false
}
