package service_test

import (
	"fmt"
	"testing"

	"precis/internal/audit"
	"precis/internal/store"
)

// A summary that waited takes effect in the words of that moment: what its run wrote then is proved too, and so is
// what it was while it waited.
func TestPreparedSummariesVerify(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("BG"))
	ref := prepared(t, sys, ahead)
	verify := func(when string, id string) {
		t.Helper()
		r, err := s.Verify(t.Context(), store.RunRef{Tenant: ref.Tenant, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Checks {
			if c.State != string(audit.OK) {
				t.Errorf("%s: %s %s: %s", when, c.Name, c.State, c.Detail)
			}
		}
	}
	waits := contextOf(t, s, ref).Stats.Prepared
	if waits == nil {
		t.Fatal("nothing waits")
	}
	verify("while it waits", *waits)
	for i := range 3 {
		appendTo(t, s, ref, user(fmt.Sprintf("u%d", i+2)), assistant("as in /srv/app/config-7731.yaml"))
	}
	got := appendTo(t, s, ref, user("LAST "+abc(3500)))
	if got.Applied == nil {
		t.Fatalf("%+v", got)
	}
	verify("when it took effect", got.Applied.ID)
}
