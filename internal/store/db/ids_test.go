package db_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/internal/store/db"
)

func TestIDProblem(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"a", "é", "🙂", "❤️", "a b", "a/b", "/home/user/project", "a//b", "c%2F", "会話", "...", "a.b", ".hidden",
		`quote"'`, "<b>", `back\slash`, strings.Repeat("x", 160), "नमस्ते",
	} {
		if problem := db.IDProblem(good, 160); problem != "" {
			t.Errorf("%q %s", good, problem)
		}
	}
	for bad, want := range map[string]string{
		"":                       "is empty",
		strings.Repeat("x", 161): "161 bytes",
		"\xff":                   "UTF-8",
		"a\xc3":                  "UTF-8",
		" a":                     "space", "a ": "space", "\u00a0a": "space", "a\u3000": "space",
		"/": "slashes", "//": "slashes",
		".": "segment", "..": "segment", "a/../b": "segment", "./a": "segment", "a/.": "segment",
		"a\x00b": "U+0000", "a\nb": "U+000A", "a\tb": "U+0009", "a\x1b[31m": "U+001B", "a\x7f": "U+007F",
		"a\u0085b": "U+0085", "a\u009bb": "U+009B", "a\u00adb": "U+00AD", "a\u200bb": "U+200B",
		"a\u200db": "U+200D", "a\u202eb": "U+202E", "a\u2066b": "U+2066", "\u200ea": "U+200E", "a\u061cb": "U+061C",
		"a\ufeffb": "U+FEFF", "a\u2028b": "U+2028", "a\u2029b": "U+2029", "a\u00a0b": "U+00A0",
		"a\ue000b": "U+E000", "a\U000f0000b": "U+F0000", "a\uffffb": "U+FFFF", "a\u0378b": "U+0378",
		"a\u3164b": "U+3164", "a\u115fb": "U+115F", "a\u034fb": "U+034F", "a\U000e0041b": "U+E0041",
	} {
		if problem := db.IDProblem(bad, 160); !strings.Contains(problem, want) {
			t.Errorf("%q: %q, want it to say %q", bad, problem, want)
		}
	}
}

// What is imported gets a good id, the same for the same id and another for another one.
func TestCleanID(t *testing.T) {
	t.Parallel()
	odd := rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune("ab/. \u202e\u200d\x00é\n"))), rapid.StringN(0, 200, 400),
		rapid.SampledFrom([]string{"..", ".", "/", "", " ", "\xff", "a/../b", ". .", "\u202e.."}),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := odd.Draw(t, "a"), odd.Draw(t, "b")
		cleanA, cleanB := db.CleanID(a, 160), db.CleanID(b, 160)
		if !db.GoodID(cleanA, 160) {
			t.Fatalf("%q becomes %q, which %s", a, cleanA, db.IDProblem(cleanA, 160))
		}
		if db.GoodID(a, 160) && cleanA != a {
			t.Fatalf("%q is good and becomes %q", a, cleanA)
		}
		if a != b && cleanA == cleanB {
			t.Fatalf("%q and %q both become %q", a, b, cleanA)
		}
	})
}
