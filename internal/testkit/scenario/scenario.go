// Package scenario brings the whole system up for a test: a schema and a namespace of its own, a vendor that
// the test scripts, a worker. Nothing in it is simulated but the model.
package scenario

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/schema"
	"precis/internal/telemetry"
	"precis/internal/temporalclient"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
	"precis/internal/worker"
)

// Tenant owns the conversations of a scenario.
const Tenant = store.DefaultTenant

// System is everything that a scenario runs on.
type System struct {
	T      testing.TB
	Store  *store.Store
	Client client.Client
	Vendor *vendorserver.Server
	Config config.Config
	Log    *slog.Logger
	// Telemetry measures and traces the workers, nil for neither. Observe sets it.
	Telemetry *telemetry.Telemetry

	mu   sync.Mutex
	stop func()
}

// New starts a system without a worker. The vendors "anthropic" and "openai" are the scripted server, with a key. The
// default list of summarizers is the agent's own model.
func New(t testing.TB, script vendorserver.Script) *System {
	t.Helper()
	return On(t, stacktest.DatabaseURL(t), script)
}

// On is New on a database that exists: it is migrated to the newest schema and keeps its rows.
func On(t testing.TB, databaseURL string, script vendorserver.Script) *System {
	t.Helper()
	ctx := t.Context()
	s := &System{
		T: t, Vendor: vendorserver.New(t, script),
		Log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	s.Config = config.Defaults()
	s.Config.DatabaseURL = databaseURL
	s.Config.Temporal.Address, s.Config.Temporal.Namespace = stacktest.Temporal(t)
	s.Config.Vendors["anthropic"] = config.Vendor{
		Type: contract.ProtocolAnthropic, BaseURL: s.Vendor.URL,
		APIKey: "test-key",
	}
	s.Config.Vendors["openai"] = config.Vendor{
		Type: contract.ProtocolOpenAI, BaseURL: s.Vendor.OpenAIURL(),
		APIKey: "test-key",
	}
	s.Config.Worker.ModelTimeoutSeconds = 20
	s.Config.Worker.DrainSeconds = 1

	if err := schema.Migrate(ctx, s.Config.DatabaseURL, func(string) {}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Store, err = store.Open(ctx, s.Config.DatabaseURL, store.Options{MaxConns: 8}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Store.Close)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if s.Client, err = temporalclient.Dial(ctx, s.Config.Temporal, quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Client.Close)
	return s
}

// Observe replaces the client by one that is measured and traced, and does the same for workers that start later.
func (s *System) Observe(tel *telemetry.Telemetry) {
	s.T.Helper()
	client, err := temporalclient.Dial(s.T.Context(), s.Config.Temporal, slog.New(slog.DiscardHandler), tel.Temporal)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(client.Close)
	s.Client, s.Telemetry = client, tel
}

// testWriter writes the log of a test, and nothing after its end.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}

// StartWorker runs a worker in this process until the test ends or StopWorker is called.
func (s *System) StartWorker() {
	s.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- worker.Run(ctx, worker.Options{
			Store: s.Store, Client: s.Client, Config: s.Config, Log: s.Log,
			Telemetry: s.Telemetry, Ready: func() { close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		s.T.Fatalf("the worker failed to start: %v", err)
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				s.T.Errorf("the worker failed: %v", err)
			}
		})
	}
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	s.T.Cleanup(stop)
}

// StopWorker stops the worker that was started last, as a deploy does.
func (s *System) StopWorker() {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	stop()
}

// Service returns the service on the system, as the HTTP API uses it.
func (s *System) Service() *service.Service {
	return &service.Service{
		Store: s.Store, Temporal: s.Client, Config: s.Config, Log: s.Log,
		Metrics: s.Telemetry.Metrics(),
	}
}
