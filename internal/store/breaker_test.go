package store_test

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/modelcalls"
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

const cooldown = time.Hour

// blocked reports whether a tenant's runs must not ask the model m of the vendor v under a credential.
func blocked(t *testing.T, s *store.Store, key breakers.Key) bool {
	t.Helper()
	b, err := s.Breakers.Blocked(t.Context(), key, cooldown)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fail counts n failed calls, each with two retries.
func fail(t *testing.T, s *store.Store, key breakers.Key, kind pipeline.ErrorKind, n int) {
	t.Helper()
	ref := newConversation(t, s, rand.Text())
	run := request(t, s, ref)
	for call := 1; call <= n; call++ {
		for attempt := 1; attempt <= 3; attempt++ {
			c := modelcalls.Call{Call: call, Attempt: attempt, Vendor: "v", Model: "m"}
			if _, err := s.ModelCalls.Finish(t.Context(), run.Ref, c, modelcalls.Result{ErrorKind: kind}); err != nil {
				t.Fatal(err)
			}
			if err := s.Breakers.Failed(t.Context(), key, breakers.Call{Run: run.Ref, Call: call, Attempt: attempt},
				kind, "no", 3); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A tenant's failures open its own breaker, of one model under one credential, by calls and not by retries.
func TestBreakerOfAModelIsATenantsOwn(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	own := breakers.OfModel("a", "v", "m", "1")
	fail(t, s, own, pipeline.ServerError, 2)
	if blocked(t, s, own) {
		t.Error("two calls have opened it, by their retries")
	}
	fail(t, s, own, pipeline.ServerError, 1)
	if !blocked(t, s, own) {
		t.Error("three calls have not opened it")
	}
	for name, other := range map[string]breakers.Key{
		"another tenant": breakers.OfModel("b", "v", "m", "1"), "another model": breakers.OfModel("a", "v", "n", "1"),
		"another vendor":     breakers.OfModel("a", "w", "m", "1"),
		"another credential": breakers.OfModel("a", "v", "m", "2"),
	} {
		if blocked(t, s, other) {
			t.Errorf("%s is blocked too", name)
		}
	}
	for _, kind := range []pipeline.ErrorKind{
		pipeline.BadRequest, pipeline.ModelNotFound, pipeline.Refused, pipeline.RateLimited, pipeline.Overloaded,
		pipeline.InputTokensExceeded, pipeline.OutputTooLong,
	} {
		key := breakers.OfModel("a", "v", string(kind), "1")
		if fail(t, s, key, kind, 5); blocked(t, s, key) {
			t.Errorf("failures of kind %s have opened it", kind)
		}
	}
}

// A model is down for everybody only when two other tenants cannot reach it, and nobody can.
func TestBreakerOfAModelThatIsDown(t *testing.T) {
	t.Parallel()
	for kind, down := range map[pipeline.ErrorKind]bool{
		pipeline.Auth: true, pipeline.Quota: true, pipeline.ServerError: true, pipeline.Network: true,
		pipeline.Timeout: false,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s, url := newStore(t)
			a, b, c := breakers.OfModel("a", "v", "m", "1"), breakers.OfModel("b", "v", "m", "1"),
				breakers.OfModel("c", "v", "m", "1")
			fail(t, s, a, kind, 30)
			if blocked(t, s, b) || blocked(t, s, c) {
				t.Error("the failures of one tenant block another")
			}
			fail(t, s, b, kind, 3)
			if got := blocked(t, s, c); got != down {
				t.Errorf("blocked for the third tenant: %t", got)
			}
			// An answer shows that the vendor is there: what the others fail by is their own.
			if err := s.Breakers.Answered(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			fail(t, s, a, kind, 3)
			if blocked(t, s, c) || !blocked(t, s, a) || !blocked(t, s, b) {
				t.Error("an answer of the third tenant changes what counts for it, and for no other")
			}
			if err := s.Breakers.Answered(t.Context(), a); err != nil || blocked(t, s, a) {
				t.Errorf("open after an answer: %v", err)
			}
			// After the cooldown they try again.
			if _, err := raw(t, url).Exec(t.Context(),
				`UPDATE breakers SET opened_at = opened_at - interval '2 hours'`); err != nil {
				t.Fatal(err)
			}
			if blocked(t, s, b) {
				t.Error("blocked after the cooldown")
			}
		})
	}
}
