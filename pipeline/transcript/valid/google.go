package valid

import (
	"errors"

	"precis/pipeline/transcript/wire/google"
)

// googleContents checks the contents of generateContent: the calls of a content are answered by the next one, in which
// there are as many responses.
func googleContents(contents [][]byte) error {
	for i, b := range contents {
		if _, err := object(i, b); err != nil {
			return err
		}
	}
	// A request has consecutive contents of one role as one.
	contents, err := google.Join(contents)
	if err != nil {
		return err
	}
	open := 0
	for i, b := range contents {
		v, err := object(i, b)
		if err != nil {
			return err
		}
		switch role := v.Get("role").Text(); role {
		case "", "user", "model", "function":
		default:
			return failure(i, "the API has no role %q", role)
		}
		parts := elements(v.Get("parts"))
		if len(parts) == 0 {
			return failure(i, "it has no parts")
		}
		calls, responses := 0, 0
		for _, p := range parts {
			call, isCall := p.LookupCamel("functionCall")
			if isCall && call.IsObject() {
				calls++
			}
			response, isResponse := p.LookupCamel("functionResponse")
			if isResponse && response.IsObject() {
				responses++
			}
		}
		if responses != open {
			return failure(i, "it has %d responses to %d calls of the content before", responses, open)
		}
		open = calls
	}
	if open > 0 {
		return errors.New("the last calls have no responses")
	}
	return nil
}
