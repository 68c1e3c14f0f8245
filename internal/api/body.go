package api

import (
	"errors"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/service"
)

// readBody reads the whole body into the request, with limits on its size and time, and checks its media type.
func (s *Server) readBody(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if r.Method == http.MethodGet || r.Body == nil {
		next(ctx)
		return
	}
	body, p := s.wholeBody(r, w, int64(s.config.MaxBodyBytes))
	if p == nil {
		p = bodyProblem(r, body)
	}
	if p != nil {
		p.write(w, r)
		return
	}
	requestOf(r.Context()).body = body
	next(ctx)
}

// wholeBody reads a body of at most most bytes before the request's timeout.
func (s *Server) wholeBody(r *http.Request, w http.ResponseWriter, most int64) ([]byte, *Problem) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.timeout()))
	q := requestOf(r.Context())
	if q.reserved == nil {
		q.reserved = s.limits.reservation(q.tenant)
	}
	body, err := q.reserved.read(r.Context(), http.MaxBytesReader(w, r.Body, most), r.ContentLength)
	// A deadline that passed later would look like a client that disconnected.
	_ = control.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.Is(err, errBudget):
		return nil, problem(service.CodeUnavailable, "the bodies of the requests in progress fill the server's memory "+
			"(http.max_total_body_bytes): try again").after(budgetWait)
	case errors.As(err, &tooLarge):
		return nil, problem(service.CodeTooLarge,
			"the body is larger than %d bytes (http.max_body_bytes): send fewer messages in one request",
			tooLarge.Limit)
	case errors.As(err, &timeout) && timeout.Timeout():
		p := problem(codeTimeout, "the body did not arrive within %s", s.timeout())
		p.Status = http.StatusRequestTimeout
		return nil, p.complete()
	case err != nil:
		return nil, problem(service.CodeInvalid, "the body ended before it was complete").at("body")
	}
	return body, nil
}

func bodyProblem(r *http.Request, body []byte) *Problem {
	if len(body) == 0 {
		return nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return problem(codeMediaType, "Content-Encoding is %q: send the body uncompressed",
			encoding).at("header.Content-Encoding")
	}
	given := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(given)
	if given != "" && (err != nil || media != "application/json" && !strings.HasSuffix(media, "+json")) {
		return problem(codeMediaType, "Content-Type is %q: send `Content-Type: application/json`",
			given).at("header.Content-Type")
	}
	return nil
}
