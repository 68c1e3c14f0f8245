package store_test

import (
	"maps"
	"testing"
	"time"

	"precis/internal/store"
)

// Counting takes the same filter as listing: both agree on every one.
func TestCountRuns(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.EnsureTenant(t.Context(), "other", ""); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		ref := newConversation(t, s, id)
		talk(t, s, ref, 1)
		for _, outcome := range []store.Outcome{store.OutcomeFailed, store.OutcomeSkipped, store.OutcomeFailed} {
			r := request(t, s, ref)
			if _, err := s.FinishRun(t.Context(), r.Ref, store.RunEnd{Outcome: outcome}); err != nil {
				t.Fatal(err)
			}
		}
	}
	request(t, s, store.ConversationRef{Tenant: store.DefaultTenant, ID: "a"})

	for name, test := range map[string]struct {
		filter store.RunFilter
		want   map[store.Outcome]int
	}{
		"all": {
			store.RunFilter{},
			map[store.Outcome]int{"": 1, store.OutcomeFailed: 4, store.OutcomeSkipped: 2},
		},
		"unfinished": {store.RunFilter{Unfinished: true}, map[store.Outcome]int{"": 1}},
		"conversation": {
			store.RunFilter{Conversation: "b"},
			map[store.Outcome]int{store.OutcomeFailed: 2, store.OutcomeSkipped: 1},
		},
		"outcome": {
			store.RunFilter{Outcome: store.OutcomeFailed, Limit: 1},
			map[store.Outcome]int{store.OutcomeFailed: 4},
		},
		"since": {store.RunFilter{Since: time.Now().Add(time.Hour)}, map[store.Outcome]int{}},
	} {
		got, err := s.CountRuns(t.Context(), store.DefaultTenant, test.filter)
		if err != nil || !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
		test.filter.Limit = 0
		list, _, err := s.ListRuns(t.Context(), store.DefaultTenant, test.filter)
		if err != nil {
			t.Fatal(err)
		}
		listed := map[store.Outcome]int{}
		for _, r := range list {
			listed[r.Outcome]++
		}
		if !maps.Equal(got, listed) {
			t.Errorf("%s: counted %v, listed %v", name, got, listed)
		}
	}
	if got, err := s.CountRuns(t.Context(), "other", store.RunFilter{}); err != nil || len(got) != 0 {
		t.Errorf("another tenant: %v, %v", got, err)
	}
}
