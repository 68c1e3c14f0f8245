package llm

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// retryAfter returns how long the vendor asks to wait: in retry-after-ms, in Retry-After in seconds or as a date, in a
// field of the body, or in the text of its message; 0 when it does not say.
func retryAfter(h http.Header, f *facts) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return seconds(s)
		}
		if at, err := http.ParseTime(v); err == nil {
			// By the server's own clock, if the answer has its time.
			now, err := http.ParseTime(h.Get("Date"))
			if err != nil {
				now = time.Now()
			}
			return max(0, at.Sub(now))
		}
	}
	if f.retryDelay > 0 {
		return f.retryDelay
	}
	if m := tryAgainText.FindStringSubmatch(f.lower); m != nil {
		if d, err := time.ParseDuration(strings.ReplaceAll(m[1], " ", "")); err == nil && d > 0 {
			return d
		}
	}
	return 0
}

// tryAgainText matches "try again in 1m30.5s", "retry in 35.9s", "retry after 20 seconds".
var tryAgainText = regexp.MustCompile(
	`(?:try again|retry) (?:in|after) ((?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)? ?m?s|\d+[mh]\b)`)

// seconds returns a duration of at most a day, so that a bad header does not overflow; 0 for a negative or invalid
// number.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || s <= 0 {
		return 0
	}
	return time.Duration(min(s, (24*time.Hour).Seconds()) * float64(time.Second))
}
