package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"precis/internal/api"
	"precis/internal/config"
	"precis/internal/llm"
	"precis/internal/service"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// system is everything a play runs on: the API on a listener, a worker, Temporal and Postgres.
type system struct {
	*scenario.System
	url string
}

// newSystem starts one that knows the vendors, with a worker.
func newSystem(t *testing.T, vendors ...*vendor) *system {
	t.Helper()
	sys := &system{System: scenario.New(t, vendorserver.Script{})}
	sys.Config.HTTP.Addr = "127.0.0.1:0"
	sys.Config.Worker.Concurrency, sys.Config.Worker.LLMConcurrency = 64, 64
	sys.Config.Models = map[string]config.Model{}
	for _, v := range vendors {
		sys.Config.Vendors[v.name] = config.Vendor{Type: v.typ, BaseURL: v.base(), APIKey: "test-key"}
		if v.native {
			sys.Config.Models[v.name+"/"+agentModel] = config.Model{NativeCompaction: []string{string(llm.NativeEdit)}}
		}
	}
	sys.StartWorker()
	server := api.New(api.Options{Service: &service.Service{
		Store: sys.Store, Temporal: sys.Client, Config: sys.Config, Log: slog.New(slog.DiscardHandler),
	}})
	listener, err := server.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sys.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	return sys
}

// vendor is the scripted vendor of one play. Each play has one of its own, since what a vendor's failures do to its
// breaker is not the next case's.
type vendor struct {
	*vendorserver.Server
	name, typ string
	// native says that it can compact by itself.
	native bool
	// gate holds the answers that a case delays while it does something else, nil: none.
	gate *vendorserver.Gate
}

// base is the URL for a client of its protocol.
func (v *vendor) base() string {
	if v.typ == llm.TypeOpenAI {
		return v.OpenAIURL()
	}
	return v.URL
}

// caller is a client of the API with one tenant's key.
type caller struct {
	url, key string
}

// newCaller makes a tenant, and a key for it.
func newCaller(t *testing.T, sys *system, tenant string) caller {
	t.Helper()
	if _, err := sys.Store.Tenants.Ensure(t.Context(), tenant, ""); err != nil {
		t.Fatal(err)
	}
	_, secret, err := sys.Store.Keys.Create(t.Context(), tenant, "test", false)
	if err != nil {
		t.Fatal(err)
	}
	return caller{url: sys.url, key: secret}
}

// response is an answer that was read whole; status is 0 when the caller gave up.
type response struct {
	status int
	body   []byte
}

// code is that of a problem document.
func (r response) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(r.body, &p) // no problem document: no code
	return p.Code
}

// try sends a request, with an idempotency key unless that is "". body nil: none.
func (c caller) try(ctx context.Context, method, path string, body any, key string) (response, error) {
	var content []byte
	if body != nil {
		content = encode(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(content))
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	return response{res.StatusCode, got}, err
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
