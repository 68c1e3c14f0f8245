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

// authenticate finds out whose request it is.
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

// identify sets the request's tenant, by its key. Keys are looked up with every request, so that one that is taken back
// is useless at once.
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
			"the API key is unknown or has been revoked: `precis keys list` shows those that work").at(
			"header.Authorization")
	}
	return problem(codeUnauthorized,
		"an API key is needed: send `Authorization: Bearer KEY`; `precis keys create` makes one").at(
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

// crossOrigin refuses what a page of another site would have a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// open lets a request in without a key. Whoever is on this machine may do everything; a web page that is open in a
// browser on it may not: it neither has one of our own names in its address nor comes from us.
func (s *Server) open(r *http.Request, q *request) *Problem {
	if !loopbackHost(r.Host) {
		return problem(service.CodeForbidden, "without API keys only requests for localhost are served, not for %q",
			r.Host)
	}
	if err := crossOrigin.Check(r); err != nil {
		return problem(service.CodeForbidden, "without API keys no requests from other sites are served")
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
