package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sync/semaphore"
	"pgregory.net/rapid"

	"precis/internal/config"
	"precis/internal/service"
)

func newReservation(all, share int64) *reservation {
	return &reservation{
		budget: budget{all: semaphore.NewWeighted(all), share: share}, tenant: semaphore.NewWeighted(share),
	}
}

// A body is read whole, whatever its length, the declared one and the pieces in which it arrives.
func TestBodiesAreReadWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := strings.Repeat("x", rapid.IntRange(0, 5*firstPiece).Draw(t, "length"))
		declared := rapid.SampledFrom([]int64{-1, int64(len(want))}).Draw(t, "declared")
		var from io.Reader = strings.NewReader(want)
		if rapid.Bool().Draw(t, "halves") {
			from = iotest.HalfReader(from)
		}
		if rapid.Bool().Draw(t, "EOF with data") {
			from = iotest.DataErrReader(from)
		}
		r := newReservation(1<<30, 1<<30)
		got, err := r.read(context.Background(), from, declared)
		if err != nil || string(got) != want {
			t.Fatalf("%d bytes were read of %d: %v", len(got), len(want), err)
		}
		if r.held < int64(len(got)) || r.held > 2*int64(len(got))+firstPiece {
			t.Fatalf("%d bytes are reserved for %d", r.held, len(got))
		}
		r.release()
		if !r.budget.all.TryAcquire(1 << 30) {
			t.Fatal("the reservation was not released")
		}
	})
}

// A declared length alone reserves next to nothing.
func TestADeclaredLengthReservesNothing(t *testing.T) {
	t.Parallel()
	r := newReservation(1<<20, 1<<20)
	_, err := r.read(context.Background(), iotest.ErrReader(io.ErrUnexpectedEOF), 1<<40)
	if !errors.Is(err, io.ErrUnexpectedEOF) || r.held > firstPiece {
		t.Errorf("%d bytes are reserved: %v", r.held, err)
	}
}

// slow is a request whose body is kept waiting.
func (b *bench) slow(t *testing.T, key string, declared, sent int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/conversations/c/messages HTTP/1.1\r\nHost: localhost\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		key, declared, strings.Repeat(" ", sent))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// Bodies share a budget. One tenant holds half of it at most, a request without room is refused, and room comes back
// when a client disconnects.
func TestBodiesShareABudget(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	b := newBench(t, options{config: func(c *config.Config) {
		c.HTTP.MaxBodyBytes, c.HTTP.MaxTotalBodyBytes = most, 2*most
	}})
	slow, other := b.newKey("slow", false), b.newKey("other", false)
	b.with(slow).create("c", "")
	b.with(other).create("c", "")
	free := func() bool {
		ok := b.server.limits.bodies.all.TryAcquire(2 * most)
		if ok {
			b.server.limits.bodies.all.Release(2 * most)
		}
		return ok
	}
	var conns []net.Conn
	for range 2 {
		conns = append(conns, b.slow(t, slow, most-1, most/2-1))
	}
	full := func() bool {
		l := b.server.limits.reservation("slow").tenant
		ok := l.TryAcquire(firstPiece)
		if ok {
			l.Release(firstPiece)
		}
		return !ok
	}
	within(t, 10*time.Second, "the slow bodies have the tenant's half", full)

	body := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", most/4) + `"}]}`
	r := b.with(slow).send("POST", "/v1/conversations/c/messages", body)
	r.fails(http.StatusServiceUnavailable, service.CodeUnavailable)
	if r.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	b.with(other).send("POST", "/v1/conversations/c/messages", body).is(200)

	for _, conn := range conns {
		_ = conn.Close()
	}
	within(t, 10*time.Second, "all room is back", free)
	b.with(slow).send("POST", "/v1/conversations/c/messages", body).is(200)

	// Room also comes back after requests of every end: refused, too large, bad, answered.
	var group sync.WaitGroup
	for i := range 30 {
		group.Go(func() {
			bad := []string{
				body, body[:len(body)-1], strings.Repeat(" ", most+1),
				`{"messages":[` + strings.Repeat("0,", most/4) + `0]}`,
			}
			_, _ = b.with(other).try("POST", "/v1/conversations/c/messages", bad[i%len(bad)])
		})
	}
	group.Wait()
	within(t, 10*time.Second, "all room is back", free)
}

// A request that panics gives its room back.
func TestAPanicReleasesTheBudget(t *testing.T) {
	t.Parallel()
	read := make(chan int, 1)
	b := newBench(t, options{server: func(s *Server) {
		s.mux.HandleFunc("POST /panic", func(w http.ResponseWriter, r *http.Request) {
			body, _ := s.wholeBody(r, w, 1<<20)
			read <- len(body)
			panic("in a handler")
		})
	}})
	b.send("POST", "/panic", strings.Repeat("x", 1<<20)).is(http.StatusInternalServerError)
	if n := <-read; n != 1<<20 {
		t.Fatalf("%d bytes were read", n)
	}
	within(t, 10*time.Second, "all room is back", func() bool {
		return b.server.limits.bodies.all.TryAcquire(int64(b.Config.HTTP.MaxTotalBodyBytes))
	})
}
