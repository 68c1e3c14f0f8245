package store_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/pipeline"
)

func getBreaker(t *testing.T, s *store.Store, key breakers.Key) breakers.Breaker {
	t.Helper()
	b, err := s.Breakers.Get(t.Context(), key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func passBreaker(t *testing.T, s *store.Store, key breakers.Key) bool {
	t.Helper()
	ok, err := s.Breakers.Pass(t.Context(), key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// passers returns how many of eight callers at once a breaker lets through.
func passers(t *testing.T, s *store.Store, key breakers.Key) int64 {
	t.Helper()
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ok, err := s.Breakers.Pass(t.Context(), key, time.Hour)
			if err != nil {
				t.Error(err)
			}
			if ok {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	return passed.Load()
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	key := breakers.OfConversation(store.ConversationRef{Tenant: "default", ID: "c"})
	if b := getBreaker(t, s, key); b != (breakers.Breaker{}) || !passBreaker(t, s, key) {
		t.Errorf("%+v before any failure", b)
	}
	for i := 1; i <= 3; i++ {
		b, err := s.Breakers.Trip(t.Context(), key, pipeline.ServerError, "500\x00", 3)
		if err != nil || b.Failures != i || b.Open() != (i == 3) {
			t.Errorf("failure %d: %+v, %v", i, b, err)
		}
	}
	if b := getBreaker(t, s, key); !b.Blocking || b.ErrorKind != pipeline.ServerError || b.Reason != "500�" ||
		passBreaker(t, s, key) {
		t.Errorf("%+v after three", b)
	}
	other := breakers.OfConversation(store.ConversationRef{Tenant: "other", ID: "c"})
	if getBreaker(t, s, other).Open() || !passBreaker(t, s, other) {
		t.Error("another tenant's conversation of the same id is blocked too")
	}

	// After the cooldown, one caller of many is let through.
	if _, err := raw(t, url).Exec(t.Context(),
		`UPDATE breakers SET opened_at = opened_at - interval '2 hours'`); err != nil {
		t.Fatal(err)
	}
	if b := getBreaker(t, s, key); b.Blocking || !b.Open() {
		t.Errorf("%+v after the cooldown", b)
	}
	passed := passers(t, s, key)
	if passed != 1 || !getBreaker(t, s, key).Blocking {
		t.Errorf("%d passed", passed)
	}
	// Its failure starts the cooldown again. A success resets the breaker.
	if b, err := s.Breakers.Trip(t.Context(), key, pipeline.ServerError, "", 3); err != nil || !b.Open() ||
		passBreaker(t, s, key) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := s.Breakers.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if b := getBreaker(t, s, key); b != (breakers.Breaker{}) || !passBreaker(t, s, key) {
		t.Errorf("%+v after a success", b)
	}
}

func TestVendorBreaker(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	vendor := breakers.OfVendor("anthropic")
	if b, err := s.Breakers.Trip(t.Context(), vendor, pipeline.Auth, "bad key", 3); err != nil || !b.Open() ||
		passBreaker(t, s, vendor) {
		t.Errorf("%+v, %v: a bad key must open the breaker at once", b, err)
	}
}
