package pipeline

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Credentials in tool output were copied into the summary and injected again each round.
func TestRedactTakesCredentialsOut(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"aws":        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE1",
		"bearer":     "Authorization: Bearer abc.DEF-123_ghi",
		"quoted":     `{"Authorization": "Bearer abc.DEF-123_ghi"}`,
		"github":     "remote: ghp_0123456789abcdefghijklmnopqrstuvwxyz",
		"anthropic":  "key sk-ant-api03-0123456789abcdef here",
		"jwt":        "token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
		"url":        "postgres://app:hunter2hunter2@db.internal/app",
		"password":   `password: "correct-horse"`,
		"env":        "STRIPE_API_KEY=whatever-it-is-9",
		"privatekey": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----",
	}
	hidden := []string{
		"AKIAIOSFODNN7EXAMPLE1", "abc.DEF-123_ghi", "ghp_0123456789", "sk-ant-api03-0123456789abcdef", "c2lnbmF0dXJl",
		"hunter2", "correct-horse", "whatever-it-is-9", "MIIEow",
	}
	for name, text := range secrets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Redact("before " + text + " after")
			for _, h := range hidden {
				if strings.Contains(text, h) && strings.Contains(got, h) {
					t.Errorf("%q is still in %q", h, got)
				}
			}
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("the text around it was removed too: %q", got)
			}
		})
	}
}

func TestRedactLeavesOrdinaryTextAlone(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "the password must be changed", "see https://example.org:8080/path", "commit 9f2c1e0", "max_tokens: 8192",
		"skip-level", "the bearer of this letter", "AKIA is a prefix",
	} {
		if got := Redact(s); got != s {
			t.Errorf("Redact(%q) = %q", s, got)
		}
	}
}

func TestRedactIsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`(password[:=] ?|Bearer |sk-|https?://u:|AKIA)?[A-Za-z0-9:=@/ ._\-]{0,60}`).Draw(t,
			"s")
		once := Redact(s)
		if twice := Redact(once); twice != once {
			t.Fatalf("%q, then %q", once, twice)
		}
	})
}

// A secret that is in a header once is alone elsewhere, in what the agent said and in a summary.
func TestRedactorKnowsTheSecretsOfItsSource(t *testing.T) {
	t.Parallel()
	r := NewRedactor([]Message{
		resultMessage("a", "Authorization: Bearer abc.def.ghi123456789\npassword=changeit1\npassword: "+
			"required\nsecret=os.environ[\"S3_SECRET_1\"]"),
		callMessage("", "b", "connect", `{"url":"postgres://app:hunter2hunter2@db/app"}`),
	})
	for in, want := range map[string]string{
		"the token is abc.def.ghi123456789, it works":  "the token is [redacted], it works",
		"user app, hunter2hunter2":                     "user app, [redacted]",
		"a password is required, not changeit1":        "a password is required, not changeit1",
		"reads os.environ[ and AKIAIOSFODNN7EXAMPLE12": "reads os.environ[ and [redacted]",
		"": "",
	} {
		if got := r.Redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := (Redactor{}).Redact("Bearer abcdefghijklmnop1"); got != "Bearer [redacted]" {
		t.Errorf("the zero value gives %q", got)
	}
}
