package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/schema"
	"precis/internal/testkit/stacktest"
	"precis/pipeline"
)

// A caller does not notice that a database connection is killed, and nothing is written twice.
func TestRetryOverKilledConnections(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	db := raw(t, url)
	var schema string
	if err := db.QueryRow(t.Context(), `SELECT current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	mine, err := store.Open(t.Context(), url+"&application_name="+schema,
		store.Options{MaxConns: 4, RetryFor: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mine.Close)

	// Kill one connection for every few appends, during other appends.
	var killed atomic.Int64
	progress := make(chan struct{}, 1)
	var killer sync.WaitGroup
	killer.Go(func() {
		for range progress {
			tag, err := db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE `+
				`application_name = $1 ORDER BY random() LIMIT 1`, schema)
			if err != nil {
				t.Error(err)
				return
			}
			killed.Add(tag.RowsAffected())
		}
	})
	var wg sync.WaitGroup
	var unsure atomic.Int64
	const writers, each = 4, 40
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				m := message(pipeline.RoleUser, fmt.Sprint(w, "/", i))
				m.ClientID = fmt.Sprint(w, "/", i)
				for {
					_, err := mine.Changes.Append(t.Context(), ref, []conversations.NewMessage{m},
						changes.AppendOptions{})
					if err == nil {
						if i%3 == 0 {
							progress <- struct{}{}
						}
						break
					}
					// The caller only gets an error if the answer to a commit was lost. With its client id, it can
					// repeat the append.
					if !store.Unavailable(err) || !strings.Contains(err.Error(), "commit") {
						t.Error(err)
						return
					}
					unsure.Add(1)
				}
			}
		})
	}
	wg.Wait()
	close(progress)
	killer.Wait()
	t.Logf("%d connections killed, %d commits without an answer", killed.Load(), unsure.Load())
	if killed.Load() == 0 {
		t.Error("nothing was killed")
	}
	if _, err := s.Evidence.CheckChain(t.Context(), ref, writers*each); err != nil {
		t.Error(err)
	}
	if c, err := s.Conversations.Get(t.Context(), ref); err != nil || c.HeadSeq != writers*each {
		t.Errorf("head %d, %v", c.HeadSeq, err)
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	_, good := newStore(t)

	t.Run("ConnectionRefused", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		url := "postgres://nobody@" + address + "/x?sslmode=disable"
		if _, err := store.Open(t.Context(), url,
			store.Options{RetryFor: 50 * time.Millisecond}); !store.Unavailable(err) {
			t.Errorf("open: error %v", err)
		}
		if err := schema.Migrate(t.Context(), url, nil); !store.Unavailable(err) {
			t.Errorf("migrate: error %v", err)
		}
		if _, err := schema.Read(t.Context(), url); !store.Unavailable(err) {
			t.Errorf("version: error %v", err)
		}
	})
	t.Run("ConnectionClosed", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		var calls atomic.Int32
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				calls.Add(1)
				_ = c.Close()
			}
		}()
		_, err = store.Open(t.Context(), "postgres://nobody@"+l.Addr().String()+"/x?sslmode=disable",
			store.Options{RetryFor: 200 * time.Millisecond})
		if !store.Unavailable(err) || calls.Load() < 2 {
			t.Errorf("error %v after %d calls", err, calls.Load())
		}
	})
	t.Run("NoSuchDatabase", func(t *testing.T) {
		t.Parallel()
		// The server answers and will always refuse: waiting does not help.
		u, err := url.Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/there_is_no_such_database"
		began := time.Now()
		_, err = store.Open(t.Context(), u.String(), store.Options{RetryFor: time.Minute})
		if err == nil || store.Unavailable(err) || time.Since(began) > 30*time.Second {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
	})
}

// Unavailable is false for a cancelled call, an expired deadline and a thing that does not exist.
func TestAvailable(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	_, notFound := s.Conversations.Get(t.Context(), store.ConversationRef{Tenant: "default", ID: "nope"})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, cancelledErr := s.Conversations.Get(cancelled, store.ConversationRef{Tenant: "default", ID: "nope"})
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, tooLate := s.Conversations.Get(late, store.ConversationRef{Tenant: "default", ID: "nope"})
	for _, err := range []error{nil, notFound, cancelledErr, tooLate, errors.New("other")} {
		if store.Unavailable(err) {
			t.Errorf("unavailable: %v", err)
		}
	}
	if !errors.Is(notFound, store.ErrNotFound) || !errors.Is(cancelledErr, context.Canceled) ||
		!errors.Is(tooLate, context.DeadlineExceeded) {
		t.Errorf("%v, %v, %v", notFound, cancelledErr, tooLate)
	}
}

// A column's type changes while connections are open: their cached plans are no longer valid and are made again.
func TestRetryOverChangedPlan(t *testing.T) {
	t.Parallel()
	url := stacktest.DatabaseURL(t)
	if err := schema.Migrate(t.Context(), url, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range 2 {
		if _, err := s.Tenants.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := raw(t, url).Exec(t.Context(), `ALTER TABLE tenants ALTER COLUMN name TYPE varchar(100)`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tenants.List(t.Context()); err != nil {
		t.Error(err)
	}
}
