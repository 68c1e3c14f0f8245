package redact

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scanner finds names with their values: a sign such as "=" with a name in front of it that says that the value behind
// it is secret. Each sign looks at a bounded number of bytes before it, and each value is read once.
type scanner struct {
	s     string
	spans []span
	// done is the end of the last value: a sign inside it belongs to it.
	done int
}

// lookEvery is the number of bytes between two looks at the context.
const lookEvery = 1 << 16

func scan(ctx context.Context, s string) ([]span, error) {
	c := scanner{s: s}
	next := 0
	for i := 0; i < len(s); i++ {
		if i >= next {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			next = i + lookEvery
		}
		if i < c.done {
			i = c.done - 1
			continue
		}
		switch s[i] {
		case '=', ':':
			c.sign(i)
		case 0xEF: // the wide forms of ":" and "="
			if strings.HasPrefix(s[i:], "：") || strings.HasPrefix(s[i:], "＝") {
				c.assignment(i, i+len("："), signPlain)
			}
		case ' ':
			c.word(i)
		case '(', ',', '|', '\t':
			c.call(i)
		}
	}
	return c.spans, nil
}

// sign is what is between a name and its value.
type sign int

const (
	signPlain   sign = iota // name: value, name = value
	signCompare             // name == "value"
	signSpoken              // name is value, --name value
	signCall                // name("value")
	signList                // "name", "value"
	signTable               // | name | value |
)

// sign handles a "=" or ":" at i with what is around it: =>, :=, ==, !=, +=, ::.
func (c *scanner) sign(i int) {
	s, to := c.s, i+1
	if i > 0 && (s[i-1] == '=' || s[i-1] == ':') {
		return // its first character was looked at
	}
	kind := signPlain
	if s[i] == ':' && to < len(s) && s[to] == ':' {
		to++
		if to >= len(s) || s[to] != '=' {
			return // a scope
		}
	}
	for to < len(s) && s[to] == '=' && to < i+3 {
		if s[i] == '=' {
			kind = signCompare
		}
		to++
	}
	if to < len(s) && s[to] == '>' && s[i] == '=' && to == i+1 {
		to++
	}
	from := i
	if from > 0 && strings.IndexByte("?+!~|", s[from-1]) >= 0 {
		if s[from-1] == '!' || s[from-1] == '~' {
			kind = signCompare
		}
		from--
	}
	c.assignment(from, to, kind)
}

// spoken are words between a name and its value, in a sentence.
var spoken = []string{
	" is: ", " is ", " ist ", " est ", " es ", " lautet ", " was ", " to ", " = ", " - ", " – ", " — ",
}

// word handles a space at i: a name and a value in a sentence, or an option of a command with its value.
func (c *scanner) word(i int) {
	s := c.s
	for _, w := range spoken {
		if strings.HasPrefix(s[i:], w) {
			c.assignment(i, i+len(w), signSpoken)
			return
		}
	}
	if i > 0 && (isNameByte(s[i-1]) || s[i-1] >= utf8.RuneSelf) {
		from := i
		for from > 0 && i-from < maxName && isNameByte(s[from-1]) {
			from--
		}
		if s[from] == '-' && (from == 0 || s[from-1] != '-' && !isNameByte(s[from-1])) {
			c.value(strength(s[from:i]), s[from:i], i+1, signSpoken)
		} else if name := lastWord(s[:i]); strength(name) == password {
			c.value(password, name, i+1, signSpoken)
		}
	}
}

// lastWord returns the last word of a text, up to maxName bytes of it.
func lastWord(s string) string {
	s = s[max(0, len(s)-maxName):]
	return s[strings.LastIndexAny(s, " \t\n\"'`:=,;(<>/|")+1:]
}

// call handles what is between a name and a quoted value in an argument list or in a table.
func (c *scanner) call(i int) {
	s := c.s
	switch s[i] {
	case '(':
		c.assignment(i, i+1, signCall)
	case ',':
		if i > 0 && (s[i-1] == '"' || s[i-1] == '\'') {
			c.assignment(i, i+1, signList)
		}
	case '|':
		if i > 1 && s[i-1] == ' ' {
			c.assignment(i, i+1, signTable)
		}
	case '\t':
		c.assignment(i, i+1, signTable)
	}
}

// assignment looks for a name that ends at from, and for its value from to on.
func (c *scanner) assignment(from, to int, kind sign) {
	name, quoted := nameBefore(c.s, from, kind)
	if kind == signPlain && c.s[to-1] == '=' {
		name = c.withoutType(name, from)
	}
	if name == "" || kind == signList && !quoted {
		return
	}
	if i := from - len(name); i >= len("://") && c.s[i-len("://"):i] == "://" {
		return // the user of an address
	}
	how := strength(name)
	if how == notSecret {
		return
	}
	c.value(how, name, to, kind)
}

// types are words between a name and the sign behind it, as in "password: str =".
var types = map[string]bool{"str": true, "string": true, "String": true, "bytes": true, "char": true, "text": true}

// withoutType returns a name without the type behind it.
func (c *scanner) withoutType(name string, end int) string {
	rest, last := "", name
	if i := strings.LastIndexByte(name, ' '); i >= 0 {
		rest, last = name[:i], name[i+1:]
	}
	if !types[last] {
		return name
	}
	if rest != "" {
		return rest
	}
	if i := strings.LastIndexByte(c.s[max(0, end-maxName):end], ':'); i >= 0 {
		name, _ = nameBefore(c.s, max(0, end-maxName)+i, signPlain)
	}
	return name
}

// value reads the value from at on and keeps it if it is a secret.
func (c *scanner) value(how secrecy, name string, at int, kind sign) {
	if how == notSecret {
		return
	}
	v, ok := readValue(c.s, at, kind)
	if !ok || v.from < c.done {
		return
	}
	if !secretValue(how, name, c.s, v, kind) {
		return
	}
	c.spans = append(c.spans, span{from: v.from, to: v.to, named: true})
	c.done = v.to
}

// maxName is the largest name, in bytes, that is looked at in front of a sign.
const maxName = 64

func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_' || b == '-' || b == '.'
}

// nameBefore returns the name that ends at a place, with the words before it on the line; quoted reports that it is in
// quotes. It is "" if there is none.
func nameBefore(s string, end int, kind sign) (name string, quoted bool) {
	limit := max(0, end-2*maxName)
	if kind != signCall {
		for end > limit && (s[end-1] == ' ' || s[end-1] == '\t') {
			end--
		}
	}
	if end > limit && s[end-1] == ')' { // Password (admin): …
		if open := strings.LastIndexByte(s[limit:end], '('); open >= 0 {
			end = limit + open
		}
		for end > limit && s[end-1] == ' ' {
			end--
		}
	}
	for end > limit && strings.IndexByte("\"'`]*\\", s[end-1]) >= 0 {
		quoted = quoted || s[end-1] == '"' || s[end-1] == '\''
		end--
	}
	for _, q := range []string{"”", "’", "»", "“", "&quot;", "&#34;", "&#39;"} {
		end = len(strings.TrimSuffix(s[:end], q))
	}
	from := end
	for from > limit && end-from < maxName {
		r, n := utf8.DecodeLastRuneInString(s[:from])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("_-.$@ '’", r) {
			break
		}
		if (quoted || kind == signCall) && (r == ' ' && kind == signCall || r == '\'') {
			break
		}
		from -= n
	}
	for from < end && !utf8.RuneStart(s[from]) {
		from++
	}
	return strings.Trim(s[from:end], " '’"), quoted
}
