package api

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/testkit/scenario"
)

// Without keys the server is for this machine alone, and not for the web pages that are open on it.
func TestWithoutKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.send("GET", "/v1/conversations", "").is(200)
	b.send("GET", "/v1/conversations", "", "Authorization", "Bearer whatever-a-client-has-to-send").is(200)
	b.send("POST", "/v1/conversations", `{"format":"anthropic","model":{"vendor":"a","name":"b"}}`, "Sec-Fetch-Site",
		"cross-site").fails(403, service.CodeForbidden)
	b.send("GET", "/v1/conversations", "", "Sec-Fetch-Site", "same-origin").is(200)

	host := func(name string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/v1/conversations", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = name
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for name, want := range map[string]int{
		"localhost": 200, "localhost:8700": 200, "127.0.0.1:1": 200, "[::1]:8700": 200, "LOCALHOST": 200,
		"evil.example": 403, "evil.example:8700": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403,
	} {
		if got := host(name); got != want {
			t.Errorf("host %s: status %d, want %d", name, got, want)
		}
	}

	// From the first key on all requests need one, also those that come without.
	key := b.newKey("default", false)
	p := b.send("GET", "/v1/conversations", "").fails(401, codeUnauthorized)
	p.names(t, "header.Authorization")
	b.send("GET", "/v1/conversations", "", "Authorization", "Bearer "+key).is(200)
	// Taking the last one back does not open the server again.
	for _, k := range must(b.Store.Keys.List(t.Context(), "")) {
		if err := b.Store.Keys.Revoke(t.Context(), k.Tenant, k.ID); err != nil {
			t.Fatal(err)
		}
	}
	b.send("GET", "/v1/conversations", "").fails(401, codeUnauthorized)
	b.send("GET", "/v1/conversations", "", "Authorization", "Bearer "+key).fails(401, codeUnauthorized)
	for _, public := range []string{"/healthz", "/openapi.json", "/docs"} {
		b.send("GET", public, "").is(200)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// On an address that others reach there is no server without keys.
func TestAnOpenAddressNeedsKeys(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, scenarioScript)
	sys.Config.HTTP.Addr = "0.0.0.0:0"
	s := New(Options{Service: &service.Service{Store: sys.Store, Config: sys.Config, Log: sys.Log}})
	if _, err := s.Listen(t.Context()); !errors.Is(err, ErrNoKeys) ||
		!strings.Contains(err.Error(), "precis keys create") || !strings.Contains(err.Error(), "http.addr") {
		t.Fatalf("error %v", err)
	}
	if _, _, err := sys.Store.Keys.Create(t.Context(), store.DefaultTenant, "", false); err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.key = b.newKey("default", false)
	for _, header := range []string{"Bearer wrong", "Basic " + b.key, b.key, "Bearer", "Bearer "} {
		r := b.send("GET", "/v1/conversations", "", "Authorization", header)
		r.fails(401, codeUnauthorized)
		if r.header.Get("Www-Authenticate") == "" {
			t.Errorf("%q: there is no WWW-Authenticate", header)
		}
	}
	b.send("GET", "/v1/conversations", "", "Authorization", "bearer  "+b.key).is(200)

	// Only a trusted key reports compactions.
	c := b.create("c", "")
	b.add(c, scenario.User("hello"), scenario.Assistant("hi"), scenario.User("more"))
	marker := `{"summary":` + scenario.User("what was said") + `,"covers_to":2}`
	b.send("POST", c+"/markers", marker).fails(403, service.CodeForbidden)
	b.send("POST", c+"/markers", marker, "Authorization", "Bearer "+b.newKey("default", true)).is(201)
}

// Nothing of one tenant can be seen or changed by another: every operation with an id in its path answers 404 for a
// foreign one, exactly as for one that does not exist, and no list holds anything.
func TestTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{worker: true})
	mine, theirs := b.newKey("mine", true), b.newKey("theirs", true)
	b.key = mine
	c := b.create("shared-name", "")
	b.add(c, scenario.Turns(3, 400)...)
	run := b.send("POST", c+"/compactions", `{"wait_seconds":60,"summarizer":"digest"}`).is(200).get("id")
	b.send("PUT", c+"/state/todo", `{"text":"mine"}`).is(200)
	reply := b.send("POST", c+"/replies", `{}`).is(201).get("reply")
	before := snapshot(b, c)

	ids := map[string]string{
		"{id}": "shared-name", "{run}": run, "{reply}": reply, "{key}": "todo", "{name}": "INDEX.md",
	}
	walked := 0
	for path, operations := range documentedPaths(b) {
		if !strings.Contains(path, "{") {
			continue
		}
		for method := range operations {
			method = strings.ToUpper(method)
			tryForeign(b.with(theirs), method, path, ids)
			unknown := maps.Clone(ids)
			unknown["{id}"], unknown["{run}"] = "no-such-thing", "no-such-thing"
			tryForeign(b.with(mine), method, path, unknown)
			walked++
		}
	}
	if walked < 15 {
		t.Errorf("only %d operations have an id in their path", walked)
	}
	for _, path := range []string{
		"/v1/conversations", "/v1/runs", "/v1/runs?conversation=shared-name",
		"/v1/usage?group_by=conversation",
	} {
		r := b.send("GET", path, "", "Authorization", "Bearer "+theirs).is(200)
		if strings.Contains(string(r.body), "shared-name") || strings.Contains(string(r.body), run) {
			t.Errorf("%s shows what is another's: %s", path, r.body)
		}
	}
	if after := snapshot(b, c); !slices.Equal(before, after) {
		t.Errorf("a foreign request changed something:\n%s\n%s", before, after)
	}
	// The same id is theirs to use.
	b.key = theirs
	b.create("shared-name", "")
}

