package db

import (
	"encoding/base64"
	"strings"
	"time"
)

// Cursor is a place in a list that is ordered by time and id, newest first.
type Cursor struct {
	At *time.Time
	ID string
}

// MakeCursor returns the cursor of the page after the row with the time and id.
func MakeCursor(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + id))
}

// ParseCursor parses a cursor that MakeCursor returned; "" is the zero Cursor, for the first page.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Cursor{}, Invalidf("the cursor is not one that a list returned: leave it out for the first page")
	}
	at, id, ok := strings.Cut(string(raw), " ")
	t, err := time.Parse(time.RFC3339Nano, at)
	if !ok || err != nil || !PossibleID(id, 1024) {
		return Cursor{}, Invalidf("the cursor is not one that a list returned: leave it out for the first page")
	}
	return Cursor{At: &t, ID: id}, nil
}

// ClampLimit returns a page size from 1 to 1000; 100 if n is 0 or less.
func ClampLimit(n int) int {
	switch {
	case n <= 0:
		return 100
	case n > 1000:
		return 1000
	}
	return n
}
