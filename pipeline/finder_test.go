package pipeline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFirstPlaces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("/deep", 30)
	s := "he said she sells " + long + "/a.go and " + long + "/b.go 漢字 \xff\xfe"
	texts := []string{
		"he", "she", "sells", "ells", "missing", long + "/b.go", long + "/c.go", "/x" + long + "/a.go",
		"漢字", "\xff\xfe", s, "she", s + "x",
	}
	want := make([]int, len(texts))
	for i, text := range texts {
		want[i] = strings.Index(s, text)
	}
	if diff := cmp.Diff(want, firstPlaces(nil, texts, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the finder finds is what strings.Index finds.
func TestFirstPlacesProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.StringMatching(`[ab]{1,5}`), rapid.StringMatching(`[ab]{45,60}`),
			rapid.SampledFrom([]string{"漢", "漢字", "\xff", "\x00"}))
		texts := rapid.SliceOfN(word, 0, 12).Draw(t, "texts")
		s := strings.Join(rapid.SliceOfN(word, 0, 20).Draw(t, "s"), "")
		for i, at := range firstPlaces(nil, texts, s) {
			if want := strings.Index(s, texts[i]); at != want {
				t.Fatalf("%q: at %d, want %d in %q", texts[i], at, want, s)
			}
		}
	})
}

func TestFirstPlacesOfMany(t *testing.T) {
	t.Parallel()
	var texts []string
	for i := range 2002 {
		texts = append(texts, "text"+strings.Repeat("i", i%7)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+
			string(rune('a'+i/676)))
	}
	s := strings.Join(texts, " ")
	places := firstPlaces(nil, texts, s)
	for i, text := range texts {
		if places[i] != strings.Index(s, text) {
			t.Fatalf("%q: at %d", text, places[i])
		}
	}
	if slices.ContainsFunc(firstPlaces(nil, texts, "no such words"), func(at int) bool { return at >= 0 }) {
		t.Error("found where it is not")
	}
}
