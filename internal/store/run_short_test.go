package store_test

import (
	"errors"
	"testing"

	"precis/internal/store"
	"precis/internal/store/runs"
)

func TestFindRun(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	if _, err := s.Tenants.Ensure(t.Context(), "other", ""); err != nil {
		t.Fatal(err)
	}
	r := request(t, s, newConversation(t, s, "a"))
	end := r.Ref.ID[len(r.Ref.ID)-runs.ShortID:]
	for name, id := range map[string]string{"whole": r.Ref.ID, "end": end} {
		if got, err := s.Runs.FindByEnd(t.Context(), store.DefaultTenant, id); err != nil || got != r.Ref {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := s.Runs.FindByEnd(t.Context(), "other", end); err != nil || got.ID != end {
		t.Errorf("another tenant finds %v, %v", got, err)
	}
	twin := request(t, s, newConversation(t, s, "b"))
	if _, err := raw(t, url).Exec(t.Context(), `DELETE FROM outbox WHERE run = $1`, twin.Ref.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, url).Exec(t.Context(), `UPDATE runs SET id = 'twin-' || $1 WHERE id = $2`, end,
		twin.Ref.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Runs.FindByEnd(t.Context(), store.DefaultTenant, end); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("of two: %v, %v", got, err)
	}
}
