package redact

import (
	"regexp"
	"strings"
)

// ownRules are forms of credentials that are certain enough to be removed without a look at what is around them, and
// notations in which a value is not behind a name and a sign.
func ownRules() []rule {
	var rules []rule
	add := func(keywords string, before, after int, pattern string, accept func(match, secret string) bool) {
		rules = append(rules, rule{
			keywords: strings.Split(keywords, "|"), pattern: regexp.MustCompile(pattern), before: before, after: after,
			accept: accept,
		})
	}
	tokenRules(add)
	headerRules(add)
	commandRules(add)
	return rules
}

// adder adds a rule for keywords, which are separated by "|".
type adder func(keywords string, before, after int, pattern string, accept func(match, secret string) bool)

// tokenRules add credentials that are recognized by their own form.
func tokenRules(add adder) {
	// Private keys, whole, also with their line breaks escaped; of PuTTY and age too.
	add("private key", 48, 8<<10, `-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?`+
		`(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`, nil)
	add("private-lines", 0, 8<<10, `(?i)private-lines: \d+\s+((?:[a-z0-9+/=]+\s*?\n?)+)`, nil)
	add("age-secret-key", 0, 128, `(?i)AGE-SECRET-KEY-1[0-9A-Z]{50,}`, nil)
	// Keys with a known prefix, of vendors and of precis itself.
	add("akia|asia|aroa|aida", 4, 64, `\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16,}\b`, nil)
	add("gho_|ghp_|ghu_|ghs_|ghr_|github_pat_|glpat-|xoxa-|xoxb-|xoxe-|xoxp-|xoxr-|xoxs-|npm_|sk_live_|sk_test_|"+
		"rk_live_|rk_test_|hf_|dop_v1_|whsec_|shpat_|pypi-|glsa_|lin_api_|ya29.|xai-|gsk_|dckr_pat_|pplx-|nvapi-|r8_",
		4, 300, `\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|[sr]k_(?:live|test)_|npm_|hf_|dop_v1_|whsec_|`+
			`shpat_|pypi-|glsa_|lin_api_|ya29\.|xai-|gsk_|dckr_pat_|pplx-|nvapi-|r8_)[0-9A-Za-z_\-]{16,}`, hasDigit)
	add("pk_", 4, 128, `\bpk_(?:live_|test_)?[0-9A-Za-z_\-]{20,}`, hasDigit)
	add("aiza", 4, 64, `\bAIza[0-9A-Za-z_\-]{30,}`, nil)
	add("sk-", 4, 300, `\bsk-[0-9A-Za-z_\-]{20,}`, hasDigit)
	// JSON web tokens.
	add("eyj", 4, 4<<10, `\beyJ[0-9A-Za-z_\-]{8,}\.eyJ[0-9A-Za-z_\-]{8,}\.?[0-9A-Za-z_\-]*`, nil)
	// Hashes of passwords, as in /etc/shadow.
	add("$1$|$2a$|$2b$|$2y$|$5$|$6$|$y$|$apr1$|$argon2", 0, 300,
		`\$(?:1|5|6|y|apr1|argon2(?:id|i|d))\$[./A-Za-z0-9=,+\-$]{20,}|\$2[aby]\$\d\d\$[./A-Za-z0-9]{50,}`, nil)
	// The password in an address, up to the last @ before its path.
	add("://", 32, 512, `\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@"'<>\\?#]*:([^\s"'<>\\/]+)@(?:\[|[\pL\pN$%{])`,
		notPlaceholder)
	add("://", 32, 512, `\bhttps?://([0-9A-Za-z_\-]{20,})@`, nil)
	add("@tcp(|@unix(|@(", 128, 16, `[\w.\-]+:([^\s"'@:/]{3,})@(?:tcp|unix)?\(`, nil)
	// Webhook addresses, which are credentials as a whole.
	add("hooks.slack.com|discord.com/api/webhooks|discordapp.com/api/webhooks|webhook.office.com|api.telegram.org", 8,
		512, `(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks|`+
			`webhook\.office\.com/webhookb2|api\.telegram\.org)/([^\s"'<>)\\]{16,})`, nil)
}

