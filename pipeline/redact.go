package pipeline

import "regexp"

// redacted stands for a secret that was taken out.
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
	regexp.MustCompile(`(?i)\b((?:authorization|proxy-authorization)["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[^\s"',;]+`),
	regexp.MustCompile(`(?i)\b(bearer\s+)[0-9a-z_\-.~+/]{16,}=*`),
	regexp.MustCompile(`\b([a-z][a-z0-9+.\-]*://[^\s/:@"']+:)[^\s/@"']+(@)`),
	// A name that says what it is, with a value.
	regexp.MustCompile(`(?i)\b((?:[a-z0-9]+[_\-])*(?:api[_\-]?key|secret(?:[_\-]?(?:access[_\-]?)?key)?|access[_\-]?token|auth[_\-]?token|client[_\-]?secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;]{6,}`),
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
