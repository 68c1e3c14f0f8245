package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/telemetry"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// bench is a server over a real database and a real Temporal, and a client of it.
type bench struct {
	*scenario.System
	t      *testing.T
	server *Server
	url    string
	// key is sent with every request, "" for none.
	key string
	log *lines
	// stop ends the server as a signal does, and gives what Serve returned.
	stop func() error
}

// options change a bench before it starts.
type options struct {
	script vendorserver.Script
	config func(*config.Config)
	server func(*Server)
	tel    *telemetry.Telemetry
	// worker runs one.
	worker bool
}

func newBench(t *testing.T, o options) *bench {
	t.Helper()
	sys := scenario.New(t, o.script)
	if o.config != nil {
		o.config(&sys.Config)
	}
	sys.Config.HTTP.Addr = "127.0.0.1:0"
	if o.tel != nil {
		sys.Observe(o.tel)
	}
	if o.worker {
		sys.StartWorker()
	}
	b := &bench{System: sys, t: t, log: &lines{}}
	log := slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.server = New(Options{
		Service: &service.Service{
			Store: sys.Store, Temporal: sys.Client, Config: sys.Config, Log: log,
			Metrics: o.tel.Metrics(),
		},
		Telemetry: o.tel,
	})
	b.server.heartbeat = 100 * time.Millisecond
	if o.server != nil {
		o.server(b.server)
	}
	b.serve()
	return b
}

func (b *bench) serve() {
	b.t.Helper()
	l, err := b.server.Listen(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.server.Serve(ctx, l) }()
	b.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	b.t.Cleanup(func() {
		if err := b.stop(); err != nil {
			b.t.Errorf("the server ended: %v", err)
		}
	})
}

// on is the bench for a subtest.
func (b *bench) on(t *testing.T) *bench {
	other := *b
	other.t = t
	return &other
}

// with is the bench with another API key.
func (b *bench) with(key string) *bench {
	other := *b
	other.key = key
	return &other
}

// lines is a log in memory.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// reply is an answer that was read whole.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// headers are given as name, value, name, value.
func (b *bench) send(method, path, body string, headers ...string) reply {
	b.t.Helper()
	r, err := b.try(method, path, body, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) try(method, path, body string, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if b.key != "" {
		req.Header.Set("Authorization", "Bearer "+b.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	if err == nil {
		b.documented(req, res, got)
	}
	return reply{b.t, res.StatusCode, res.Header, got}, err
}

// documented checks an answer against the document: that its status is there, and that its body is as described.
func (b *bench) documented(req *http.Request, res *http.Response, body []byte) {
	b.t.Helper()
	_, pattern := b.server.mux.Handler(req)
	method, path, _ := strings.Cut(pattern, " ")
	doc := b.server.api.OpenAPI()
	if doc.Paths[path] == nil {
		return // the document itself, and what tests add
	}
	op := operationAt(doc, huma.Operation{Method: method, Path: path})
	response := op.Responses[strconv.Itoa(res.StatusCode)]
	// A body that is no JSON is 400 in the place of 422.
	if response == nil && res.StatusCode != http.StatusBadRequest {
		b.t.Errorf("%s is answered %d, which is not documented: %s", pattern, res.StatusCode, body)
		return
	}
	if res.Header.Get("Content-Type") == "application/problem+json" {
		var p wire.Problem
		if err := json.Unmarshal(body, &p); err != nil || response != nil &&
			!strings.Contains(response.Description, "`"+string(p.Code)+"`") {
			b.t.Errorf("%s may fail with %d, and %s is not documented (%v)", pattern, res.StatusCode, p.Code, err)
		}
		return
	}
	media := response.Content["application/json"]
	if media == nil {
		if res.StatusCode == http.StatusNoContent && len(body) > 0 {
			b.t.Errorf("%s has a body: %s", pattern, body)
		}
		return
	}
	if !json.Valid(body) {
		b.t.Errorf("%s: no JSON: %s", pattern, body)
		return
	}
	v := decoded(doc.Components.Schemas, media.Schema, body)
	result := &huma.ValidateResult{}
	huma.Validate(doc.Components.Schemas, media.Schema, huma.NewPathBuffer([]byte{}, 0), huma.ModeReadFromServer, v,
		result)
	for _, err := range result.Errors {
		b.t.Errorf("%s is not answered as documented: %v", pattern, err)
	}
}

// is fails the test unless the answer has the status; it gives the answer for more.
func (r reply) is(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// fails checks that the answer is a problem document with the status and code.
func (r reply) fails(status int, code wire.Code) failure {
	r.t.Helper()
	r.is(status)
	var p failure
	if err := json.Unmarshal(r.body, &p); err != nil {
		r.t.Fatalf("%v: %s", err, r.body)
	}
	if p.Code != code || p.Status != status || p.Detail == "" || p.Title != http.StatusText(status) ||
		p.Type != "/docs#"+string(code) || p.RequestID == "" {
		r.t.Errorf("problem %s, want code %s", r.body, code)
	}
	if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
		r.t.Errorf("a problem of type %q", ct)
	}
	return p
}

// failure is the problem document of a failed request.
type failure struct{ wire.Problem }

// names checks that location is the first field that the problem names.
func (p failure) names(t *testing.T, location string) {
	t.Helper()
	if len(p.Errors) == 0 || p.Errors[0].Location != location {
		t.Errorf("errors %+v, want %s first", p.Errors, location)
	}
}

// into reads the body.
func (r reply) into(v any) reply {
	r.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		r.t.Fatalf("%v: %s", err, r.body)
	}
	return r
}

// get reads a value of a JSON body by its path, as text.
func (r reply) get(path ...any) string {
	r.t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		r.t.Fatalf("%v: %s", err, r.body)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				r.t.Fatalf("there is no %v in %s", path, r.body)
			}
			v = m[step]
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				r.t.Fatalf("there is no %v in %s", path, r.body)
			}
			v = l[step]
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	out, err := json.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(out)
}

