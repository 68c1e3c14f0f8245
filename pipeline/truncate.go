package pipeline

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Chars returns the number of Unicode code points of s. A byte that is not valid UTF-8 counts as one.
func Chars(s string) int { return utf8.RuneCountInString(s) }

// Truncate keeps the start of s and ends it with "[... truncated, N chars]", where N is how many chars were cut, so
// that the result has at most limit chars. A text that fits is returned unchanged. If not even the marker fits, the
// result is the first limit chars alone.
func Truncate(s string, limit int) string {
	total := Chars(s)
	if total <= limit {
		return s
	}
	return truncateCounted(s, total, limit)
}

// truncateCounted is Truncate for a text over limit whose chars are already counted.
func truncateCounted(s string, total, limit int) string {
	keep, marker := cutFor(total, limit, truncatedMarker)
	return s[:byteOffset(s, total, keep)] + marker
}

// CompactHeadAndTail keeps both ends of one oversized value, the larger half in front, with "…[N chars omitted]…" for
// the N chars between them, so that the result has at most limit chars. It is for command output and similar texts,
// where the end shows the outcome. If the marker does not fit, the result is the first limit chars alone.
func CompactHeadAndTail(s string, limit int) string {
	total := Chars(s)
	if total <= limit {
		return s
	}
	return headAndTailCounted(s, total, limit)
}

// headAndTailCounted is CompactHeadAndTail for a text over limit whose chars are already counted.
func headAndTailCounted(s string, total, limit int) string {
	keep, marker := cutFor(total, limit, omittedMarker)
	tail := keep / 2
	if marker == "" {
		tail = 0
	}
	return s[:byteOffset(s, total, keep-tail)] + marker + s[byteOffset(s, total, total-tail):]
}

func truncatedMarker(n int) string { return "[... truncated, " + strconv.Itoa(n) + " chars]" }

func omittedMarker(n int) string { return fmt.Sprintf("…[%d chars omitted]…", n) }

// cutFor returns how many of total chars can stay beside the marker that names the rest, within limit, and that marker.
// The marker is empty if it has no room.
func cutFor(total, limit int, marker func(int) string) (keep int, text string) {
	if limit <= 0 {
		return 0, ""
	}
	// The number that the marker names depends on the marker's own length. Starting from the longest one,
	// it settles in two steps, one digit short of the limit at worst.
	keep = limit - Chars(marker(total))
	if keep < 0 {
		return limit, ""
	}
	text = marker(total - keep)
	if more := limit - Chars(text); more > keep && Chars(marker(total-more)) == Chars(text) {
		keep, text = more, marker(total-more)
	}
	return keep, text
}

// byteOffset returns the position of the char with index n in s, which has total chars.
func byteOffset(s string, total, n int) int {
	switch {
	case n <= 0:
		return 0
	case n >= total:
		return len(s)
	case total == len(s): // one byte per char
		return n
	}
	// Walk from the nearer end: a cut is seldom in the middle.
	if n <= total/2 {
		at := 0
		for ; n > 0; n-- {
			at += runeLen(s[at:])
		}
		return at
	}
	at := len(s)
	for back := total - n; back > 0; back-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return at
}

func runeLen(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}
