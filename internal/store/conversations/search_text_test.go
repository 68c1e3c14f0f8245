package conversations

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSearchText(t *testing.T) {
	t.Parallel()
	if got := SearchText("a\x00b\xffc"); got != "a�b�c" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "text")
		if rapid.Bool().Draw(rt, "long") {
			in += strings.Repeat(rapid.SampledFrom([]string{"x", "é", "語", "😀"}).Draw(rt, "unit"), MaxSearchBytes/2)
		}
		got := SearchText(in)
		if !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			rt.Fatalf("%.80q is no text", got)
		}
		if utf8.ValidString(in) && len(got) < min(len(in), MaxSearchBytes-utf8.UTFMax) {
			rt.Fatalf("%d bytes of %d are left", len(got), len(in))
		}
		if utf8.ValidString(in) && !strings.Contains(in, "\x00") && !strings.HasPrefix(in, got) {
			rt.Fatal("it is not the head of what came")
		}
	})
}
