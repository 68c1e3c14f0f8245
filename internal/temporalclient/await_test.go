package temporalclient_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"precis/internal/config"
	"precis/internal/temporalclient"
	"precis/internal/testkit/stacktest"
)

// log is a log in memory that tells of its first line.
type log struct {
	mu    sync.Mutex
	b     bytes.Buffer
	first chan struct{}
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() == 0 {
		close(l.first)
	}
	return l.b.Write(p)
}

// Await waits as long as nothing listens at Temporal's address, says so, and returns when Temporal is there.
func TestAwait(t *testing.T) {
	t.Parallel()
	address, namespace := stacktest.Temporal(t)
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := config.Defaults().Temporal
	c.Address, c.Namespace = away.Addr().String(), namespace
	_ = away.Close()
	written := &log{first: make(chan struct{})}
	logger := slog.New(slog.NewTextHandler(written, nil))
	client, err := temporalclient.Lazy(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ended := make(chan error, 1)
	go func() { ended <- temporalclient.Await(t.Context(), client, c, logger) }()
	select {
	case <-written.first:
	case err := <-ended:
		t.Fatalf("it returned: %v", err)
	}

	back, err := net.Listen("tcp", c.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = back.Close() })
	go func() {
		for {
			near, err := back.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		}
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not find Temporal")
	}
	if text := written.b.String(); !strings.Contains(text, "not reachable") || !strings.Contains(text, "answers") {
		t.Errorf("logged:\n%s", text)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := temporalclient.Await(stopped, client, c, logger); err != nil {
		t.Errorf("after the end of the context: %v", err)
	}
}
