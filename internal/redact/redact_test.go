package redact

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lines reads a file of test data, without its comments.
func lines(t *testing.T, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "# Forms") {
			out = append(out, line)
		}
	}
	return out
}

// form is a text with secrets: what it is with all of them removed, and the secrets.
type form struct {
	text, want string
	secrets    []string
}

func forms(t *testing.T) []form {
	t.Helper()
	var out []form
	for _, line := range lines(t, "forms.txt") {
		line = strings.ReplaceAll(strings.ReplaceAll(line, `\\n`, "\x00"), `\n`, "\n")
		line = strings.ReplaceAll(line, "\x00", `\n`)
		var f form
		for i, piece := range strings.Split(line, "⟦") {
			secret, rest, found := strings.Cut(piece, "⟧")
			if i == 0 {
				secret, rest, found = "", piece, false
			}
			f.text += secret + rest
			if found {
				f.secrets = append(f.secrets, secret)
				f.want += Mark
			}
			f.want += rest
		}
		out = append(out, f)
	}
	return out
}

func redacted(t testing.TB, s string) string {
	t.Helper()
	got, err := Redactor{}.Text(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// leastShare is the share of the forms that has to be found, and that has to be found exactly: with all that is around
// the secret left as it is.
const leastShare = 0.95

func TestFormsAreFound(t *testing.T) {
	t.Parallel()
	all := forms(t)
	if len(all) < 150 {
		t.Fatalf("there are only %d forms", len(all))
	}
	for name, around := range map[string][2]string{
		"alone": {}, "in a text": {"before\n", "\nafter"}, "in a tag": {"<message>\n", "\n</message>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, exact := 0, 0
			for _, f := range all {
				got := redacted(t, around[0]+f.text+around[1])
				left := false
				for _, s := range f.secrets {
					left = left || strings.Contains(got, s)
				}
				if !left {
					found++
				}
				if got == around[0]+f.want+around[1] {
					exact++
				} else {
					t.Logf("%q\n became %q", f.text, got)
				}
			}
			t.Logf("%d of %d found, %d exactly", found, len(all), exact)
			if float64(found) < leastShare*float64(len(all)) || float64(exact) < leastShare*float64(len(all)) {
				t.Errorf("of %d forms %d are found, %d exactly", len(all), found, exact)
			}
		})
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	t.Parallel()
	for _, s := range lines(t, "ordinary.txt") {
		if got := redacted(t, s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestRedactingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	pieces := forms(t)
	rapid.Check(t, func(t *rapid.T) {
		var s strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "form") {
				s.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece").text)
			} else {
				s.WriteString(rapid.StringMatching(`(password[:=] ?|Bearer |sk-|https?://u:|AKIA|TOKEN=|")?`+
					`[A-Za-z0-9:=@/ ._\-"'\\\n,;]{0,60}`).Draw(t, "s"))
			}
			s.WriteString(rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between"))
		}
		once, err := Redactor{}.Text(context.Background(), s.String())
		if err != nil {
			t.Fatal(err)
		}
		if twice, _ := (Redactor{}).Text(context.Background(), once); twice != once {
			t.Fatalf("%q, then %q, then %q", s.String(), once, twice)
		}
	})
}

// A secret that is in a header once is alone elsewhere, in what the agent said and in a summary.
func TestRedactorKnowsTheSecretsOfItsSource(t *testing.T) {
	t.Parallel()
	r, err := New(t.Context(), []string{
		"Authorization: Bearer abc.def.ghi123456789\npassword=changeit1\npassword: required\n" +
			`secret=os.environ["S3_SECRET_1"]`, `{"url":"postgres://app:hunter2hunter2@db/app"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"the token abc.def.ghi123456789 works":         "the token [redacted] works",
		"user app, hunter2hunter2":                     "user app, [redacted]",
		"a password is required, not changeit1":        "a password is required, not changeit1",
		"reads os.environ[ and AKIAIOSFODNN7EXAMPLE12": "reads os.environ[ and [redacted]",
		"": "",
	} {
		if got, err := r.Text(t.Context(), in); err != nil || got != want {
			t.Errorf("%q became %q, want %q (%v)", in, got, want, err)
		}
	}
}

func TestRedactionStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Redactor{}).Text(ctx, "password=hunter2"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkText(b *testing.B) {
	line := "2026-12-01 INFO service.handler request id=42 took 12ms: see src/app/main.go:120 for the key of it.\n"
	s := strings.Repeat(line, 1<<20/len(line))
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		redacted(b, s)
	}
}

func TestJSONChangesStringsAlone(t *testing.T) {
	t.Parallel()
	in := `{ "model":"m", "n": 1.50, "system":"the password is hunter2!",
 "messages":[{"role":"user","content":"é TOKEN=abcdef0123456789 <b>"},
  {"role":"assistant","content":[{"type":"thinking","thinking":"password=hunter2","signature":"token=abcdef0123456789"},
   {"type":"tool_use","id":"token=abcdef0123456789","name":"f","input":{"password":"two words","n":3,"tokens":["a"]}}]},
  {"role":"tool","content":"{\"api_key\":\"abcdef-0123456789\"}"},
  {"role":"user","content":"again abcdef0123456789, and abcdef-0123456789"}] }`
	want := `{ "model":"m", "n": 1.50, "system":"the password is [redacted]!",
 "messages":[{"role":"user","content":"é TOKEN=[redacted] <b>"},
  {"role":"assistant","content":[{"type":"thinking","thinking":"password=hunter2","signature":"token=abcdef0123456789"},
   {"type":"tool_use","id":"token=abcdef0123456789","name":"f","input":{"password":"[redacted]","n":3,"tokens":["a"]}}]},
  {"role":"tool","content":"{\"api_key\":\"[redacted]\"}"},
  {"role":"user","content":"again [redacted], and [redacted]"}] }`
	got, err := Redactor{}.JSON(t.Context(), []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, err := (Redactor{}).JSON(t.Context(), got); err != nil || string(again) != want {
		t.Errorf("redacted twice:\n%s (%v)", again, err)
	}
	if _, err := (Redactor{}).JSON(t.Context(), []byte("{")); err == nil {
		t.Error("half a document is accepted")
	}
}
