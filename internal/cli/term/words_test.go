package term

import (
	"strings"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Count(0):                                           "0",
		Count(999):                                         "999",
		Count(1000):                                        "1,000",
		Count(-1234567):                                    "-1,234,567",
		Tokens(61204, true):                                "≈61,204",
		Tokens(61204, false):                               "61,204",
		Plural(1, "message"):                               "1 message",
		Plural(1200, "message"):                            "1,200 messages",
		Took(34 * time.Millisecond):                        "34 ms",
		Took(1250 * time.Millisecond):                      "1.2 s",
		Took(125 * time.Second):                            "2 min 05 s",
		Took(2*time.Hour + time.Minute):                    "2 h 01 min",
		Clip("abcdef", 4):                                  "abc…",
		Clip("日本語", 3):                                     "日本語",
		OneLine("a\n\tb  c\x1b[31m"):                       "a b c[31m",
		Printable("a\x07b\nc\u009bd"):                      "ab\ncd",
		strings.Join(Wrap("one two three four", 9), "|"):   "one two|three|four",
		Totals(map[string]int{"failed": 1, "applied": 12}): "12 applied, 1 failed",
		Totals(nil):                                        "none",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0", 987: "987", 1000: "1.0k", 61_204: "61.2k", 99_949: "99.9k", 99_950: "100k", 999_499: "999k",
		999_500: "1.0M", 1_440_000: "1.4M", 99_949_999: "99.9M", 123_400_000: "123M",
	} {
		if got := Short(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
