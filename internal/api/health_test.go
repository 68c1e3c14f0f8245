package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/telemetry"
	"precis/internal/temporalclient"
	"precis/internal/testkit/scenario"
)

func TestReady(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	if got := b.send("GET", "/healthz", "").is(200).get("status"); got != "ok" {
		t.Errorf("status %q", got)
	}
	r := b.send("GET", "/readyz", "").is(http.StatusServiceUnavailable)
	if r.get("status") != "not_ready" || r.get("checks", 0, "ok") != "true" || r.get("checks", 1, "ok") != "true" ||
		r.get("checks", 2, "name") != "worker" || !strings.Contains(r.get("checks", 2, "detail"), "bin/worker") {
		t.Errorf("without a worker: %s", r.body)
	}
	b.StartWorker()
	within(t, 20*time.Second, "ready", func() bool { return b.send("GET", "/readyz", "").status == http.StatusOK })
	if r := b.send("GET", "/readyz", "").is(200); r.get("status") != "ready" || r.get("checks", 2, "ok") != "true" {
		t.Errorf("with a worker: %s", r.body)
	}
	// While it stops it takes no new work.
	b.server.stop()
	r = b.send("GET", "/readyz", "").is(http.StatusServiceUnavailable)
	if r.get("checks", 0, "name") != "server" || r.get("checks", 0, "ok") != "false" {
		t.Errorf("while it stops: %s", r.body)
	}
	b.send("GET", "/healthz", "").is(200)
}

func TestNotReady(t *testing.T) {
	t.Parallel()
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		sys := scenario.New(t, scenarioScript)
		st, err := store.Open(t.Context(), sys.Config.DatabaseURL, store.Options{RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		st.Close() // as good as away
		ready := NewProbe(st, sys.Client, sys.Config).Ready(t.Context())
		if ready.Status != "not_ready" || ready.Checks[0].OK || !ready.Checks[1].OK ||
			!strings.Contains(ready.Checks[0].Detail, "database_url") {
			t.Errorf("%+v", ready)
		}
	})
	t.Run("Temporal", func(t *testing.T) {
		t.Parallel()
		sys := scenario.New(t, scenarioScript)
		away := sys.Config
		away.Temporal.Address = "127.0.0.1:1"
		client, err := temporalclient.Lazy(away.Temporal, sys.Log)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		began := time.Now()
		ready := NewProbe(sys.Store, client, away).Ready(t.Context())
		if ready.Status != "not_ready" || !ready.Checks[0].OK || ready.Checks[1].OK || ready.Checks[2].OK ||
			!strings.Contains(ready.Checks[1].Detail, "temporal.address") {
			t.Errorf("%+v", ready)
		}
		if took := time.Since(began); took > checkTimeout+5*time.Second {
			t.Errorf("the answer took %s", took)
		}
	})
	t.Run("Namespace", func(t *testing.T) {
		t.Parallel()
		sys := scenario.New(t, scenarioScript)
		sys.Config.Temporal.Namespace = "no-such-namespace"
		if ready := NewProbe(sys.Store, sys.Client, sys.Config).Ready(t.Context()); ready.Status != "not_ready" ||
			ready.Checks[1].OK {
			t.Errorf("%+v", ready)
		}
	})
	t.Run("NoTemporal", func(t *testing.T) {
		t.Parallel()
		sys := scenario.New(t, scenarioScript)
		if ready := NewProbe(sys.Store, nil, sys.Config).Ready(t.Context()); ready.Status != "not_ready" ||
			ready.Checks[1].OK {
			t.Errorf("%+v", ready)
		}
	})
}

// With Temporal away the API goes on: what is asked for is kept and starts when it is back.
func TestWithoutTemporal(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, scenarioScript)
	away := sys.Config
	away.Temporal.Address, away.HTTP.Addr = "127.0.0.1:1", "127.0.0.1:0"
	client, err := temporalclient.Lazy(away.Temporal, sys.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b := &bench{
		System: sys, t: t, log: &lines{},
		server: New(Options{Service: &service.Service{Store: sys.Store, Temporal: client, Config: away, Log: sys.Log}}),
	}
	b.serve()
	c := b.create("c", "")
	b.add(c, scenario.Turns(3, 400)...)
	run := b.send("POST", c+"/compactions",
		`{"wait_seconds":1,"summarizer":"digest"}`).is(http.StatusAccepted).get("id")
	sys.StartWorker()
	within(t, 30*time.Second, "the run ends",
		func() bool { return b.send("GET", "/v1/runs/"+run, "").is(200).get("outcome") == "applied" })
}

// With the database away requests fail as unavailable, and pass when it is back.
func TestWithoutPostgres(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	path := b.create("c", "")
	line := newLine(t, b.Config.DatabaseURL)
	st, err := store.Open(t.Context(), line.url, store.Options{RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	far := &bench{
		System: b.System, t: t, log: &lines{},
		server: New(Options{Service: &service.Service{Store: st, Temporal: b.Client, Config: b.Config, Log: b.Log}}),
	}
	far.serve()
	far.send("GET", path, "").is(200)
	line.cut()
	r := far.send("GET", path, "")
	r.fails(http.StatusServiceUnavailable, service.CodeUnavailable)
	if r.header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
	far.send("POST", path+"/messages", `{"messages":[]}`, idempotencyHeader, "k").fails(http.StatusServiceUnavailable,
		service.CodeUnavailable)
	if got := far.send("GET", "/readyz", "").is(http.StatusServiceUnavailable).get("checks", 0, "ok"); got != "false" {
		t.Errorf("postgres is %s", got)
	}
	far.send("GET", "/healthz", "").is(200)
	line.mend()
	within(t, 10*time.Second, "the database is back", func() bool { return far.send("GET", path, "").status == 200 })
}

// line is a connection to the database that can be cut.
type line struct {
	url string

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func newLine(t *testing.T, databaseURL string) *line {
	t.Helper()
	where, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(where.Host, where.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &line{}
	t.Cleanup(func() { _ = l.Close(); n.cut() })
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	u.RawQuery = q.Encode()
	n.url = u.String()
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, address)
			if err != nil || !n.keep(near, far) {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		}
	}()
	return n
}

func (n *line) keep(conns ...net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return false
	}
	n.conns = append(n.conns, conns...)
	return true
}

func (n *line) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}

func (n *line) mend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = false
}

func TestObserved(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, scenarioScript)
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Stop(context.Background()) })
	h := observed(NewProbe(sys.Store, sys.Client, sys.Config), tel)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200, "/v1/conversations": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeObserved(ctx, "127.0.0.1:0", NewProbe(sys.Store, sys.Client, sys.Config), tel) }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := ServeObserved(t.Context(), "127.0.0.1:999999", nil, nil); err == nil ||
		!strings.Contains(err.Error(), "worker.metrics_addr") {
		t.Errorf("error %v", err)
	}
}