// documentedPaths are the paths of the document, with their operations by method.
func documentedPaths(b *bench) map[string]map[string]any {
	b.t.Helper()
	var doc struct{ Paths map[string]map[string]any }
	b.send("GET", "/openapi.json", "").into(&doc)
	return doc.Paths
}

// foreignBodies are valid bodies of operations on a conversation. The others take {}.
var foreignBodies = map[string]string{
	"POST /v1/conversations/{id}/messages":            `{"messages":[{"role":"user","content":"foreign"}]}`,
	"POST /v1/conversations/{id}/sync":                `{"messages":[{"role":"user","content":"foreign"}]}`,
	"POST /v1/conversations/{id}/replies/{reply}/end": `{"messages":[{"role":"assistant","content":"foreign"}]}`,
	"POST /v1/conversations/{id}/markers":             `{"summary":{"role":"user","content":"foreign"},"covers_to":2}`,
	"PUT /v1/conversations/{id}/state/{key}":          `{"text":"foreign"}`,
	"PATCH /v1/conversations/{id}":                    `{"settings":{"digest":"never"}}`,
	"POST /v1/conversations/{id}/segments":            `{"text":"foreign"}`,
}

var pathParameter = regexp.MustCompile(`\{\w+\}`)

// tryForeign calls an operation with ids that are not found, and checks that the answer says no more than that.
func tryForeign(b *bench, method, path string, ids map[string]string) {
	b.t.Helper()
	body := foreignBodies[method+" "+path]
	if body == "" && method != "GET" {
		body = "{}"
	}
	full := pathParameter.ReplaceAllStringFunc(path, func(name string) string {
		id, ok := ids[name]
		if !ok {
			b.t.Errorf("%s has %s: this test needs one of mine", path, name)
		}
		return url.PathEscape(id)
	})
	p := b.send(method, full+query(path), body).fails(404, service.CodeNotFound)
	if strings.Contains(p.Detail, "mine") {
		b.t.Errorf("%s %s names the owner: %s", method, full, p.Detail)
	}
}

// query adds what an operation cannot do without.
func query(path string) string {
	if strings.HasSuffix(path, "/search") {
		return "?q=word"
	}
	return ""
}

// snapshot is what can be read of a conversation, but for its leases.
func snapshot(b *bench, c string) []string {
	var out []string
	for _, path := range []string{c, c + "/messages", c + "/compactions", c + "/state"} {
		out = append(out, string(b.send("GET", path, "").is(200).body))
	}
	return out
}

func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("Rate", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, options{config: func(c *config.Config) { c.HTTP.RequestsPerSecond, c.HTTP.Burst = 0.5, 3 }})
		one, other := b.newKey("one", false), b.newKey("other", false)
		b.key = one
		for range 3 {
			b.send("GET", "/v1/conversations", "").is(200)
		}
		r := b.send("GET", "/v1/conversations", "")
		r.fails(429, codeRateLimited)
		if after := r.header.Get("Retry-After"); after != "1" && after != "2" {
			t.Errorf("Retry-After %q", after)
		}
		b.send("GET", "/v1/conversations", "", "Authorization", "Bearer "+other).is(200)
		b.send("GET", "/healthz", "").is(200)
	})
	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		var l limits
		l.config.MaxConcurrentRequests, l.config.MaxEventStreams = 2, 1
		first, p := l.enter("a", false)
		if p != nil {
			t.Fatal(p)
		}
		if _, p := l.enter("a", false); p != nil {
			t.Fatal(p)
		}
		if _, p := l.enter("a", false); p == nil || p.Code != codeRateLimited ||
			p.GetHeaders().Get("Retry-After") != "1" {
			t.Errorf("the third request: %v", p)
		}
		if _, p := l.enter("a", true); p != nil {
			t.Errorf("a stream is counted as a request: %v", p)
		}
		if _, p := l.enter("a", true); p == nil {
			t.Error("a second stream was let in")
		}
		if _, p := l.enter("b", false); p != nil {
			t.Errorf("another tenant: %v", p)
		}
		first()
		if _, p := l.enter("a", false); p != nil {
			t.Errorf("after one has ended: %v", p)
		}
	})
	t.Run("Body", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, options{config: func(c *config.Config) { c.HTTP.MaxBodyBytes = 2000 }})
		c := b.create("c", "")
		body := func(n int) string {
			const frame = `{"messages":[{"role":"user","content":""}]}`
			return `{"messages":[{"role":"user","content":"` + strings.Repeat("x", n-len(frame)) + `"}]}`
		}
		b.send("POST", c+"/messages", body(2000)).is(200)
		p := b.send("POST", c+"/messages", body(2001)).fails(413, service.CodeTooLarge)
		if !strings.Contains(p.Detail, "2000 bytes") || !strings.Contains(p.Detail, "http.max_body_bytes") {
			t.Errorf("detail %q", p.Detail)
		}
		if got := b.send("GET", c, "").get("head_seq"); got != "1" {
			t.Errorf("head %s after a body that was refused", got)
		}
	})
}
