package search

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"…  !?", nil},
		{"foo_bar/baz.go", []string{"foo", "bar", "baz", "go"}},
		{"HTTPServer v1.26.8", []string{"httpserver", "v1", "26", "8"}},
		{"壓縮對話ok", []string{"壓", "縮", "對", "話", "ok"}},
		{"Überprüfung, naïve", []string{"überprüfung", "naïve"}},
		{"n\u0303o", []string{"n\u0303o"}},
		{"a\xffb", []string{"a", "b"}},
		{strings.Repeat("x", 600), []string{
			strings.Repeat("x", 251), strings.Repeat("x", 251),
			strings.Repeat("x", 98),
		}},
	} {
		if diff := cmp.Diff(tt.want, words(tt.in)); diff != "" {
			t.Errorf("%.40q: %s", tt.in, diff)
		}
	}
}

func TestVector(t *testing.T) {
	t.Parallel()
	if got := Vector("a.go and B.go"); got != "'a':1 'go':2,5 'and':3 'b':4" {
		t.Error(got)
	}
	if got := strings.Count(Vector(strings.Repeat("x ", 20000)), ","); got != maxPositions-1 {
		t.Errorf("%d places of one word", got+1)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"alpha Beta", "'alpha' & 'beta'"},
		{`"go build" -test`, "'go' <-> 'build' & !'test'"},
		{"a OR b c or d", "'a' | 'b' & 'c' | 'd'"},
		{"foo_bar/baz.go", "'foo' <-> 'bar' <-> 'baz' <-> 'go'"},
		{`-"not this" that`, "!'not' <-> 'this' & 'that'"},
		{`"unclosed text`, "'unclosed' <-> 'text'"},
		{"壓縮", "'壓' <-> '縮'"},
		{"--flag", "'flag'"},
		{"- a -", "'a'"},
		{`say"hi"`, "'say' & 'hi'"},
		{"or OR or x", "'x'"},
		{`"or"`, "'or'"},
		{"-1.5 x", "!'1' <-> '5' & 'x'"},
		{"\xff a", "'a'"},
	} {
		q, err := Parse(tt.in)
		if err != nil || show(q) != tt.want {
			t.Errorf("%q: %s, want %s (%v)", tt.in, show(q), tt.want, err)
		}
	}
	for _, in := range []string{
		"", "  ", "-a", "… !", "a OR -b", `""`, strings.Repeat("a ", 40),
		strings.Repeat("a", 300), strings.Repeat("é", 600),
	} {
		if q, err := Parse(in); !errors.Is(err, ErrQuery) {
			t.Errorf("%.40q: %s, %v", in, show(q), err)
		}
	}
}

func show(q Query) string {
	var groups []string
	for _, g := range q.Groups {
		var terms []string
		for _, t := range g {
			not := ""
			if t.Not {
				not = "!"
			}
			terms = append(terms, not+t.TSQuery())
		}
		groups = append(groups, strings.Join(terms, " & "))
	}
	return strings.Join(groups, " | ")
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("before ", 40) + "the needle is here\n\nand\x1b[31m more" + strings.Repeat(" after", 60)
	for _, tt := range []struct{ query, text, want string }{
		{"b", "a b c", "a **b** c"},
		{"baz.go", "see foo_bar/baz.go:7", "see foo_bar/**baz.go**:7"},
		{"NEEDLE", long, "…efore before before before before before before before before before before the " +
			"**needle** is here and [31m more after"},
		{"對話", "請壓縮對話。", "請壓縮**對話**。"},
		{"ompact", "the Compaction", "the C**ompact**ion"},
		{"b -c", "a b c", "a **b** c"},
		{"zzz", "nothing", "nothing"},
		{`"a b" b`, "a b b", "**a b** **b**"},
	} {
		q, err := Parse(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := q.Snippet(tt.text); !strings.HasPrefix(got, tt.want) || len(got) > snippetBytes+100 {
			t.Errorf("%q in %.20q: %q", tt.query, tt.text, got)
		}
	}
}

func TestMatcher(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query  string
		pieces []string
		want   bool
	}{
		{"ompac xyz", []string{"a Compaction", "an xyzzy"}, true},
		{"ompac xyz", []string{"a Compaction"}, false},
		{"a -b", []string{"a", "b"}, false},
		{"q OR b", []string{"abc"}, true},
		{"BAR/b", []string{"foo_bar/baz"}, true},
	} {
		q, err := Parse(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		m := q.Matcher()
		for _, p := range tt.pieces {
			m.Add(p)
		}
		if m.Matches() != tt.want {
			t.Errorf("%q in %q: %t", tt.query, tt.pieces, !tt.want)
		}
	}
}

// The pieces of a text are the text, and what stands anywhere in it stands whole in one of them.
func TestPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		unit := rapid.SampledFrom([]string{"x", "word ", "a longer_word/", "é", "語", "😀", "\xff"}).Draw(rt, "unit")
		text := strings.Repeat(unit, rapid.IntRange(1, 40000/len(unit)).Draw(rt, "n"))
		pieces := Pieces(text)
		if strings.TrimSpace(text) == "" {
			return
		}
		end := 0
		whole := map[string]bool{}
		for _, w := range words(text) {
			whole[w] = true
		}
		for i, p := range pieces {
			for _, w := range words(p.Text) {
				if !whole[w] && strings.Contains(unit, "word") { // the others are one endless word
					rt.Fatalf("piece %d has the word %q, which nobody said", i, w)
				}
			}
			if text[p.Start:p.Start+len(p.Text)] != p.Text || len(p.Text) > pieceBytes+overlapBytes ||
				utf8.ValidString(text) && !utf8.ValidString(p.Text) {
				rt.Fatalf("piece %d", i)
			}
			if i > 0 && end-p.Start < overlapBytes {
				rt.Fatalf("piece %d overlaps by %d", i, end-p.Start)
			}
			end = p.Start + len(p.Text)
		}
		if end != len(text) || pieces[0].Start != 0 {
			rt.Fatalf("%d of %d bytes", end, len(text))
		}
	})
}

// Whatever is typed is either refused or a query that PostgreSQL takes and that shows its hits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a b", `"a b" -c OR d`, "foo_bar/baz.go", "壓縮", "--", "\x00", `-"`, "İstanbul ſ K"} {
		f.Add(s, "some text with foo_bar/baz.go and 壓縮 "+s)
	}
	f.Fuzz(func(t *testing.T, in, text string) {
		q, err := Parse(in)
		if err != nil {
			if !errors.Is(err, ErrQuery) {
				t.Fatal(err)
			}
			return
		}
		if strings.ContainsAny(q.Any(true), "\\\x00") || strings.Count(q.Any(true), "'")%2 != 0 ||
			!utf8.ValidString(q.Any(true)) {
			t.Fatalf("query %q", q.Any(true))
		}
		snippet, at := q.Snippet(text)
		if at < 0 || at > len(text) || strings.ContainsAny(snippet, "\n\x00") {
			t.Fatalf("snippet %q at %d", snippet, at)
		}
		if v := Vector(text); strings.ContainsAny(v, "\\\x00") || !utf8.ValidString(v) {
			t.Fatalf("vector %q", v)
		}
		m := q.Matcher()
		for _, p := range Pieces(text) {
			m.Add(p.Text)
		}
		_ = m.Matches()
	})
}
