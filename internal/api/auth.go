package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/store"
	"precis/internal/store/access"
)

// What a request without a key may do while there are no keys.
const (
	openTenant = store.DefaultTenant
	openScope  = access.ScopeAdmin
)

// authenticate finds the tenant of a request, and refuses a key whose scope is not enough. The request ends when its
// key stops working.
func (s *Server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if traitsOf(ctx.Operation()).public {
		next(ctx)
		return
	}
	q := requestOf(r.Context())
	p := s.identify(r, q)
	if p == nil {
		p = q.allowed(scopeOf(ctx.Operation().OperationID))
	}
	if p != nil {
		p.write(w, r)
		return
	}
	watched, leave := s.keys.watch(r.Context(), q.key)
	defer leave()
	next(with(ctx, r.WithContext(watched), w))
}

// identify sets the request's tenant by its API key. The key is looked up for every request, so that a revoked key
// stops working at once.
func (s *Server) identify(r *http.Request, q *request) *Problem {
	secret, given := bearer(r)
	if given {
		key, err := s.store.Keys.Find(r.Context(), secret)
		switch {
		case err == nil:
			q.tenant, q.trusted, q.scope, q.key = key.Tenant, key.Trusted, key.Scope, key.ID
			return nil
		case !errors.Is(err, store.ErrNotFound):
			return problemOf(r.Context(), err)
		}
	}
	if s.local.Load() {
		has, err := s.store.Keys.Any(r.Context())
		if err != nil {
			return problemOf(r.Context(), err)
		}
		if !has {
			return s.open(r, q)
		}
	}
	if !given {
		return problem(codeUnauthorized,
			"an API key is required: send `Authorization: Bearer KEY`; `precis keys create` makes one").at(
			"header.Authorization")
	}
	if wait := s.badKeys.refused(r); wait > 0 {
		return problem(codeRateLimited, "too many API keys from this address were not valid: wait, then send a "+
			"valid one (`precis keys list` shows which there are)").at("header.Authorization").after(wait)
	}
	return problem(codeUnauthorized,
		"the API key is unknown, has expired or was revoked: `precis keys list` shows the valid ones").at(
		"header.Authorization")
}

// keyEnded returns the problem of a request whose key stopped working while it was in progress, nil for any other.
func keyEnded(ctx context.Context) *Problem {
	if !errors.Is(context.Cause(ctx), errKeyEnded) {
		return nil
	}
	return problem(codeUnauthorized, "%s while the request was in progress; what it had begun continues",
		errKeyEnded).at("header.Authorization")
}

func bearer(r *http.Request) (string, bool) {
	header := r.Header.Get("Authorization")
	scheme, secret, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", header != ""
	}
	return strings.TrimSpace(secret), true
}
