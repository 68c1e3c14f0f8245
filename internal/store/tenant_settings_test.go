package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"precis/internal/store"
)

func TestTenantSettings(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	if got, err := s.Tenants.Settings(t.Context(), store.DefaultTenant); err != nil || got != nil {
		t.Errorf("%s, %v before any", got, err)
	}
	set := func(tenant string, settings json.RawMessage) error {
		return s.Tenants.ChangeSettings(t.Context(), tenant,
			func(json.RawMessage) (json.RawMessage, error) { return settings, nil })
	}
	if err := set(store.DefaultTenant, []byte(`{"digest": "never"}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tenants.Settings(t.Context(), store.DefaultTenant); err != nil ||
		string(got) != `{"digest": "never"}` {
		t.Errorf("%s, %v", got, err)
	}
	if c, err := s.Conversations.Get(t.Context(), ref); err != nil ||
		string(c.TenantSettings) != `{"digest": "never"}` {
		t.Errorf("the conversation says %s, %v", c.TenantSettings, err)
	}
	if err := set("nobody", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if err := set(store.DefaultTenant, nil); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Conversations.Get(t.Context(), ref); err != nil || c.TenantSettings != nil {
		t.Errorf("the conversation says %s, %v", c.TenantSettings, err)
	}
}

// Concurrent changes do not overwrite each other.
func TestTenantSettingsChangeOneAfterAnother(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	const n = 8
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			err := s.Tenants.ChangeSettings(t.Context(), store.DefaultTenant,
				func(own json.RawMessage) (json.RawMessage, error) {
					var count struct{ Turns int }
					if len(own) > 0 {
						if err := json.Unmarshal(own, &count); err != nil {
							return nil, err
						}
					}
					return fmt.Appendf(nil, `{"turns":%d}`, count.Turns+1), nil
				})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := s.Tenants.Settings(t.Context(), store.DefaultTenant); err != nil ||
		string(got) != fmt.Sprintf(`{"turns":%d}`, n) {
		t.Errorf("%s, %v", got, err)
	}
}
