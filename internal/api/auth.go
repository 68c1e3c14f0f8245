package api

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/service"
	"precis/internal/store"
)

// authenticate finds the tenant of a request.
func (s *Server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if traitsOf(ctx.Operation()).public {
		next(ctx)
		return
	}
	if p := s.identify(r, requestOf(r.Context())); p != nil {
		p.write(w, r)
		return
	}
	next(ctx)
}

// identify sets the request's tenant by its API key. The key is looked up for every request, so that a revoked key
// stops working at once.
func (s *Server) identify(r *http.Request, q *request) *Problem {
	secret, given := bearer(r)
	if given {
		key, err := s.store.Keys.Find(r.Context(), secret)
		switch {
		case err == nil:
			q.tenant, q.trusted = key.Tenant, key.Trusted
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
	if given {
		return problem(codeUnauthorized,
			"the API key is unknown or has been revoked: `precis keys list` shows the valid ones").at(
			"header.Authorization")
	}
	return problem(codeUnauthorized,
		"an API key is required: send `Authorization: Bearer KEY`; `precis keys create` makes one").at(
		"header.Authorization")
}

func bearer(r *http.Request) (string, bool) {
	header := r.Header.Get("Authorization")
	scheme, secret, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", header != ""
	}
	return strings.TrimSpace(secret), true
}

// crossOrigin refuses requests that a page of another site makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// open allows a request without a key. Programs on this machine may do everything. A web page in a browser on this
// machine may not: its Host is not a loopback name, or its origin is another site.
func (s *Server) open(r *http.Request, q *request) *Problem {
	if !loopbackHost(r.Host) {
		return problem(service.CodeForbidden,
			"without API keys the server accepts only requests to localhost, not to %q",
			r.Host)
	}
	if err := crossOrigin.Check(r); err != nil {
		return problem(service.CodeForbidden, "without API keys the server accepts no requests from other sites")
	}
	q.tenant, q.trusted = store.DefaultTenant, true
	return nil
}

func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
