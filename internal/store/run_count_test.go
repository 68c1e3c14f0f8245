package store_test

import (
	"maps"
	"testing"
	"time"

	"precis"
	"precis/internal/store"
	"precis/internal/store/runs"
)

// Counting and listing agree for every filter.
func TestCountRuns(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Tenants.Ensure(t.Context(), "other", ""); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		ref := newConversation(t, s, id)
		appendTurns(t, s, ref, 1)
		for _, outcome := range []precis.Outcome{precis.OutcomeFailed, precis.OutcomeSkipped, precis.OutcomeFailed} {
			r := request(t, s, ref)
			if _, err := s.Runs.Finish(t.Context(), r.Ref, runs.End{Outcome: outcome}); err != nil {
				t.Fatal(err)
			}
		}
	}
	request(t, s, store.ConversationRef{Tenant: store.DefaultTenant, ID: "a"})

	for name, test := range map[string]struct {
		filter runs.Filter
		want   map[precis.Outcome]int
	}{
		"all": {
			runs.Filter{},
			map[precis.Outcome]int{"": 1, precis.OutcomeFailed: 4, precis.OutcomeSkipped: 2},
		},
		"unfinished": {runs.Filter{Unfinished: true}, map[precis.Outcome]int{"": 1}},
		"conversation": {
			runs.Filter{Conversation: "b"},
			map[precis.Outcome]int{precis.OutcomeFailed: 2, precis.OutcomeSkipped: 1},
		},
		"outcome": {
			runs.Filter{Outcome: precis.OutcomeFailed, Limit: 1},
			map[precis.Outcome]int{precis.OutcomeFailed: 4},
		},
		"since": {runs.Filter{Since: time.Now().Add(time.Hour)}, map[precis.Outcome]int{}},
	} {
		got, err := s.Runs.Count(t.Context(), store.DefaultTenant, test.filter)
		if err != nil || !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
		test.filter.Limit = 0
		list, _, err := s.Runs.List(t.Context(), store.DefaultTenant, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		listed := map[precis.Outcome]int{}
		for _, r := range list {
			listed[r.Outcome]++
		}
		if !maps.Equal(got, listed) {
			t.Errorf("%s: counted %v, listed %v", name, got, listed)
		}
	}
	if got, err := s.Runs.Count(t.Context(), "other", runs.Filter{}); err != nil || len(got) != 0 {
		t.Errorf("another tenant: %v, %v", got, err)
	}
}
