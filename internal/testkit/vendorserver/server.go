// Package vendorserver is a model vendor that a test scripts: an HTTP server that speaks the Anthropic Messages
// protocol with its compactions, also through Amazon Bedrock's InvokeModel, OpenAI's chat completions and Responses
// with /responses/compact, and Google's generateContent, streaming and not. It gives the answers of a script in
// order, and records every request.
//
//	script.go     what can be scripted
//	server.go     the server, and the requests that it recorded
//	request.go    the recorded requests
//	reply.go      sends one answer, with its delays, pieces and failures
//	anthropic.go  the Anthropic protocol on the wire
//	openai.go     the OpenAI chat completions protocol on the wire
//	responses.go  the Responses protocol on the wire, and its compact endpoint
//	google.go     Google's protocol on the wire
//	bedrock.go    Amazon Bedrock's InvokeModel around the Anthropic protocol
//	validate*.go  the strict validators: whether the real API would accept a request
//
// A test starts one with New. A program starts one with NewServer, Start and Close.
package vendorserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"precis/pipeline"
)

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Server is a programmable vendor. Its methods are safe for concurrent use.
type Server struct {
	// URL is the base URL for Anthropic, without a slash at the end. Start sets it.
	URL string

	http *http.Server
	done chan struct{} // closed by Close

	mu       sync.Mutex
	script   Script
	taken    map[string]int // answers taken, by the list they are in; "" is Script.Answers
	requests []Request
	changed  chan struct{} // closed and replaced with each request
	closed   bool
}

// NewServer returns a server that is not started.
func NewServer(s Script) *Server {
	return &Server{script: s.clone(), taken: map[string]int{}, changed: make(chan struct{}), done: make(chan struct{})}
}

// New starts a server that is closed when the test ends.
func New(t TB, s Script) *Server {
	t.Helper()
	srv := NewServer(s)
	if err := srv.Start(""); err != nil {
		t.Fatalf("vendorserver: %v", err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// Start listens on addr, by default on a free port of the loopback address.
func (s *Server) Start(addr string) error {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	s.URL = "http://" + l.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go s.http.Serve(l) // ends with Close
	return nil
}

// Close closes all connections and stops the server.
func (s *Server) Close() {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return
	}
	close(s.done)
	if s.http != nil {
		s.http.Close() // an error loses nothing
	}
}

// OpenAIURL is the base URL for an OpenAI client.
func (s *Server) OpenAIURL() string { return s.URL + "/v1" }

// SetScript replaces the script. The recorded requests are kept.
func (s *Server) SetScript(sc Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.taken = sc.clone(), map[string]int{}
}

// Push appends answers to those for every model.
func (s *Server) Push(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script.Answers = append(s.script.Answers, answers...)
}

// Unused is the number of answers that no request has used, without those that are given forever.
func (s *Server) Unused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	count := func(list string, answers []Answer) {
		for _, a := range answers[min(s.taken[list], len(answers)):] {
			if !a.Forever {
				n++
			}
		}
	}
	count("", s.script.Answers)
	for model, answers := range s.script.Models {
		count(model, answers)
	}
	return n
}

// Requests returns all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// WaitForRequest waits for the n-th request, counted from 1, and returns it.
func (s *Server) WaitForRequest(ctx context.Context, n int) (Request, error) {
	if n < 1 {
		return Request{}, errors.New("vendorserver: requests are counted from 1")
	}
	for {
		s.mu.Lock()
		got, changed := len(s.requests), s.changed
		if got >= n {
			r := s.requests[n-1]
			s.mu.Unlock()
			return r, nil
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-s.done:
			return Request{}, fmt.Errorf("vendorserver: closed after %d of %d requests", got, n)
		case <-ctx.Done():
			return Request{}, fmt.Errorf("vendorserver: %d of %d requests came: %w", got, n, ctx.Err())
		}
	}
}

// ServeHTTP answers one request, for use with a listener of one's own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client closed the connection while sending its request
	}
	path := r.URL.Path
	w, r, body = fromBedrock(w, r, body)
	req := parseRequest(r, body)
	req.Path = path

	s.mu.Lock()
	count := s.script.CountTokens
	s.mu.Unlock()
	if count == nil {
		count = pipeline.EstimateText
	}
	req.Tokens = count(req.Text)

	s.mu.Lock()
	req.N = len(s.requests) + 1
	s.requests = append(s.requests, req)
	close(s.changed)
	s.changed = make(chan struct{})
	answer, refusal := s.choose(req, r)
	chunk := s.script.ChunkChars
	s.mu.Unlock()

	p := protocolOf(req.Type)
	if refusal != nil {
		p.writeError(w, *refusal)
		return
	}
	s.reply(w, r, p, req, answer, chunk)
}

