package store_test

import (
	"errors"
	"testing"

	"precis/internal/store"
)

func TestTenantSettings(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	if got, err := s.TenantSettings(t.Context(), store.DefaultTenant); err != nil || got != nil {
		t.Errorf("%s, %v before any", got, err)
	}
	if err := s.SetTenantSettings(t.Context(), store.DefaultTenant, []byte(`{"digest": "never"}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.TenantSettings(t.Context(), store.DefaultTenant); err != nil || string(got) != `{"digest": "never"}` {
		t.Errorf("%s, %v", got, err)
	}
	if c, err := s.GetConversation(t.Context(), ref); err != nil || string(c.TenantSettings) != `{"digest": "never"}` {
		t.Errorf("the conversation says %s, %v", c.TenantSettings, err)
	}
	if err := s.SetTenantSettings(t.Context(), "nobody", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if err := s.SetTenantSettings(t.Context(), store.DefaultTenant, nil); err != nil {
		t.Fatal(err)
	}
	if c, err := s.GetConversation(t.Context(), ref); err != nil || c.TenantSettings != nil {
		t.Errorf("the conversation says %s, %v", c.TenantSettings, err)
	}
}
