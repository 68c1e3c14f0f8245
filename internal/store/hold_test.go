package store_test

import (
	"testing"
	"time"

	"precis/internal/store/outbox"
	"precis/internal/store/runs"
)

// A dispatcher leaves a run to its caller for the time of Hold.
func TestHeldRunIsNotDispatchedAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	held := newConversation(t, s, "held")
	appendTurns(t, s, held, 2)
	if _, _, err := s.Runs.Request(t.Context(), held, runs.Request{Kind: "manual", Hold: time.Hour}); err != nil {
		t.Fatal(err)
	}
	due := newConversation(t, s, "due")
	appendTurns(t, s, due, 2)
	run, _, err := s.Runs.Request(t.Context(), due, runs.Request{Kind: "manual", Hold: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var claimed []outbox.Dispatch
	for end := time.Now().Add(10 * time.Second); len(claimed) == 0 && time.Now().Before(end); {
		if claimed, err = s.Outbox.Claim(t.Context(), 10, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if len(claimed) != 1 || claimed[0].Run != run.Ref.ID {
		t.Errorf("claimed %+v, want run %s alone", claimed, run.Ref.ID)
	}
}
