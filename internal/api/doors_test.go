package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"precis/internal/config"
	"precis/internal/service"
)

// Without keys, what a proxy on this machine passes on is refused on every path that needs a key, by any of the headers
// that proxies add. With a key it is served.
func TestForwardedRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	headers := []string{
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server",
		"x-forwarded-port",
		"X-Real-IP", "Via", "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "Fly-Client-IP",
		"Fastly-Client-IP", "X-Original-Forwarded-For", "X-Envoy-External-Address", "Tailscale-User-Login",
		"X-Cluster-Client-IP", "X-Amzn-Trace-Id", "X-Forwarded",
	}
	for _, name := range headers {
		for _, path := range []string{"/v1/conversations", "/v1/settings"} {
			p := b.send("GET", path, "", name, "203.0.113.7").fails(403, service.CodeForbidden)
			if !strings.Contains(p.Detail, "precis keys create") {
				t.Errorf("%s: %s", name, p.Detail)
			}
		}
	}
	b.send("POST", "/mcp", `{}`, "X-Forwarded-For", "203.0.113.7").fails(403, service.CodeForbidden)
	b.send("GET", "/v1/conversations", "", "User-Agent", "curl/8", "Accept-Language", "en", "X-Request-Id", "a").is(200)
	b.key = b.newKey("default", false)
	for _, name := range headers {
		b.send("GET", "/v1/conversations", "", name, "203.0.113.7").is(200)
	}
}

// Pages that need no key are for this machine, as long as the server listens on loopback: no web page reads them by a
// name that it points there.
func TestHostOfPages(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: func(c *config.Config) { c.HTTP.AllowedHosts = []string{"precis.example"} }})
	ask := func(path, host string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for range 2 { // without and with keys
		for _, path := range []string{
			"/metrics", "/docs", "/openapi.json", "/openapi.yaml", "/healthz", "/readyz", "/",
		} {
			for host, refused := range map[string]bool{
				"localhost": false, "127.0.0.1:8700": false, "[::1]": false, "precis.example": false,
				"PRECIS.example:443": false, "evil.example": true, "evil.example:8700": true,
				"127.0.0.1.evil.example": true, "10.0.0.1": true,
			} {
				if got := ask(path, host); (got == http.StatusForbidden) != refused {
					t.Errorf("%s of %s: %d", path, host, got)
				}
			}
		}
		b.newKey("default", false)
	}
	// The same at the listener of a worker.
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, c := range []struct {
		addr, host string
		want       int
	}{
		{"127.0.0.1:9464", "localhost:9464", 200},
		{"127.0.0.1:9464", "evil.example", 403},
		{"localhost:9464", "evil.example", 403},
		{"[::1]:9464", "evil.example", 403},
		{"0.0.0.0:9464", "worker.example", 200},
		{":9464", "worker.example", 200},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.Host = c.host
		loopbackOnly(c.addr, page).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s at %s: %d", c.host, c.addr, w.Code)
		}
	}
}

// Bad keys of an address are limited, good ones from there are not.
func TestBadKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	good := b.newKey("default", false)
	limited := 0
	for i := range 60 {
		r := b.send("GET", "/v1/conversations", "", "Authorization", fmt.Sprintf("Bearer pk_%d", i))
		if r.status == http.StatusUnauthorized {
			continue
		}
		r.fails(429, codeRateLimited)
		if r.header.Get("Retry-After") == "" {
			t.Error("there is no Retry-After")
		}
		limited++
		b.send("GET", "/v1/conversations", "", "Authorization", "Bearer "+good).is(200)
	}
	if limited < 10 || limited > 40 {
		t.Errorf("%d of 60 were limited", limited)
	}
	b.send("POST", "/mcp", `{}`, "Authorization", "Bearer nope").fails(429, codeRateLimited)
}

// However many addresses send bad keys, few of them are remembered, and an address is limited all the same.
func TestBadKeysOfManyAddresses(t *testing.T) {
	t.Parallel()
	var b badKeys
	from := func(addr string) *http.Request { return &http.Request{RemoteAddr: addr} }
	for i := range 3 * maxAddresses {
		b.refused(from(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i/65536, i%65536)))
		if len(b.addresses) > maxAddresses {
			t.Fatalf("%d addresses are remembered", len(b.addresses))
		}
	}
	refused := 0
	for i := range 3 * badKeyBurst {
		if b.refused(from(fmt.Sprintf("[2001:db8:ffff:1::%x]:1", i))) > 0 { // one network
			refused++
		}
	}
	if refused < badKeyBurst {
		t.Errorf("%d were refused", refused)
	}
	if addressOf(from("1.2.3.4:5")) != addressOf(from("[::ffff:1.2.3.4]:6")) || addressOf(from("1.2.3.4:5")) ==
		addressOf(from("1.2.3.5:5")) {
		t.Error("two addresses of IPv4 count as one")
	}
}

// Ids in paths that nothing can have are refused by the field they are in, on every operation, and never redirect,
// reach another resource or fail inside.
func TestPathTricks(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.create("c", "")
	tricks := []string{
		"%2e%2e", "%2E", "%00", "a%00b", "..%2f..%2fv1", "%2f%2F", "%E2%80%AEx", "%20x", "x%20", "%0A", "%1b%5B31m",
		"%ff", "%EF%BB%BFc", "%E2%80%8Bc", "%7F", "c%2F..", "%C2%85", "%EE%80%80",
		"%F3%A0%81%81",
	}
	for path, operations := range documentedPaths(b) {
		for method := range operations {
			for _, name := range pathParameter.FindAllString(path, -1) {
				for _, trick := range tricks {
					full := strings.Replace(path, name, trick, 1)
					full = pathParameter.ReplaceAllStringFunc(full, func(name string) string {
						return map[string]string{
							"{id}": "c", "{key}": "todo", "{run}": "x", "{reply}": "x", "{name}": "x",
						}[name]
					})
					method := strings.ToUpper(method)
					body := ""
					if method != http.MethodGet {
						if body = foreignBodies[method+" "+path]; body == "" {
							body = `{}`
						}
					}
					p := b.send(method, full+query(path), body).fails(422, service.CodeInvalid)
					p.names(t, "path."+strings.Trim(name, "{}"))
				}
			}
		}
	}
	for _, id := range []string{".", "..", "a/../b", "\x00", "a\u202eb", "\u200b", " a", "a ", "//", "a\nb", "\ue000"} {
		p := b.send("POST", "/v1/conversations", `{"id":`+quote(id)+
			`,"format":"anthropic","model":{"vendor":"a","name":"b"}}`).fails(422, service.CodeInvalid)
		p.names(t, "body.id")
	}
	// One that an earlier release took can still be read.
	if _, err := database(t, b).Exec(t.Context(), `UPDATE conversations SET id = $1 WHERE id = 'c'`,
		"old\u202e"); err != nil {
		t.Fatal(err)
	}
	b.send("GET", "/v1/conversations/old%E2%80%AE", "").is(200)
	b.send("GET", "/v1/conversations/old%E2%80%AE/messages", "").is(200)
}
