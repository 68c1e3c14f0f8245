package pipeline

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Chars counts the Unicode code points of s. A byte that is not valid UTF-8 counts as one.
func Chars(s string) int { return utf8.RuneCountInString(s) }

// Truncate keeps the start of s and ends it with "[... truncated, N chars]", N being how many chars went, so
// that the whole is at most limit chars. A text that fits comes back as it is. Where not even the marker fits,
// it is the first limit chars alone.
func Truncate(s string, limit int) string {
	total := Chars(s)
	if total <= limit {
		return s
	}
	return truncateCounted(s, total, limit)
}

// truncateCounted is Truncate for a text over limit whose chars are counted already.
func truncateCounted(s string, total, limit int) string {
	keep, marker := cutFor(total, limit, truncatedMarker)
	return s[:byteOffset(s, total, keep)] + marker
}

// CompactHeadAndTail keeps both ends of one oversized value, the larger half in front, with
// "…[N chars omitted]…" for the N chars between them, so that the whole is at most limit chars. It is for
// command output and the like, where the end says how it went. Where the marker does not fit, it is the
// first limit chars alone.
func CompactHeadAndTail(s string, limit int) string {
	total := Chars(s)
	if total <= limit {
		return s
	}
	return headAndTailCounted(s, total, limit)
}

// headAndTailCounted is CompactHeadAndTail for a text over limit whose chars are counted already.
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

// cutFor says how many of total chars can stay beside the marker that names the rest, within limit, and
// gives that marker. The marker is empty when it has no room.
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

// byteOffset is where the char with index n begins in s, which has total chars.
func byteOffset(s string, total, n int) int {
	switch {
	case n <= 0:
		return 0
	case n >= total:
		return len(s)
	case total == len(s): // one byte a char
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
