package store

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// cursor is a place in a list that is ordered by time and id, newest first.
type cursor struct {
	at *time.Time
	id string
}

func makeCursor(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + id))
}

func parseCursor(s string) (cursor, error) {
	if s == "" {
		return cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return cursor{}, invalidf("the cursor is not one of ours")
	}
	at, id, ok := strings.Cut(string(raw), " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	if !ok || err != nil || !goodID(id, 1024) {
		return cursor{}, invalidf("the cursor is not one of ours")
	}
	return cursor{at: &t, id: id}, nil
}

// clampLimit gives a page size from 1 to 1000; 0 or less: 100.
func clampLimit(n int) int {
	switch {
	case n <= 0:
		return 100
	case n > 1000:
		return 1000
	}
	return n
}

func (c cursor) String() string { return fmt.Sprintf("%v %s", c.at, c.id) }
