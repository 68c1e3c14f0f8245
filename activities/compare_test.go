package activities

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFirstDifferenceOfResults(t *testing.T) {
	t.Parallel()
	type difference struct{ Where, Recorded, Replayed string }
	for _, tt := range []struct {
		name, was, is string
		want          difference
	}{
		{"equal", `{"tail":3,"nothing":""}`, `{"nothing":"","tail":3}`, difference{}},
		{"a number", `{"tail":3}`, `{"tail":4}`, difference{".tail", "3", "4"}},
		{
			"a large number is not rounded", `{"n":9007199254740993}`, `{"n":9007199254740992}`,
			difference{".n", "9007199254740993", "9007199254740992"},
		},
		{
			"inside an object", `{"decision":{"used":1,"limit":2}}`, `{"decision":{"used":1,"limit":3}}`,
			difference{".decision.limit", "2", "3"},
		},
		{"a field that is missing", `{"tail":3}`, `{}`, difference{".tail", "3", "nothing"}},
		{"where a run executed is not compared", `{"model_queue":"a","plan":"b"}`, `{"model_queue":"c"}`, difference{}},
		{
			"the same name further down is compared", `{"decision":{"plan":"a"}}`, `{"decision":{"plan":"b"}}`,
			difference{".decision.plan", `"a"`, `"b"`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var was, is any
			if err := unmarshalNumbers([]byte(tt.was), &was); err != nil {
				t.Fatal(err)
			}
			if err := unmarshalNumbers([]byte(tt.is), &is); err != nil {
				t.Fatal(err)
			}
			got := difference{}
			if where, old, now := firstDifference("", was, is); old != now {
				got = difference{where, old, now}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the first difference differs (-want +got):\n%s", diff)
			}
		})
	}
}

// The excerpts of a difference show the place where two texts part, and are valid UTF-8 whatever the texts are.
func TestExcerptsShowWhereTextsPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		common := rapid.StringOfN(rapid.RuneFrom([]rune("aé漢😀\n")), 0, 300, -1).Draw(t, "common")
		was := common + rapid.StringN(0, 200, -1).Draw(t, "was")
		is := common + rapid.StringN(0, 200, -1).Draw(t, "is")
		at, line, old, now := part([]byte(was), []byte(is))
		if at > len(was) || at > len(is) || was[:at] != is[:at] {
			t.Fatalf("the texts part before byte %d", at)
		}
		if want := 1 + strings.Count(was[:at], "\n"); line != want {
			t.Fatalf("byte %d is in line %d, not %d", at, want, line)
		}
		for _, excerpt := range []string{old, now} {
			if !utf8.ValidString(excerpt) {
				t.Fatalf("the excerpt %q is not valid UTF-8", excerpt)
			}
			if n := len(excerpt); n > excerptChars+2*utf8.UTFMax+2*len("…") {
				t.Fatalf("an excerpt has %d bytes", n)
			}
		}
	})
}

func TestFailureOfARecordedCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		record record
		want   string
	}{
		{"none when it left a result", record{kept: &kept{Result: json.RawMessage(`{}`)}}, ""},
		{"none when the original did not make the call", record{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if kind, _ := tt.record.failure(); string(kind) != tt.want {
				t.Errorf("got kind %q, want %q", kind, tt.want)
			}
		})
	}
}
