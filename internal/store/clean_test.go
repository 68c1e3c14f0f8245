package store

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCleanJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                               `{}`,
		` `:                              `{}`,
		`null`:                           `{}`,
		`{}`:                             `{}`,
		`{"a":9007199254740993,"b":1.0}`: `{"a":9007199254740993,"b":1.0}`,
		`{"a":"x\u0000y"}`:               `{"a":"x�y"}`,
		`{"a":["\ud800",{"b\u0000":null,"c":true}]}`: `{"a":["�",{"b�":null,"c":true}]}`,
		// Six letters that look like an escape are six letters.
		`{"a":"\\u0000"}`: `{"a":"\\u0000"}`,
	} {
		if got, err := cleanJSON(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{`[]`, `"x"`, `1`, `{`, `x`} {
		if got, err := cleanJSON(json.RawMessage(in)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s became %s, %v", in, got, err)
		}
	}
}

func TestSearchText(t *testing.T) {
	t.Parallel()
	if got := searchText("a\x00b\xffc"); got != "a�b�c" {
		t.Errorf("%q", got)
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")) + rapid.String().Draw(rt, "text")
		if rapid.Bool().Draw(rt, "long") {
			in += strings.Repeat(rapid.SampledFrom([]string{"x", "é", "語", "😀"}).Draw(rt, "unit"), MaxSearchBytes/2)
		}
		got := searchText(in)
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
