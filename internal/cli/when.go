package cli

import (
	"strconv"
	"strings"
	"time"

	"precis/internal/cli/fail"
)

// mostDays is how many days ago a time can be: more than two centuries, and less than a date of PostgreSQL's goes back.
const mostDays = 100_000

// moment reads a time: a date, an RFC 3339 time, or how long before now. A date is midnight UTC.
func moment(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04",
		time.DateOnly,
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if number, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(number); err == nil && days >= 0 && days <= mostDays {
			return now.AddDate(0, 0, -days), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fail.Usagef(
		"%s is a date (2026-11-30), a time (2026-11-30T09:00:00Z) or how long ago (90m, 24h, 7d), not %q", flag, s)
}