// choose picks the answer, or the error for a request that no vendor would answer. The caller holds the lock.
func (s *Server) choose(req Request, r *http.Request) (Answer, *Error) {
	sc := &s.script
	if sc.Key != "" && !hasKey(r, sc.Key) {
		return Answer{}, &Error{Status: http.StatusUnauthorized}
	}
	if req.Type == "" {
		return Answer{}, &Error{Status: http.StatusNotFound, Message: "Not Found: " + r.URL.Path}
	}
	if r.Method != http.MethodPost {
		return Answer{}, &Error{Status: http.StatusMethodNotAllowed, Message: "Method Not Allowed"}
	}
	if sc.MaxBodyBytes > 0 && len(req.Body) > sc.MaxBodyBytes {
		return Answer{}, &Error{Status: http.StatusRequestEntityTooLarge}
	}
	p := protocolOf(req.Type)
	if !sc.Lenient {
		o := ValidateOptions{
			Request: true, Compatible: sc.Compatible, Compact: req.Native == "compact",
			Version: r.Header.Get("Anthropic-Version"), Betas: r.Header.Get("Anthropic-Beta"),
		}
		if err := p.validate(req.Body, o); err != nil {
			return Answer{}, &Error{Status: http.StatusBadRequest, Message: err.Error()}
		}
	}
	window, ok := sc.Windows[req.Model]
	if !ok {
		window = sc.Windows[""]
	}
	if window > 0 && req.Tokens > window {
		e := p.overflow(req.Tokens, window)
		return Answer{}, &e
	}

	list, answers := "", sc.Answers
	if of, ok := sc.Models[req.Model]; ok {
		list, answers = req.Model, of
	}
	i := s.taken[list]
	var a Answer
	switch {
	case i < len(answers):
		a = answers[i]
	case sc.Default != nil:
		a, i = *sc.Default, -1
	default:
		return Answer{}, &Error{
			Status:  http.StatusInternalServerError,
			Message: fmt.Sprintf("vendorserver: the script has no answer for request %d, model %q", req.N, req.Model),
		}
	}
	// An answer that refuses the request is not used up.
	if a.ValidatePairing {
		if err := p.validate(req.Body, ValidateOptions{Compatible: true}); err != nil {
			return Answer{}, &Error{Status: http.StatusBadRequest, Message: err.Error()}
		}
	}
	if a.RejectOverTokens > 0 && req.Tokens > a.RejectOverTokens {
		e := p.overflow(req.Tokens, a.RejectOverTokens)
		return Answer{}, &e
	}
	if lim := a.RequireMaxTokensBetween; lim != nil && (req.MaxTokens < lim[0] || req.MaxTokens > lim[1]) {
		return Answer{}, &Error{
			Status: http.StatusBadRequest,
			Message: fmt.Sprintf("max_tokens: %d is not within the allowed range of %d to %d", req.MaxTokens, lim[0],
				lim[1]),
		}
	}
	if i >= 0 && !a.Forever {
		s.taken[list] = i + 1
	}
	return a, nil
}

func hasKey(r *http.Request, key string) bool {
	return r.Header.Get("X-Api-Key") == key || r.Header.Get("X-Goog-Api-Key") == key ||
		strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") == key
}

// Gate holds answers until it is opened.
type Gate struct {
	once sync.Once
	open chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Open sends all held answers and holds none from then on.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// wire is what differs between the protocols.
type wire interface {
	validate(body []byte, o ValidateOptions) error
	overflow(tokens, window int) Error
	writeError(w http.ResponseWriter, e Error)
	// whole is the body of an answer that is not streamed.
	whole(req Request, a Answer) []byte
	// events are those of a streamed answer, each a whole server-sent event.
	events(req Request, a Answer, chunkChars int) [][]byte
	// partial are the events of a stream that ends after this text.
	partial(req Request, text string, chunkChars int) [][]byte
	// errorEvent is an error inside of a stream.
	errorEvent(e Error) []byte
}

func protocolOf(kind string) wire {
	switch kind {
	case "openai":
		return openaiWire{}
	case "openai-responses":
		return responsesWire{}
	case "google":
		return googleWire{}
	}
	return anthropicWire{}
}
