package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table aligns rows in columns. Empty cells become a hyphen, so that every column can be cut out by a program.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range t.rows {
		for i, c := range cells {
			if c == "" {
				c = "-"
			}
			if i > 0 {
				_, _ = io.WriteString(tw, "\t")
			}
			_, _ = io.WriteString(tw, oneLine(c))
		}
		_, _ = io.WriteString(tw, "\n")
	}
	return tw.Flush()
}

// oneLine is a text on one line, without anything that would move a terminal's cursor.
func oneLine(s string) string {
	return strings.Join(strings.Fields(printable(s)), " ")
}

// printable takes out of a foreign text what a terminal would obey: control characters but for line breaks and tabs.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// count writes a number with separators: 61,204.
func count(n int) string {
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

// tokens is a count of tokens, marked where it is an estimate.
func tokens(n int, estimated bool) string {
	if estimated {
		return "≈" + count(n)
	}
	return count(n)
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// took is a duration at the precision that matters to a person.
func took(d time.Duration) string {
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

// when is a time as a person reads it, UTC.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// clip cuts a text with an ellipsis.
func clip(s string, chars int) string {
	if r := []rune(s); len(r) > chars {
		return string(r[:chars-1]) + "…"
	}
	return s
}

// wrap breaks a text into lines of at most so many chars, at blanks.
func wrap(s string, chars int) []string {
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

// totals lists counts by name: "12 applied, 1 failed".
func totals(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, count(counts[name])+" "+name)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
