package term

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// OneLine returns a text on one line, without anything that would move the cursor of a terminal.
func OneLine(s string) string {
	return strings.Join(strings.Fields(Printable(s)), " ")
}

// Printable removes from an untrusted text what a terminal would interpret or not show: control characters other than
// line breaks and tabs, and format characters, such as those that reverse the direction of writing. The joiners within
// emoji and scripts stay.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		const nonJoiner, joiner = '\u200c', '\u200d'
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) && r != nonJoiner && r != joiner {
			return -1
		}
		return r
	}, s)
}

// Count formats a number with separators: 61,204.
func Count(n int) string {
	s := strconv.Itoa(n)
	digits := strings.TrimPrefix(s, "-")
	var b strings.Builder
	b.WriteString(s[:len(s)-len(digits)])
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Tokens formats a number of tokens, marked if it is an estimate.
func Tokens(n int, estimated bool) string {
	if estimated {
		return "≈" + Count(n)
	}
	return Count(n)
}

// Plural returns a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// PluralWere returns a count with its noun and "was" or "were".
func PluralWere(n int, noun string) string {
	if n == 1 {
		return Plural(n, noun) + " was"
	}
	return Plural(n, noun) + " were"
}

// Took formats a duration at a readable precision.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// When formats a time in UTC, "" for the zero time.
func When(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// Clip shortens a text to a number of chars, the last of them an ellipsis.
func Clip(s string, chars int) string {
	if r := []rune(s); len(r) > chars {
		return string(r[:chars-1]) + "…"
	}
	return s
}

// Wrap breaks a text at spaces into lines of at most the given number of chars.
func Wrap(s string, chars int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > chars:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Totals returns the counts with their names: "12 applied, 1 failed".
func Totals(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, Count(counts[name])+" "+name)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
