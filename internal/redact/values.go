package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// value is the place of a value in a text, without its quotes.
type value struct {
	from, to int
	quoted   bool
	// adjacent: nothing is between the sign and the value.
	adjacent bool
}

// maxValue bounds a value, in bytes.
const maxValue = 8 << 10

// schemes are words in front of a credential that are not part of it.
var schemes = []string{"bearer ", "basic ", "token ", "apikey ", "digest "}

// readValue returns the value that begins at or behind a place.
func readValue(s string, at int, kind sign) (value, bool) {
	start := at
	for at < len(s) && at < start+maxName && (s[at] == ' ' || s[at] == '\t' || s[at] == '*') {
		at++
	}
	if kind == signSpoken && at < len(s) && s[at] == ',' || kind == signList { // "--password", "value"
		for at < len(s) && at < start+maxName && (s[at] == ',' || s[at] == ' ' || s[at] == '\n') {
			at++
		}
	}
	v := value{adjacent: at == start}
	if strings.HasPrefix(s[at:], Mark) {
		return v, false
	}
	if at+1 < len(s) && strings.IndexByte("bfruLR@$", s[at]) >= 0 && (s[at+1] == '"' || s[at+1] == '\'') {
		at++ // a prefix of a string literal
	}
	if at < len(s) && (s[at] == '|' || s[at] == '>') && kind == signPlain { // a block of YAML: its first line
		if n := blockStart(s[at:]); n > 0 {
			at += n
			v.adjacent = false
		}
	}
	if end, open, ok := closing(s, at); ok {
		v.from, v.to, v.quoted = at+open, end, true
		v.from += scheme(s[v.from:v.to])
		return v, v.to > v.from
	}
	if kind == signCall || kind == signList || kind == signCompare {
		return v, false
	}
	for at < len(s) && (s[at] == '"' || s[at] == '\'' || s[at] == '`') { // a quote that nothing closes
		at++
	}
	at += scheme(s[at:min(len(s), at+16)])
	v.from = at
	v.to = at + bare(s[at:min(len(s), at+maxValue)], kind)
	return v, v.to > v.from
}

// blockStart returns where the first line of a block of YAML begins, 0 if there is none.
func blockStart(s string) int {
	n := 1
	for n < len(s) && n < maxName && strings.IndexByte("+-0123456789 \r\n", s[n]) >= 0 {
		n++
	}
	if n == len(s) || s[n-1] != ' ' || !strings.Contains(s[:n], "\n") {
		return 0
	}
	return n
}

// scheme returns the size of a scheme at the start of a credential.
func scheme(s string) int {
	for _, w := range schemes {
		if len(s) > len(w) && strings.EqualFold(s[:len(w)], w) {
			return len(w)
		}
	}
	return 0
}

// quotes are the other marks that open and close a text.
var quotes = []struct{ open, end string }{
	{"“", "”"},
	{"„", "“"},
	{"„", "”"},
	{"«", "»"},
	{"‘", "’"},
	{"「", "」"},
	{"『", "』"},
	{"&quot;", "&quot;"},
	{"&#34;", "&#34;"},
	{"&#39;", "&#39;"},
}

// closing finds the end of a quoted value that begins at a place, and the size of its opening quote. A quote inside
// does not end it if it is escaped once more than the first one. The value ends on its own line, unless it has three
// quotes.
func closing(s string, at int) (end, open int, ok bool) {
	for _, q := range quotes {
		if strings.HasPrefix(s[at:], q.open) {
			line := lineOf(s[at+len(q.open):])
			if n := strings.Index(line, q.end); n > 0 {
				return at + len(q.open) + n, len(q.open), true
			}
		}
	}
	escapes := 0
	for at+escapes < len(s) && escapes < 16 && s[at+escapes] == '\\' {
		escapes++
	}
	if at+escapes >= len(s) {
		return 0, 0, false
	}
	q := s[at+escapes]
	if q != '"' && q != '\'' && q != '`' {
		return 0, 0, false
	}
	open = escapes + 1
	if triple := strings.Repeat(string(q), 3); escapes == 0 && strings.HasPrefix(s[at:], triple) {
		body := s[at+3 : min(len(s), at+3+maxValue)]
		if n := strings.Index(body, triple); n > 0 {
			return at + 3 + n, 3, true
		}
		return 0, 0, false
	}
	line := lineOf(s[at+open:])
	slashes := 0
	for i := range len(line) {
		switch {
		case line[i] == '\\':
			slashes++
			continue
		case line[i] == q && slashes%(2*escapes+2) == escapes:
			return at + open + i - escapes, open, i-escapes > 0
		}
		slashes = 0
	}
	return 0, 0, false
}

// lineOf returns the first line of a text, up to maxValue bytes of it.
func lineOf(s string) string {
	s = s[:min(len(s), maxValue)]
	if n := strings.IndexAny(s, "\r\n"); n >= 0 {
		return s[:n]
	}
	return s
}

// bare returns the size of a value without quotes: up to white space, a quote or a mark that ends it, without the
// punctuation of a sentence behind it.
func bare(s string, kind sign) int {
	n := 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if unicode.IsSpace(r) || strings.ContainsRune("\"'`<>;&、。，；”»", r) || r == '|' && kind == signTable {
			break
		}
		if r == '\\' && (n+1 == len(s) || strings.IndexByte("nrt\"'\\", s[n+1]) >= 0) {
			break // an escape of the text around
		}
		if r == ',' && (n+1 == len(s) || strings.IndexByte(" \t\r\n\"'", s[n+1]) >= 0) {
			break
		}
		n += size
	}
	if kind == signSpoken {
		return len(strings.TrimRight(s[:n], ".,:)]}!?*"))
	}
	return len(strings.TrimRight(s[:n], ".,:)]}*"))
}

