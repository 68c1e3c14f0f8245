package cli

import (
	"testing"
	"time"
)

func TestExpiryOfKeys(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"30d": now.Add(30 * 24 * time.Hour), "12h": now.Add(12 * time.Hour), "90m": now.Add(90 * time.Minute),
		"2027-01-31": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), "2026-12-01T10:00:01Z": now.Add(time.Second),
		"": {}, "0d": {}, "-1d": {}, "d": {}, "36501d": {}, "99999999999d": {}, "-1h": {}, "0s": {}, "2026-12-01": {},
		"tomorrow": {}, "1.5d": {}, "30": {},
	} {
		got, err := expiry(text, now)
		if (err == nil) != !want.IsZero() || err == nil && !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, f := range []newKeyFlags{{scope: "root"}, {scope: ""}, {scope: "read", expires: "never"}} {
		if n, err := f.key("default", now); err == nil {
			t.Errorf("%+v makes %+v", f, n)
		}
	}
	if n, err := (newKeyFlags{scope: "read,write", trusted: true}).key("t", now); err != nil || n.Scope != "admin" {
		t.Errorf("%+v, %v", n, err)
	}
}
