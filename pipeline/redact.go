package pipeline

import (
	"regexp"
	"strings"
	"unicode"
)

// redacted replaces a secret.
const redacted = "[redacted]"

// secretPatterns are forms of credentials that are certain enough to be removed always. If a pattern has a group, the
// group is what stays in front of the secret.
var secretPatterns = []*regexp.Regexp{
	// Private keys, whole.
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	// Keys with a known prefix: AWS, GitHub, GitLab, Slack, Stripe, Google, Anthropic and OpenAI, npm.
	regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16,}\b`),
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|[sr]k_(?:live|test)_|npm_)[0-9A-Za-z_\-]{16,}`),
	regexp.MustCompile(`\bAIza[0-9A-Za-z_\-]{30,}`),
	regexp.MustCompile(`\bsk-[0-9A-Za-z_\-]{20,}`),
	// JSON web tokens.
	regexp.MustCompile(`\beyJ[0-9A-Za-z_\-]{8,}\.eyJ[0-9A-Za-z_\-]{8,}\.[0-9A-Za-z_\-]*`),
	// Credentials in a header or a URL.
	regexp.MustCompile(
		`(?i)\b((?:authorization|proxy-authorization)["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[^\s"',;]+`),
	regexp.MustCompile(`(?i)\b(bearer\s+)[0-9a-z_\-.~+/]{16,}=*`),
	regexp.MustCompile(`\b([a-z][a-z0-9+.\-]*://[^\s/:@"']+:)[^\s/@"']+(@)`),
	// A name that shows that its value is secret, with the value.
	regexp.MustCompile(`(?i)\b((?:[a-z0-9]+[_\-])*(?:api[_\-]?key|secret(?:[_\-]?(?:access[_\-]?)?key)?|access[` +
		`_\-]?token|auth[_\-]?token|client[_\-]?secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;]{6,}`),
}

// Redact removes credentials from a text that is sent outside, by a short list of patterns: keys with a known prefix,
// private keys, web tokens, passwords in URLs, values whose name shows that they are secret. It finds forms, not
// meanings: a secret that looks like any other word stays. Redacting twice changes nothing more. The service of precis
// finds far more; it uses these patterns only to replay what was recorded with them.
func Redact(s string) string {
	for _, p := range secretPatterns {
		switch p.NumSubexp() {
		case 0:
			s = p.ReplaceAllString(s, redacted)
		case 1:
			s = p.ReplaceAllString(s, "${1}"+redacted)
		default:
			s = p.ReplaceAllString(s, "${1}"+redacted+"${2}")
		}
	}
	return s
}

// Redactor removes credentials from texts: what Redact finds, and what it finds in the messages that the redactor was
// made from, wherever else that occurs. A model that has seen a secret in a header may repeat it without.
type Redactor struct {
	known *strings.Replacer // nil for none
}

// NewRedactor returns a redactor that knows the secrets in messages. The cost is that of Redact for all of them.
func NewRedactor(messages []Message) Redactor {
	var pairs []string
	seen := map[string]bool{}
	for _, m := range messages {
		for _, text := range textsOf(m) {
			for _, secret := range secretsIn(text) {
				if !seen[secret] {
					seen[secret] = true
					pairs = append(pairs, secret, redacted)
				}
			}
		}
	}
	if pairs == nil {
		return Redactor{}
	}
	return Redactor{known: strings.NewReplacer(pairs...)}
}

// Redact removes the secrets from a text. The zero Redactor does the same as the function Redact.
func (r Redactor) Redact(s string) string {
	s = Redact(s)
	if r.known != nil {
		s = r.known.Replace(s)
	}
	return s
}

// secretsIn returns the secrets in a text that can be recognized alone. A value that is secret only by its name may be
// any word, and is redacted only beside that name.
func secretsIn(text string) []string {
	var secrets []string
	for _, p := range secretPatterns {
		for _, m := range p.FindAllStringSubmatchIndex(text, -1) {
			from, to := m[0], m[1]
			if len(m) > 2 {
				from = m[3]
			}
			if len(m) > 4 {
				to = m[4]
			}
			if secret := text[from:to]; random(secret) {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

// random reports whether a value is neither a word nor an expression of a program: long, of letters and digits.
func random(value string) bool {
	const least = 10
	return len(value) >= least && strings.ContainsFunc(value, unicode.IsDigit) &&
		strings.ContainsFunc(value, unicode.IsLetter) &&
		!strings.ContainsAny(value, "()[]{}$<>") && value != redacted
}
