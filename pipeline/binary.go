package pipeline

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How long a run of base64 must be before it is taken out of a text, in base64 chars. The limits are there
// so that what a model may need to read or copy stays: a hash, a signed token, a certificate, a small icon.
const (
	// minBase64 is the limit for a run that only its letters give away: 1.5 KB of content.
	minBase64 = 2048
	// minMarkedBase64 is the limit for a run that says what it is: a data: URL, or a known file header.
	minMarkedBase64 = 256
)

// binaryPlaceholder is what stands where binary content was. A KB is 1,024 bytes of the decoded content, rounded, and
// never below one; no size stands where it is not known. It holds no quote and no backslash, so that it can stand
// inside a JSON string at any depth.
func binaryPlaceholder(bytes int) string {
	if bytes <= 0 {
		return "[binary omitted]"
	}
	return "[binary omitted: ~" + strconv.Itoa(max(1, (bytes+512)/1024)) + " KB]"
}

// OmitBinary replaces base64 and raw binary inside a text by "[binary omitted: ~138 KB]" and says how many
// it found. JSON stays valid JSON, also where it is nested as a string in other JSON: only the inside of
// string tokens is touched, and no escape is cut. It is linear, and gives back s itself when there is
// nothing to do.
func OmitBinary(s string) (string, int) {
	s, encoded := omitBase64(s)
	s, raw := omitRawBinary(s)
	return s, encoded + raw
}

// base64Line is the least length of a line of base64 that has more than one: every run worth a look has
// that many of its chars in a row.
const base64Line = 60

// omitBase64 replaces the long runs of base64 in s.
func omitBase64(s string) (string, int) {
	var out strings.Builder
	found, copied := 0, 0
	for at := 0; at+minMarkedBase64 <= len(s); {
		// Look backward from where the first line would end: in ordinary text the next space is near, and
		// few bytes need a look at all.
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

// base64Run is a stretch of base64 chars: s[start:end], of which chars are base64 and the rest is padding,
// line breaks and escapes.
type base64Run struct {
	start, end int
	chars      int
	// What the run is made of, to tell base64 from a long path or identifier: how many chars of each class,
	// and how often it changes.
	classes [base64Classes]int
	changes int
}

// binary says whether the run is long enough and looks like base64.
func (r base64Run) binary(s string) bool {
	if r.chars < minMarkedBase64 {
		return false
	}
	if r.marked(s) {
		return true
	}
	// Encoded bytes mix all classes, change from one to another at three chars of five, and have few signs;
	// words, paths and hex dumps do not.
	return r.chars >= minBase64 && r.classes[base64Upper] > 0 && r.classes[base64Lower] > 0 &&
		r.classes[base64Digit] > 0 &&
		r.changes*2 >= r.chars && r.classes[base64Sign]*10 <= r.chars
}

// base64Headers are the first chars of common binary files: PNG, JPEG, GIF, WebP, PDF, ZIP, gzip, MP3, Ogg,
// and MP4 and its kin.
var base64Headers = []string{
	"iVBORw0K", "/9j/", "9j/4A", "R0lGOD", "UklGR", "JVBERi0", "UEsDB", "H4sI", "SUQz", "T2dnUw", "AAAAIGZ0eX",
	"AAAAHGZ0eX",
}

// marked says whether what stands before the run or at its start tells that it is binary.
func (r base64Run) marked(s string) bool {
	if strings.HasSuffix(s[:r.start], ";base64,") {
		return true
	}
	// The slashes of a JPEG may be escaped, and an escaped first one is not in the run.
	head := strings.ReplaceAll(s[r.start:min(r.end, r.start+24)], `\`, "")
	for _, header := range base64Headers {
		if strings.HasPrefix(head, header) {
			return true
		}
	}
	return false
}

// The classes of base64 chars. 0 is for what is none.
const (
	base64Upper = iota + 1
	base64Lower
	base64Digit
	base64Sign
	base64Classes
)

// base64Class gives the class of the chars of both base64 alphabets.
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

// scanBase64 reads the run that begins at at. Lines of equal length, as encoders break them, are one run;
// so are chars that a JSON encoder escaped: \/ and \u002b, with any number of backslashes.
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

// escapeLen is how many chars at the start of s belong to an escape whose backslash stands before them.
func escapeLen(s string) int {
	if s[0] == 'u' {
		return min(5, len(s))
	}
	return 1
}

// escapedBase64 is the length of an escaped base64 char at the start of s: \/ or \u002b or \u002f, with any
// number of backslashes; 0 when there is none.
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

// lineBreak is the length of a line break at the start of s, raw or escaped at any depth; 0 when there is
// none.
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

// A line is raw binary when it holds at least minRawBinary chars that no text has, and they are more than
// one in ten.
const minRawBinary = 16

// omitRawBinary replaces runs of lines that are no text, as a program prints when it is told to show an
// image. JSON may hold such chars in its strings, and stays as it is.
func omitRawBinary(s string) (string, int) {
	if !hasRawBinary(s) || json.Valid([]byte(s)) {
		return s, 0
	}
	var out strings.Builder
	found, pending := 0, 0
	flush := func() {
		if pending > 0 {
			out.WriteString(binaryPlaceholder(pending))
			out.WriteByte('\n')
			found++
			pending = 0
		}
	}
	for line := range strings.Lines(s) {
		if rawBinaryLine(line) && !json.Valid([]byte(line)) {
			pending += len(line)
			continue
		}
		flush()
		out.WriteString(line)
	}
	flush()
	if found == 0 {
		return s, 0
	}
	text := out.String()
	if !strings.HasSuffix(s, "\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, found
}

// hasRawBinary is the quick look: is there any byte that no text has, or a replacement char?
func hasRawBinary(s string) bool {
	for i := 0; i < len(s); i++ {
		if notText[s[i]] {
			return true
		}
	}
	return !utf8.ValidString(s) || strings.Contains(s, string(utf8.RuneError))
}

// notText marks the control bytes that text does not hold: all but the kinds of white space,
// backspace and escape.
var notText = func() (is [256]bool) {
	for c := range 0x20 {
		is[c] = strings.IndexByte("\t\n\v\f\r\b\x1b", byte(c)) < 0
	}
	is[0x7f] = true
	return is
}()

func rawBinaryLine(line string) bool {
	bad, chars := 0, 0
	for _, r := range line {
		chars++
		if r == utf8.RuneError || r < 0x80 && notText[r] {
			bad++
		}
	}
	return bad >= minRawBinary && bad*10 > chars
}