// fields are values of a JSON body by their paths, such as "messages.0.seq".
type fields map[string]string

// has checks values of the body.
func (r reply) has(want fields) reply {
	r.t.Helper()
	got := fields{}
	for path := range want {
		var steps []any
		for step := range strings.SplitSeq(path, ".") {
			if n, err := strconv.Atoi(step); err == nil {
				steps = append(steps, n)
			} else {
				steps = append(steps, step)
			}
		}
		got[path] = r.get(steps...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("the answer is %s (-want +got):\n%s", r.body, diff)
	}
	return r
}

// holds checks that a value of the body contains a text.
func (r reply) holds(text string, path ...any) reply {
	r.t.Helper()
	if got := r.get(path...); !strings.Contains(got, text) {
		r.t.Errorf("%v is %s, want it to contain %q", path, got, text)
	}
	return r
}

// quote gives a JSON string.
func quote(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(out)
}

// list gives a JSON array of native messages.
func list(natives ...string) string { return "[" + strings.Join(natives, ",") + "]" }

// create makes a conversation and gives its path.
func (b *bench) create(id string, extra string) string {
	b.t.Helper()
	if extra != "" {
		extra = "," + extra
	}
	b.send("POST", "/v1/conversations",
		`{"id":`+quote(
			id)+`,"format":"anthropic","model":{"vendor":"anthropic","name":"test-agent","context_window":20000}`+extra+
			`}`).is(http.StatusCreated)
	return "/v1/conversations/" + id
}

// append adds native messages.
func (b *bench) add(conversation string, natives ...string) reply {
	b.t.Helper()
	return b.send("POST", conversation+"/messages", `{"messages":`+list(natives...)+`}`).is(http.StatusOK)
}

// newKey makes a key for a tenant.
func (b *bench) newKey(tenant string, trusted bool) string {
	b.t.Helper()
	if _, err := b.Store.Tenants.Ensure(b.t.Context(), tenant, ""); err != nil {
		b.t.Fatal(err)
	}
	_, secret, err := b.Store.Keys.Create(b.t.Context(), tenant, "test", trusted)
	if err != nil {
		b.t.Fatal(err)
	}
	return secret
}

// within waits until a condition holds.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(limit)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// database is a pool past the store, for what only a crash would do.
func database(t *testing.T, b *bench) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), b.Config.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// summaryText is a model's answer that is taken.
const summaryText = "<summary>The parts were read one by one; the last question is open.</summary>"

// scenarioScript is of a vendor that nobody asks.
var scenarioScript vendorserver.Script