var (
	// expression matches what a program calculates.
	expression = regexp.MustCompile(`^[&*!@]?[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*(?:[(\[{].*)?$|^[(\[{].*|^\$.*`)
	// call matches an expression that certainly is not a value.
	called = regexp.MustCompile(`^[&*!@]?[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*[(\[{]|^[(\[{]|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$`)
	uuid   = regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	// blank matches what is in the place of a value in a template or in a document.
	blank = regexp.MustCompile(`(?i)^(?:[*x.•…_\-#?]+|\[redacted\].*|\[.*\]|<.*|\$\{?[\w.:\-]+\}?.*|\$\(.*|\{\{.*|\{[\w.]*\}.*|` +
		`%[\w()]+%?|@[\w.]+@|(?:your|my|some|the)[_\- ].*|.*[_\-]here|\(.*|process\.env.*|os\.(?:environ|getenv).*|env\..*|` +
		`secrets\..*|var\..*|(?:null|nil|none|true|false|undefined|yes|no|on|off|string|str|number|int|integer|bool|` +
		`boolean|bytes|byte|any|object|optional|required|text|char|varchar.*|password|passwd|secret|token|redacted|masked|` +
		`hidden|empty|unset|missing|invalid|valid|wrong|incorrect|correct|expired|default|\w*str|\w*string|base64|self|this|type|field|input|value|` +
		`interface|struct|float|void|const|let|var|new|not|and|or|is|must|should|will|can|cannot|has|was|set|the|an?|in|` +
		`for|from|to|with|of|if|when|basic|bearer|oauth2?|jwt|key|ok|failed|failure|success|enabled|disabled|changed|` +
		`encrypted|hashed|stored|needed|same|used|unknown|available|unavailable|generated|authenticated)[\]\[,;|?!.]*)$`)
)

// placeholder reports whether a value is in the place of a secret and is none.
func placeholder(v string) bool { return blank.MatchString(v) }

// secretValue reports whether a value behind a name is to be removed.
func secretValue(how secrecy, name, s string, v value, kind sign) bool {
	text := s[v.from:v.to]
	if strings.TrimSpace(text) == "" || len(text) < 256 && placeholder(strings.TrimSpace(text)) {
		return false
	}
	last := name[strings.LastIndexByte(name, ' ')+1:]
	environment := kind == signPlain && v.adjacent && last == strings.ToUpper(last) && isASCII(last) &&
		strings.ContainsFunc(last, unicode.IsUpper)
	digit, letter := strings.ContainsFunc(text, unicode.IsDigit), strings.ContainsFunc(text, unicode.IsLetter)
	special := strings.ContainsAny(text, "!#%^*+/=@~?&-$")
	spaces := strings.ContainsAny(text, " \t")
	switch {
	case how == handle:
		return len(text) >= 16 && digit && letter && !strings.ContainsAny(text, "-/ ()[]{}<>$:")
	case kind == signList || kind == signTable || kind == signSpoken && !flag(name):
		mixed := digit && letter || digit && special || letter && special && how == password
		return mixed && !spaces && len(text) >= 6 && !uuidOf(how, text) && (how != weak || len(text) >= 8) &&
			!called.MatchString(text)
	case v.quoted:
		return quotedSecret(how, text, digit, letter, spaces, kind)
	case environment && how == password:
		return len(text) >= 3
	case environment:
		return len(text) >= 6 && (letter || len(text) >= 8) && (how != weak || digit || len(text) >= 16)
	case flag(name) && kind == signSpoken:
		return text[0] != '-' && !called.MatchString(text) && (how == password || digit || len(text) >= 16)
	case called.MatchString(text) || sameName(name, text):
		return false
	case how == password:
		return len(text) >= 4
	case how == weak && !letter:
		return digit && len(text) >= 4 && len(text) <= 8 && pinName(name)
	case how == weak:
		return len(text) >= 6 && digit && letter && !uuidOf(how, text)
	}
	return len(text) >= 6 && digit && letter || len(text) >= 16 && letter && !expression.MatchString(text) ||
		digit && len(text) >= 12
}

// quotedSecret reports whether a value in quotes is to be removed.
func quotedSecret(how secrecy, text string, digit, letter, spaces bool, kind sign) bool {
	switch {
	case how == password && kind == signCall:
		return !spaces && len(text) >= 4
	case how == password:
		return true
	case spaces && how == certain:
		return digit || len(text) >= 24
	case spaces:
		return false
	case how == weak:
		return len(text) >= 6 && letter && (digit || strings.ContainsAny(text, "+/=!#%")) && !uuidOf(how, text)
	case kind == signCall:
		return len(text) >= 6 && digit && letter
	}
	return len(text) >= 6 && letter || len(text) >= 8
}

func flag(name string) bool { return strings.HasPrefix(name, "-") }

func pinName(name string) bool {
	words := split(name)
	switch words[len(words)-1] {
	case "pin", "otp", "cvv", "cvc", "mfa", "totp":
		return true
	}
	return false
}

// uuidOf reports whether a value of a weak name is an id.
func uuidOf(how secrecy, text string) bool { return how == weak && uuid.MatchString(text) }

// sameName reports whether a value only repeats its name, as in password=user_password2.
func sameName(name, text string) bool {
	a, b := split(name), split(text)
	return len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] && expression.MatchString(text)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
