// Package apitest serves the HTTP API of a scenario's system on a real listener.
package apitest

import (
	"context"
	"testing"

	"precis/internal/api"
	"precis/internal/testkit/scenario"
)

// Serve serves the API of a system until the test ends and returns its URL.
func Serve(t testing.TB, sys *scenario.System) string {
	t.Helper()
	sys.Config.HTTP.Addr = "127.0.0.1:0"
	server := api.New(api.Options{Service: sys.Service(), Telemetry: sys.Telemetry})
	listener, err := server.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the API server failed: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}
