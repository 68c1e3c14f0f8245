package pipeline

import "strings"

// base64Line is the least length of a line in base64 of several lines: every run that matters has at least that many
// base64 chars in a row.
const base64Line = 60

// omitBase64 replaces the long runs of base64 in s.
func omitBase64(s string) (string, int) {
	var out strings.Builder
	found, copied := 0, 0
	for at := 0; at+minMarkedBase64 <= len(s); {
		// Look backward from where the first line would end: in ordinary text the next space is near, and few bytes are
		// read.
		end := at + base64Line - 1
		for end >= at && (base64Class[s[end]] != 0 || s[end] == '\\') {
			end--
		}
		if end >= at {
			at = end + 1
			continue
		}
		if s[at] == '\\' {
			at++
			continue
		}
		run := scanBase64(s, at)
		if run.binary(s) {
			out.WriteString(s[copied:run.start])
			out.WriteString(binaryPlaceholder(run.chars * 3 / 4))
			copied = run.end
			found++
		}
		at = run.end
	}
	if found == 0 {
		return s, 0
	}
	out.WriteString(s[copied:])
	return out.String(), found
}

// base64Run is a section of base64: s[start:end], of which chars are base64 and the rest is padding, line breaks and
// escapes.
type base64Run struct {
	start, end int
	chars      int
	// The composition of the run, to distinguish base64 from a long path or identifier: how many chars of each class,
	// and how often the class changes.
	classes [base64Classes]int
	changes int
}

// binary reports whether the run is long enough and looks like base64.
func (r base64Run) binary(s string) bool {
	if r.chars < minMarkedBase64 {
		return false
	}
	if r.marked(s) {
		return true
	}
	// Encoded bytes mix all classes, change class at three chars of five, and have few signs. Words, paths and hex
	// dumps do not.
	return r.chars >= minBase64 && r.classes[base64Upper] > 0 && r.classes[base64Lower] > 0 &&
		r.classes[base64Digit] > 0 &&
		r.changes*2 >= r.chars && r.classes[base64Sign]*10 <= r.chars
}

// base64Headers are the first chars of common binary files: PNG, JPEG, GIF, WebP, PDF, ZIP, gzip, MP3, Ogg, MP4 and
// related formats.
var base64Headers = []string{
	"iVBORw0K", "/9j/", "9j/4A", "R0lGOD", "UklGR", "JVBERi0", "UEsDB", "H4sI", "SUQz", "T2dnUw", "AAAAIGZ0eX",
	"AAAAHGZ0eX",
}

// marked reports whether the text before the run, or its start, marks it as binary.
func (r base64Run) marked(s string) bool {
	if strings.HasSuffix(s[:r.start], ";base64,") {
		return true
	}
	// The slashes of a JPEG may be escaped. If the first one is, it is not in the run.
	head := strings.ReplaceAll(s[r.start:min(r.end, r.start+24)], `\`, "")
	for _, header := range base64Headers {
		if strings.HasPrefix(head, header) {
			return true
		}
	}
	return false
}

// The classes of base64 chars. 0 is for all other chars.
const (
	base64Upper = iota + 1
	base64Lower
	base64Digit
	base64Sign
	base64Classes
)

// base64Class returns the class of the chars of both base64 alphabets.
var base64Class = func() (class [256]uint8) {
	for b := range class {
		switch c := byte(b); {
		case c >= 'A' && c <= 'Z':
			class[b] = base64Upper
		case c >= 'a' && c <= 'z':
			class[b] = base64Lower
		case c >= '0' && c <= '9':
			class[b] = base64Digit
		case c == '+' || c == '/' || c == '-' || c == '_':
			class[b] = base64Sign
		}
	}
	return class
}()

// scanBase64 reads the run that begins at position at. Lines of equal length, as encoders break them, are one run; so
// are chars that a JSON encoder escaped: \/ and \u002b, with any number of backslashes.
func scanBase64(s string, at int) base64Run {
	r := base64Run{start: at}
	if at > 0 && s[at-1] == '\\' {
		// The first char belongs to an escape, as in \nAAAA: it stays.
		r.start += escapeLen(s[at:])
		at = min(r.start, len(s))
		r.start = at
	}
	last, line, width, lines := uint8(0), 0, 0, 0 // lines: the end of the last full line
	for at < len(s) {
		if from := at; base64Class[s[at]] != 0 {
			for ; at < len(s) && base64Class[s[at]] != 0; at++ {
				class := base64Class[s[at]]
				r.classes[class]++
				if class != last {
					r.changes++
					last = class
				}
			}
			r.chars += at - from
			line += at - from
			r.end = at
			continue
		}
		if n := escapedBase64(s[at:]); n > 0 {
			r.chars++
			r.changes++
			last = 0
			line++
			at += n
			r.end = at
			continue
		}
		// A line break inside: the line before it must be as long as the first one, and at least base64Line.
		n := lineBreak(s[at:])
		if n == 0 || line < base64Line || width != 0 && line != width {
			break
		}
		width, line, lines = line, 0, r.end
		at += n
	}
	if width != 0 && line < width && at < len(s) && strings.IndexByte("\r\n\\\"'=<", s[at]) < 0 {
		// What follows the last full line is the first word of a text.
		r.end = lines
		r.chars -= line
	}
	r.end = max(r.end, r.start)
	// Padding.
	for r.end < len(s) && s[r.end] == '=' {
		r.end++
	}
	if r.end == r.start {
		r.end = min(r.start+1, len(s))
	}
	return r
}

// escapeLen returns how many chars at the start of s belong to an escape whose backslash is before them.
func escapeLen(s string) int {
	if s[0] == 'u' {
		return min(5, len(s))
	}
	return 1
}

// escapedBase64 returns the length of an escaped base64 char at the start of s: \/ or \u002b or \u002f, with any number
// of backslashes; 0 if there is none.
func escapedBase64(s string) int {
	n := backslashes(s)
	if n == 0 || n == len(s) {
		return 0
	}
	if s[n] == '/' {
		return n + 1
	}
	if len(s) >= n+5 && s[n:n+4] == "u002" && strings.IndexByte("bBfF", s[n+4]) >= 0 {
		return n + 5
	}
	return 0
}

// lineBreak returns the length of a line break at the start of s, raw or escaped at any depth; 0 if there is none.
func lineBreak(s string) int {
	switch {
	case strings.HasPrefix(s, "\r\n"):
		return 2
	case s[0] == '\n':
		return 1
	}
	n := backslashes(s)
	if n == 0 || n == len(s) {
		return 0
	}
	if s[n] == 'n' {
		return n + 1
	}
	if s[n] == 'r' {
		rest := s[n+1:]
		if m := backslashes(rest); m > 0 && m < len(rest) && rest[m] == 'n' {
			return n + 1 + m + 1
		}
	}
	return 0
}

func backslashes(s string) int {
	n := 0
	for n < len(s) && s[n] == '\\' {
		n++
	}
	return n
}
