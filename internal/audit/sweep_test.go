package audit_test

import (
	"context"
	"errors"
	"testing"

	"precis/internal/audit"
	storeevidence "precis/internal/store/evidence"
	"precis/internal/testkit/scenario"
)

// An interrupted sweep continues where it stopped, and finds tampering.
func TestSweepGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	for range 4 {
		compacted(t, s)
	}
	db := database(t, s)
	if _, err := db.Exec(t.Context(),
		`UPDATE runs SET tokens_after = 1 WHERE cid = (SELECT min(cid) FROM runs)`); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	w := audit.Sweep{Progress: func(done audit.Swept) {
		if done.Conversations == 2 {
			interrupt()
		}
	}}
	if _, err := audit.VerifyAll(ctx, s.Store, w); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	w.Progress = nil
	got, err := audit.VerifyAll(t.Context(), s.Store, w)
	if err != nil {
		t.Fatal(err)
	}
	if got.Total != 4 || got.Conversations != 4 || got.Runs != 8 || got.Resumed != 2 || got.Failed != 1 ||
		len(got.Failures) != 1 {
		t.Errorf("%+v", got)
	}
	if f := got.Failures[0]; f.Check != audit.CheckRecords || f.State != audit.Tampered {
		t.Errorf("%+v", f)
	}
	// After a finished sweep, the next one starts from the beginning. A sweep can be limited to a conversation.
	one, err := audit.VerifyAll(t.Context(), s.Store,
		audit.Sweep{Filter: storeevidence.Filter{Tenant: scenario.Tenant, Conversation: "none"}})
	if err != nil || one.Total != 0 || one.Resumed != 0 {
		t.Errorf("%+v %v", one, err)
	}
}
