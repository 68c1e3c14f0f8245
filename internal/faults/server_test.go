package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/testkit/apitest"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// system is what a play runs on: the API on a listener, a worker, Temporal and PostgreSQL.
type system struct {
	*scenario.System
	url string
}

// newSystem starts a system with the given vendors and a worker.
func newSystem(t *testing.T, vendors ...*vendor) *system {
	t.Helper()
	sys := &system{System: scenario.New(t, vendorserver.Script{})}
	sys.Config.Worker.Concurrency, sys.Config.Worker.LLMConcurrency = 64, 64
	sys.Config.Models = map[string]config.Model{}
	for _, v := range vendors {
		sys.Config.Vendors[v.name] = config.Vendor{Type: v.typ, BaseURL: v.base(), APIKey: "test-key"}
		if v.native {
			sys.Config.Models[v.name+"/"+agentModel] = config.Model{NativeCompaction: []string{string(
				contract.NativeEdit)}}
		}
	}
	sys.StartWorker()
	sys.url = apitest.Serve(t, sys.System)
	return sys
}

// vendor is the scripted vendor of one play. Each play has its own, so that its failures open no breaker of another
// case.
type vendor struct {
	*vendorserver.Server
	name, typ string
	// native says that the vendor has a compaction of its own.
	native bool
	// gate holds the delayed answers of a case, nil if there are none.
	gate *vendorserver.Gate
}

// base is the base URL for the client of the vendor's protocol.
func (v *vendor) base() string {
	if v.typ == contract.ProtocolOpenAI {
		return v.OpenAIURL()
	}
	return v.URL
}

// caller is a client of the API with one tenant's key.
type caller struct {
	url, key string
}

// newCaller creates a tenant and an API key for it.
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

// response is an HTTP response with its whole body. The status is 0 if the caller timed out.
type response struct {
	status int
	body   []byte
}

// code is the code of a problem document, "" for any other body.
func (r response) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(r.body, &p) // no problem document: no code
	return p.Code
}

// try sends a request, with a body unless that is nil and with an idempotency key unless that is "".
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
