// Package exampletest is what the tests of the examples share: the HTTP API on a whole system, with a scripted vendor.
package exampletest

import (
	"context"
	"strings"
	"testing"

	"precis/internal/api"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// Summary is what the scripted model says when it is asked for a summary.
const Summary = "<summary>The user asked one thing after another; each was answered.</summary>"

// Script is a vendor whose model answers a message "Answer to …" with its first words, and writes Summary when that is
// what it is asked for. A request of more than window tokens is refused; 0: none is.
func Script(window int) vendorserver.Script {
	s := vendorserver.Script{
		Key: "test-key",
		Default: &vendorserver.Answer{Func: func(r vendorserver.Request) vendorserver.Answer {
			if AsksForSummary(r) {
				return vendorserver.Answer{Text: Summary}
			}
			words := strings.Fields(r.LastUser)
			return vendorserver.Answer{Text: "Answer to " + strings.Join(words[:min(len(words), 2)], " ") + "."}
		}},
	}
	if window > 0 {
		s.Windows = map[string]int{"": window}
	}
	return s
}

// AsksForSummary says whether a request is precis's own and not the agent's.
func AsksForSummary(r vendorserver.Request) bool { return strings.Contains(r.LastUser, "<summary>") }

// Serve serves the API of a system until the test ends, and gives its address.
func Serve(t testing.TB, sys *scenario.System) string {
	t.Helper()
	sys.Config.HTTP.Addr = "127.0.0.1:0"
	server := api.New(api.Options{Service: sys.Service(), Telemetry: sys.Telemetry})
	l, err := server.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}
