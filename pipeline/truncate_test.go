package pipeline

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s     string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abc", 2, "ab"},
		{"abc", -1, ""},
		{strings.Repeat("a", 100), 40, strings.Repeat("a", 15) + "[... truncated, 85 chars]"},
		{strings.Repeat("漢", 1000), 50, strings.Repeat("漢", 24) + "[... truncated, 976 chars]"},
		{strings.Repeat("😀", 30), 5, "😀😀😀😀😀"},
	} {
		if got := Truncate(tt.s, tt.limit); got != tt.want {
			t.Errorf("Truncate(%.10q…, %d) = %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}

func TestCompactHeadAndTail(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("h", 500) + strings.Repeat("t", 500)
	want := strings.Repeat("h", 40) + "…[921 chars omitted]…" + strings.Repeat("t", 39)
	if got := CompactHeadAndTail(text, 100); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := CompactHeadAndTail(text, 7); got != "hhhhhhh" {
		t.Errorf("got %q", got)
	}
	if got := CompactHeadAndTail(text, 1000); got != text {
		t.Error("a text that fits was changed")
	}
}

var cutMarker = regexp.MustCompile(`\[\.\.\. truncated, (\d+) chars\]$|…\[(\d+) chars omitted\]…`)

// Both cuts stay within the limit, keep whole code points of the text's own ends, and name exactly what went.
func TestCutsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := genText().Draw(t, "s")
		total := utf8.RuneCountInString(s)
		limit := rapid.IntRange(-2, total+3).Draw(t, "limit")
		runes := codePoints(s)
		for name, cut := range map[string]func(string, int) string{
			"Truncate":           Truncate,
			"CompactHeadAndTail": CompactHeadAndTail,
		} {
			got := cut(s, limit)
			if limit >= total {
				if got != s {
					t.Fatalf("%s changed a text that fits", name)
				}
				continue
			}
			if n := utf8.RuneCountInString(got); n > max(limit, 0) {
				t.Fatalf("%s: %d chars with a limit of %d", name, n, limit)
			}
			kept := -1
			for _, m := range overlapping(cutMarker, got) { // the text itself may hold what looks like one
				digits := got[max(m[2], m[4]):max(m[3], m[5])]
				cut, _ := strconv.Atoi(digits)
				head, tail := got[:m[0]], got[m[1]:]
				if Chars(head)+Chars(tail)+cut == total && strings.Join(runes[:Chars(head)], "") == head &&
					strings.Join(runes[total-Chars(tail):], "") == tail {
					kept = Chars(head) + Chars(tail)
				}
			}
			if kept < 0 { // no room for a marker: the start alone
				if want := strings.Join(runes[:max(limit, 0)], ""); got != want {
					t.Fatalf("%s(%q, %d) = %q", name, s, limit, got)
				}
				if limit > 40 {
					t.Fatalf("%s(%q, %d) = %q has no marker", name, s, limit, got)
				}
				continue
			}
			if Chars(got) < limit-3 { // the number in the marker may take fewer digits than there was room for
				t.Fatalf("%s used %d of %d", name, Chars(got), limit)
			}
		}
	})
}

// overlapping finds all matches, also those that begin inside of another: what a text holds may share a char with
// the marker behind it.
func overlapping(re *regexp.Regexp, s string) [][]int {
	var all [][]int
	for from := 0; from < len(s); {
		m := re.FindStringSubmatchIndex(s[from:])
		if m == nil {
			break
		}
		next := from + m[0] + 1
		for i := range m {
			if m[i] >= 0 {
				m[i] += from
			}
		}
		all = append(all, m)
		from = next
	}
	return all
}

// The marker of a cut may follow what looks like one in the text and share its first char.
func TestCutBehindWhatLooksLikeAMarker(t *testing.T) {
	t.Parallel()
	s := strings.Repeat("…[5 chars omitted]…", 40)
	for limit := 40; limit < 400; limit++ {
		got := CompactHeadAndTail(s, limit)
		n := Chars(got)
		if n > limit || n < limit-1 {
			t.Fatalf("%d chars with a limit of %d", n, limit)
		}
		exact := false
		for _, m := range overlapping(cutMarker, got) {
			cut, _ := strconv.Atoi(got[m[4]:m[5]])
			exact = exact || Chars(got[:m[0]])+Chars(got[m[1]:])+cut == Chars(s) && strings.HasPrefix(s, got[:m[0]]) &&
				strings.HasSuffix(s, got[m[1]:])
		}
		if !exact {
			t.Fatalf("no marker of %q names what went", got)
		}
	}
}

// codePoints divides s into its code points; an invalid byte is one.
func codePoints(s string) []string {
	var out []string
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func BenchmarkTruncate(b *testing.B) {
	for _, kind := range []struct{ name, unit string }{{"ascii", "abcd efg "}, {"han", "漢字かな"}} {
		text := strings.Repeat(kind.unit, 1<<20/len(kind.unit))
		b.Run(kind.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				CompactHeadAndTail(text, 1000)
			}
		})
	}
}
