package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
)

// init makes huma answer its own failures with problem documents. Package variables are huma's way to change that.
func init() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		var c context.Context = context.Background()
		if ctx != nil {
			c = ctx.Context()
		}
		return humaProblem(c, status, msg, errs)
	}
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return humaProblem(context.Background(), status, msg, errs)
	}
}

func humaProblem(ctx context.Context, status int, msg string, errs []error) *Problem {
	p := &Problem{Problem: wire.Problem{Code: codeOf(status), Status: status, Detail: msg}}
	for _, err := range errs {
		var detailed huma.ErrorDetailer
		if errors.As(err, &detailed) {
			d := detailed.ErrorDetail()
			p.Errors = append(p.Errors, wire.FieldError{Location: d.Location, Message: d.Message})
		}
		var more moreErrors
		if errors.As(err, &more) {
			p.MoreErrors += int(more)
		}
	}
	p.shorten()
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Location + ": " + p.Errors[0].Message
		if more := len(p.Errors) - 1 + p.MoreErrors; more > 0 {
			p.Detail += fmt.Sprintf(" (and %d more, see errors)", more)
		}
	}
	if status == http.StatusInternalServerError {
		p.cause = errors.Join(append([]error{errors.New(msg)}, errs...)...)
	}
	return problemOf(ctx, p.complete())
}

// GetStatus is for huma.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders is for huma.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int((p.retryAfter+time.Second-1)/time.Second))))
	}
	if p.Code == codeUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="precis"`)
	}
	return h
}

// ContentType is for huma.
func (p *Problem) ContentType(string) string { return "application/problem+json" }