// headerRules add headers of requests.
func headerRules(add adder) {
	add("authorization", 24, 2<<10, `(?i)\b(?:proxy-|x-)?authorization(?:\\{0,4}["'”]?\]?\s*(?:[:=]|=>)|\\{0,4}["']\s*,)\s*\\{0,4}["'“]?`+
		`(?:(?:bearer|basic|token|negotiate|ntlm|apikey|key|digest|hawk|oauth|splunk|bot|`+
		`aws4-hmac-sha256|github-bearer)[ \t:]+)?([^\s"'`+"`"+`<>\\][^\r\n"'`+"`"+`<>\\]*)`, notPlaceholder)
	add("authorization", 24, 2<<10, `(?i)\bauthorization["']?\s*[:=]\s*["']?(?:digest|hawk|oauth|aws4-hmac-sha256)\s+`+
		`([^\r\n']*)`, nil)
	add("bearer", 4, 2<<10, `(?i)\bbearer[ \t]+([0-9a-z_\-.~+/]{16,}=*)`, nil)
	add("cookie", 8, 4<<10, `(?i)\b(?:set-)?cookie2?\\{0,4}["']?\s*(?::|=>|=|,)\s*\\{0,4}["']?`+
		`([^\s"'`+"`"+`<>\\=;]{1,128}=[^\r\n"'`+"`"+`<>\\]+)`, nil)
	add(" -b | -b'| --cookie", 0, 1<<10, `(?:\s-b|\s--cookie)[ =]?["']?([\w.\-]+=[^"'\r\n]{6,}?)(?:["'\r\n]| -|\z)`, nil)
}

