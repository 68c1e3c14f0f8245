package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/access"
	"precis/internal/temporalclient"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// A key that is revoked ends its streams, whatever flows in them, and its waits. Those of other keys go on, and so does
// the run that was waited for.
func TestRevokedKeyEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	b := newBench(t, options{
		worker: true, script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText, Gate: gate}},
	})
	t.Cleanup(gate.Open)
	id, mine := b.newScopedKey(access.ScopeWrite, time.Time{})
	_, other := b.newScopedKey(access.ScopeWrite, time.Time{})
	b.key = mine
	c := b.create("c", `"system":"s","tools":[]`)
	b.add(c, scenario.Turns(3, 400)...)
	silent, busy := b.follow(c+"/events"), b.follow(c+"/events")
	theirs := b.with(other).follow(c + "/events")
	ref := store.ConversationRef{Tenant: store.DefaultTenant, ID: "c"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	flowing := make(chan struct{})
	go func() {
		defer close(flowing)
		for ctx.Err() == nil {
			b.event(ref, 1)
		}
	}()
	waited := make(chan reply, 1)
	go func() {
		r, err := b.try("POST", c+"/compactions", `{"wait_seconds":120}`)
		if err != nil {
			t.Error(err)
		}
		waited <- r
	}()
	within(t, 30*time.Second, "the model is asked", func() bool { return len(b.Vendor.Requests()) > 0 })
	if err := b.Store.Keys.Revoke(t.Context(), "default", id); err != nil {
		t.Fatal(err)
	}
	limit := time.After(15 * time.Second) // a second, on a machine that does nothing else
	for _, f := range []*following{silent, busy} {
		for open := true; open; {
			select {
			case <-f.ended:
				open = false
			case <-f.events:
			case <-limit:
				t.Fatal("a stream outlives its key")
			}
		}
	}
	select {
	case r := <-waited:
		r.fails(401, codeUnauthorized)
	case <-limit:
		t.Fatal("a wait outlives its key")
	}
	select {
	case <-theirs.ended:
		t.Error("the stream of another key ended")
	default:
	}
	stop()
	<-flowing
	gate.Open()
	within(t, 30*time.Second, "the run ends", func() bool {
		list := b.with(other).send("GET", c+"/compactions", "").is(200)
		return list.get("compactions", 0, "run", "outcome") == "applied"
	})
	within(t, 10*time.Second, "nothing is watched that has ended", func() bool {
		b.server.keys.mu.Lock()
		defer b.server.keys.mu.Unlock()
		return len(b.server.keys.open) <= 1
	})
}

// The answer of a request whose client has disconnected is given to the client's next try, also where a run was waited
// for.
func TestAnswerForADisconnectedClient(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	b := newBench(t, options{
		worker: true, script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText, Gate: gate}},
	})
	t.Cleanup(gate.Open)
	c := b.create("c", `"system":"s","tools":[]`)
	b.add(c, scenario.Turns(3, 400)...)
	body := `{"wait_seconds":120}`
	ctx, disconnect := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+c+"/compactions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(idempotencyHeader, "k")
	req.Header.Set("Content-Type", "application/json")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			t.Error("the request was answered")
		}
	}()
	within(t, 30*time.Second, "the model is asked", func() bool { return len(b.Vendor.Requests()) > 0 })
	disconnect()
	<-ended
	var again reply
	within(t, 20*time.Second, "the answer was kept", func() bool {
		again = b.send("POST", c+"/compactions", body, idempotencyHeader, "k")
		return again.status != http.StatusConflict
	})
	run := again.is(http.StatusAccepted).get("id")
	if again.header.Get(replayedHeader) != "true" {
		t.Errorf("the answer is a new one: %v", again.header)
	}
	gate.Open()
	within(t, 30*time.Second, "the run ends",
		func() bool { return b.send("GET", "/v1/runs/"+run, "").is(200).get("outcome") == "applied" })
}

