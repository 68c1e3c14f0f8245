package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// malformedError is a body that is not JSON. Its status is 400; that of a wrong value in valid JSON is 422.
type malformedError struct{ says string }

func (e *malformedError) Error() string { return e.says }

// GetStatus is for huma.
func (e *malformedError) GetStatus() int { return http.StatusBadRequest }

// ErrorDetail is for huma.
func (e *malformedError) ErrorDetail() *huma.ErrorDetail {
	return &huma.ErrorDetail{Location: "body", Message: e.says}
}

func malformed(format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...)}
}

func syntaxError(body []byte) error {
	var syntax *json.SyntaxError
	if err := json.Unmarshal(body, new(any)); errors.As(err, &syntax) {
		return malformed("the body is not valid JSON at byte %d: %s", syntax.Offset, syntax)
	}
	return malformed("the body is not valid JSON")
}

// decodeError is an error that the schema does not find: a number that its field cannot hold.
func decodeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return &huma.ErrorDetail{Location: "body." + wrong.Field, Message: fmt.Sprintf("cannot be %s", wrong.Value)}
	}
	return malformed("%s", err)
}
