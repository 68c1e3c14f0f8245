package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"precis/internal/service"
)

// crossOrigin refuses requests that a page of another site makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// open allows a request without a key. Programs on this machine may do everything. A web page in a browser on this
// machine may not: its Host is not a loopback name, or its origin is another site. Nor may what a proxy on this machine
// passes on: it would open the server to everybody who reaches the proxy.
func (s *Server) open(r *http.Request, q *request) *Problem {
	if !loopbackHost(r.Host) {
		return problem(service.CodeForbidden,
			"without API keys the server accepts only requests to localhost, not to %q",
			r.Host)
	}
	if name := forwarded(r.Header); name != "" {
		return problem(service.CodeForbidden, "without API keys the server accepts no requests that came through a "+
			"proxy, as the header %s says: everybody who reaches the proxy could read and change everything. Make a "+
			"key with `precis keys create`, or send the request directly", name).at("header." + name)
	}
	if err := crossOrigin.Check(r); err != nil {
		return problem(service.CodeForbidden, "without API keys the server accepts no requests from other sites")
	}
	q.tenant, q.trusted, q.scope = openTenant, true, openScope
	return nil
}

// forwardingHeaders are what proxies, tunnels and content delivery networks add to requests that they pass on, and
// forwardingPrefixes the beginnings of such names.
var (
	forwardingHeaders = []string{
		"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Fastly-Client-Ip",
		"Fly-Client-Ip", "X-Proxyuser-Ip", "X-Remote-Ip", "X-Remote-Addr", "X-Host", "X-Scheme", "Cdn-Loop",
		"X-Azure-Clientip", "X-Azure-Socketip", "X-Appengine-User-Ip", "X-Arr-Ssl", "X-Client-Cert", "Client-Ip",
		"Proxy-Client-Ip", "Wl-Proxy-Client-Ip", "X-Originating-Ip", "Ngrok-Trace-Id",
	}
	forwardingPrefixes = []string{
		"X-Forwarded", "X-Original-", "X-Envoy-", "Cf-", "X-Vercel-", "X-Amzn-", "X-Amz-Cf-", "Tailscale-",
		"X-Goog-", "X-Arr-", "X-Cloudfront-", "Cloudfront-",
	}
)

// forwarded returns the name of a header by which a request came through a proxy, "" if there is none.
func forwarded(h http.Header) string {
	var found []string
	for name := range h {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(forwardingHeaders, name) ||
			slices.ContainsFunc(forwardingPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

// hostChecked refuses requests for pages that need no key, such as /metrics and /docs, whose Host is not a loopback
// name, while only this machine can reach the server: a web page whose name was pointed at this machine could otherwise
// read them. http.allowed_hosts has the names of a proxy on this machine.
func (s *Server) hostChecked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := s.checkHost(r); p != nil {
			p.write(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) checkHost(r *http.Request) *Problem {
	keyed := strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/mcp"
	if keyed || !s.local.Load() || loopbackHost(r.Host) || slices.ContainsFunc(s.config.AllowedHosts,
		func(name string) bool { return strings.EqualFold(name, hostOnly(r.Host)) }) {
		return nil
	}
	return problem(service.CodeForbidden, "the server listens on this machine alone and answers this path only to "+
		"requests to localhost, not to %q: add the name to http.allowed_hosts if a proxy on this machine uses it",
		r.Host)
}

// loopbackOnly refuses requests of other names at the listener of a process that has no API, if only this machine can
// reach it.
func loopbackOnly(addr string, next http.Handler) http.Handler {
	if !loopbackHost(addr) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackHost(r.Host) {
			http.Error(w, "the listener answers only to requests to localhost (worker.metrics_addr)",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func hostOnly(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.Trim(host, "[]")
}

func loopbackHost(host string) bool {
	host = hostOnly(host)
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