// commandRules add notations of commands, of configuration files and of markup.
func commandRules(add adder) {
	const value = `(?:"((?:[^"\\\r\n]|\\.)+)"|'([^'\r\n]+)'|([^\s"'|;&<>]+))`
	add(" -u| --user", 0, 256, `\s(?:-u|--(?:proxy-)?user)[ =]?["']?[\w.@\-]+:([^\s"']{3,})`, notPlaceholder)
	add("sshpass", 0, 256, `\bsshpass\s+-p\s*`+value, notPlaceholder)
	add("mysql|mariadb", 0, 256, `\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\r\n|;&]*?\s-p`+value, notPlaceholder)
	add("redis-cli", 0, 256, `\bredis-cli\b[^\r\n|;&]*?\s-a\s+`+value, notPlaceholder)
	add("login", 24, 256, `\b(?:docker|podman|helm|oc|az|skopeo|buildah|crane|registry)\b[^\r\n|;&]*?\blogin\b[^\r\n|;&]*?`+
		`\s-p\s+`+value, notPlaceholder)
	add("ldap", 8, 256, `\bldap\w+\b[^\r\n|;&]*?\s-w\s+`+value, notPlaceholder)
	add("smbclient|rpcclient", 0, 256, `\b(?:smbclient|rpcclient)\b[^\r\n|;&]*?\s-U\s+["']?[^\s%"']+%([^\s"']+)`, nil)
	add("mongo", 0, 256, `\bmongo(?:sh|dump|restore|export|import)?\b[^\r\n|;&]*?\s-p\s+`+value, notPlaceholder)
	add("sqlcmd|bcp|osql|isql", 0, 256, `\b(?:sqlcmd|bcp|osql|isql)\b[^\r\n|;&]*?\s-P\s*`+value, notPlaceholder)
	add("sqlplus", 0, 256, `\bsqlplus\s+[\w.]+/([^\s@"']+)@`, nil)
	add("pass:", 16, 256, `-pass(?:in|out)?\s+["']?pass:([^\s"']+)`, nil)
	add("htpasswd", 0, 256, `\bhtpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+`+value, nil)
	add("-stdin", 256, 8, `\b(?:echo|printf)\s+(?:-n\s+)?`+value+`\s*\|[^|\r\n]*--password-stdin`, notPlaceholder)
	add("chpasswd", 256, 8, `\becho\s+["']?[\w.\-]+:([^\s"'|]+)["']?\s*\|\s*(?:sudo\s+)?chpasswd`, nil)
	add("identified|password", 24, 512, `(?i)\b(?:identified\s+(?:with\s+\w+\s+)?by|(?:with\s+)?(?:encrypted\s+)?password)`+
		`\s+(?:password\s+)?'((?:[^'\r\n\\]|''|\\.)+)'`, nil)
	// .netrc and redis.conf.
	add("machine|default login", 0, 512, `(?i)\b(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+(\S+)`, nil)
	add("requirepass|masterauth", 0, 256, `(?i)\b(?:requirepass|masterauth)\s+["']?([^\s"']+)`, notPlaceholder)
	// .pgpass: host:port:database:user:password.
	add(":5432:|:5433:|:6432:", 128, 256, `(?m)^[\w.*\-]+:\d{4,5}:[\w*\-]+:[\w*.\-]+:(\S+)$`, nil)
	const secretName = `[\w.\-]*(?:passw(?:or)?d|passphrase|pwd|passcode|secret|token|api_?-?key|access_?-?key|` +
		`private_?-?key|credentials?|auth_?-?key)`
	// Assignments by a space, in a Dockerfile and in some shells.
	add("env|set", 4, 512, `(?im)^[ \t]*(?:RUN\s+)?(?:export\s+)?(?:ENV|ARG|setenv|setx|set\s+-\w+)\s+`+secretName+
		`\s+`+value, notPlaceholder)
	// Elements and attributes.
	add("passw|passphrase|pwd|secret|token|key>|credential|passcode", 64, 512, `(?i)<(?:\w+:)?`+secretName+
		`(?:\s[^<>\r\n]{0,200})?>\s*(?:<!\[CDATA\[)?([^<>\r\n\]]+?)\s*(?:\]\]>)?\s*</`, notPlaceholder)
	add("value", 160, 512, `(?i)\b(?:name|key|id)\\{0,2}["']?\s*[:=]\s*\\{0,2}["']?`+secretName+
		`(?:[_\-](?:value|b64|base64))?\\{0,2}["']?[\s,;}]{1,80}\\{0,2}["']?(?:default)?value\\{0,2}["']?\s*[:=]\s*`+
		`(?:\\*"((?:[^"\\\r\n]|\\.)+?)\\*"|'([^'\r\n]+)'|([^\s"'|;&<>\\]+))`, notPlaceholder)
	// One-time passwords and words that make a wallet's key.
	add("otpauth://", 0, 512, `(?i)otpauth://[^\s"'<>]*?[?&]secret=([^\s&"'<>]+)`, nil)
	add("mnemonic|seed phrase|recovery phrase|seed words", 0, 512, `(?i)\b(?:mnemonic|seed[ _]phrase|recovery[ _]phrase|`+
		`seed[ _]words)["']?\s*(?:[:=]|is)\s*["']?((?:[a-z]{3,8}[ ,]+){11,23}[a-z]{3,8})\b`, nil)
	add("sig=|signature=|credential=", 24, 512, `(?i)[?&](?:sig|signature|x-amz-(?:signature|credential|security-token)|`+
		`x-goog-(?:signature|credential))=([^\s&"'<>#\\]{8,})`, nil)
	add("key=", 8, 512, `[?&](?:api|app|access)?[_\-]?key=([^\s&"'<>#\\]{12,})`, notPlaceholder)
}

func hasDigit(_, secret string) bool { return strings.ContainsAny(secret, "0123456789") }

func notPlaceholder(_, secret string) bool { return !placeholder(secret) }
