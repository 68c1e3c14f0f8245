package pipeline

import (
	"regexp"
	"strings"
	"unicode"
)

// redacted replaces a secret.
const redacted = "[redacted]"

// secretPatterns are shapes of credentials that are certain enough to be taken out without asking. Where a
// pattern has a group, the group is what stays before the secret.
var secretPatterns = []*regexp.Regexp{
	// Private keys, whole.
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	// Keys with a prefix of their own: AWS, GitHub, GitLab, Slack, Stripe, Google, Anthropic and OpenAI, npm.
	regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16,}\b`),
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|[sr]k_(?:live|test)_|npm_)[0-9A-Za-z_\-]{16,}`),
	regexp.MustCompile(`\bAIza[0-9A-Za-z_\-]{30,}`),
	regexp.MustCompile(`\bsk-[0-9A-Za-z_\-]{20,}`),
	// JSON web tokens.
	regexp.MustCompile(`\beyJ[0-9A-Za-z_\-]{8,}\.eyJ[0-9A-Za-z_\-]{8,}\.[0-9A-Za-z_\-]*`),
	// What a header or a URL carries.
	regexp.MustCompile(
		`(?i)\b((?:authorization|proxy-authorization)["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[^\s"',;]+`),
	regexp.MustCompile(`(?i)\b(bearer\s+)[0-9a-z_\-.~+/]{16,}=*`),
	regexp.MustCompile(`\b([a-z][a-z0-9+.\-]*://[^\s/:@"']+:)[^\s/@"']+(@)`),
	// A name that says what it is, with a value.
	regexp.MustCompile(`(?i)\b((?:[a-z0-9]+[_\-])*(?:api[_\-]?key|secret(?:[_\-]?(?:access[_\-]?)?key)?|access[` +
		`_\-]?token|auth[_\-]?token|client[_\-]?secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;]{6,}`),
}

// Redact takes credentials out of a text that leaves the house: keys with a known prefix, private keys, web
// tokens, passwords in URLs, values whose name says that they are secret. It finds shapes, not meanings: a
// secret that looks like any other word stays. Redacting twice changes nothing more.
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

// Redactor takes credentials out of texts: what Redact finds, and what it finds in the messages that the redactor
// was made from, wherever else that is. A model that has seen a secret in its header may give it without.
type Redactor struct {
	known *strings.Replacer // nil for none
}

// NewRedactor makes a redactor that knows the secrets in messages. The cost is that of Redact for all of them.
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

// Redact takes the secrets out of a text. The zero Redactor does what the function Redact does.
func (r Redactor) Redact(s string) string {
	s = Redact(s)
	if r.known != nil {
		s = r.known.Replace(s)
	}
	return s
}

// secretsIn returns the secrets in a text that can be recognized alone: a value whose name alone says that it is
// secret may be any word, and is kept to its place.
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
