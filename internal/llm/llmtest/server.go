// Package llmtest is a vendor that a test programs: an HTTP server that speaks the Anthropic Messages and
// the OpenAI chat completions protocol, streaming and not, gives the answers of a script in order, and
// records every request.
//
//	script.go     what can be scripted
//	server.go     the server, and what it recorded
//	anthropic.go  the Anthropic protocol on the wire
//	openai.go     the OpenAI protocol on the wire
//	validate*.go  the strict validators: would the real API take this request
package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Server is a programmable vendor. Its methods are safe for concurrent use.
type Server struct {
	// URL is where it listens, without a slash at the end; set by Start. It is the base URL for Anthropic.
	URL string
}

// Request is one request that the server got.
type Request struct {
	// N is its number, from 1.
	N int
	// At is when it had been read.
	At     time.Time
	Method string
	Path   string
	Header http.Header
	// Body is as it came.
	Body []byte
	// Type is the protocol: "anthropic", "openai", or "" for an unknown path.
	Type string
	// Model, Stream and MaxTokens are from the body; MaxTokens 0 is none.
	Model     string
	Stream    bool
	MaxTokens int
	// System is the text of the system prompt, in OpenAI's form of all system messages.
	System string
	// Messages are the other messages, as they came.
	Messages []json.RawMessage
	// LastUser is the text of the last message with role user.
	LastUser string
	// Text is all text in the request, one piece a line.
	Text string
	// Tokens is the size by the server's count.
	Tokens int
}

// NewServer makes a server that does not run yet.
func NewServer(s Script) *Server { return &Server{} }

// New makes and starts a server that is closed when the test ends.
func New(t TB, s Script) *Server {
	t.Helper()
	srv := NewServer(s)
	if err := srv.Start(""); err != nil {
		t.Fatalf("llmtest: %v", err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// Start listens on addr, by default on a free port of the loopback address.
func (s *Server) Start(addr string) error { return errors.ErrUnsupported }

// Close cuts all connections and stops the server.
func (s *Server) Close() {}

// OpenAIURL is the base URL for an OpenAI client.
func (s *Server) OpenAIURL() string { return s.URL + "/v1" }

// SetScript starts over with another script. What was recorded stays.
func (s *Server) SetScript(sc Script) {}

// Push adds answers to those for every model.
func (s *Server) Push(answers ...Answer) {}

// Unused is the number of answers that no request has taken, those given forever left out.
func (s *Server) Unused() int { return 0 }

// Requests gives all requests so far.
func (s *Server) Requests() []Request { return nil }

// WaitForRequest waits until there have been n requests and gives the n-th.
func (s *Server) WaitForRequest(ctx context.Context, n int) (Request, error) {
	return Request{}, errors.ErrUnsupported
}

// ServeHTTP answers one request: a Server is a handler too.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// Gate holds answers until it is opened.
type Gate struct{ open chan struct{} }

// NewGate makes a closed gate.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Open lets all pass, now and later.
func (g *Gate) Open() {}
