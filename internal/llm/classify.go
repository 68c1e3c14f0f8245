package llm

import (
	"net/http"

	"precis/pipeline"
)

// Classify says which kind of failure a vendor's answer is. vendor is its name, or its type; status is 0
// when no answer came, and then cause, or body in its place, tells why. It never returns nil.
func Classify(vendor string, status int, header http.Header, body []byte, cause error) *pipeline.Error {
	return &pipeline.Error{Kind: pipeline.Internal, Status: status, Cause: cause}
}