// A request that the database's absence ended does not keep its key: as soon as the database is back the key is free.
func TestKeyIsFreeAfterAnOutage(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
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
	// The conversation is locked, so that the append waits with its key claimed.
	tx, err := database(t, b).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM conversations WHERE id = 'c' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	answered := make(chan reply, 1)
	go func() {
		r, err := far.try("POST", c+"/messages", appendBody, idempotencyHeader, "k")
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	pool := database(t, b)
	within(t, 20*time.Second, "the key is claimed", func() bool {
		var claimed bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM idempotency_keys)`).Scan(&claimed)
		return err == nil && claimed
	})
	line.cut()
	(<-answered).fails(http.StatusServiceUnavailable, service.CodeUnavailable)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Nothing but the release frees the key in this test.
	if tag, err := pool.Exec(t.Context(), `UPDATE idempotency_keys SET claimed_until = now() + interval '1 hour'
		WHERE key = 'k'`); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	b.send("POST", c+"/messages", appendBody, idempotencyHeader, "k").fails(409, codeKeyBusy)
	line.mend()
	within(t, 20*time.Second, "the key is free", func() bool {
		return b.send("POST", c+"/messages", appendBody, idempotencyHeader, "k").status == http.StatusOK
	})
	if got := b.send("GET", c, "").get("head_seq"); got != "1" {
		t.Errorf("head %s", got)
	}
}

// A run cannot be cancelled while Temporal is away, and the answer says so.
func TestCancelWithoutTemporal(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	b := newBench(t, options{
		worker: true, script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText, Gate: gate}},
		config: func(c *config.Config) { c.HTTP.MaxWaitSeconds = 1 },
	})
	t.Cleanup(gate.Open)
	c := b.create("c", `"system":"s","tools":[]`)
	b.add(c, scenario.Turns(3, 400)...)
	// The installation bounds the wait.
	run := b.send("POST", c+"/compactions", `{"wait_seconds":600}`).is(http.StatusAccepted).get("id")
	within(t, 30*time.Second, "the model is asked", func() bool { return len(b.Vendor.Requests()) > 0 })

	away := b.Config
	away.Temporal.Address, away.HTTP.Addr = "127.0.0.1:1", "127.0.0.1:0"
	client, err := temporalclient.Lazy(away.Temporal, b.Log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	far := &bench{
		System: b.System, t: t, log: &lines{},
		server: New(Options{Service: &service.Service{Store: b.Store, Temporal: client, Config: away, Log: b.Log}}),
	}
	far.serve()
	r := far.send("POST", "/v1/runs/"+run+"/cancel", "")
	if p := r.fails(http.StatusServiceUnavailable, service.CodeUnavailable); !strings.Contains(p.Detail, "Temporal") ||
		r.header.Get("Retry-After") == "" {
		t.Errorf("%s %v", p.Detail, r.header)
	}
	if got := b.send("POST", "/v1/runs/"+run+"/cancel", "").is(200).get("outcome"); got != "cancelled" {
		t.Errorf("outcome %s", got)
	}
}

// No tenant and no conversation allows its runs more time than the installation does.
func TestRunTimeIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: func(c *config.Config) { c.Worker.MaxRunSeconds = 1000 }})
	for seconds, status := range map[string]int{"1001": 422, "31536000": 422, "1000": 200, "900": 200} {
		settings := `{"run_time_budget_seconds":` + seconds + `}`
		for _, r := range []reply{
			b.send("PUT", "/v1/settings", `{"settings":`+settings+`}`),
			b.send("PATCH", "/v1/settings", `{"settings":`+settings+`}`),
		} {
			if r.is(status).status == 422 {
				r.fails(422, service.CodeInvalid).names(t, "body.settings.run_time_budget_seconds")
			}
		}
		create := `{"format":"anthropic","model":{"vendor":"a","name":"b"},"settings":` + settings + `}`
		if r := b.send("POST", "/v1/conversations", create); status == 422 {
			r.fails(422, service.CodeInvalid).names(t, "body.settings.run_time_budget_seconds")
		} else {
			r.is(201)
		}
	}
}
