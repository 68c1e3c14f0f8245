package pipeline

import (
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

// binaryPlaceholder is what stands where binary content was. A KB is 1,024 bytes of the decoded content,
// rounded, and never below one; no size stands where it is not known. It holds no quote and no backslash, so that it can stand inside a JSON
// string at any depth.
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

// omitBase64 replaces the long runs of base64 in s.
func omitBase64(s string) (string, int) {
	if len(s) < minMarkedBase64 {
		return s, 0
	}
	var out strings.Builder
	found, copied := 0, 0
	for at := 0; at < len(s); {
		if !base64Char[s[at]] {
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
	// What the run is made of, to tell base64 from a long path or identifier.
	upper, lower, digit, changes int
}

// binary says whether the run is long enough and looks like base64.
func (r base64Run) binary(s string) bool {
	if r.chars < minMarkedBase64 {
		return false
	}
	if r.marked(s) {
		return true
	}
	// Encoded bytes mix all three classes and change between them at more than every other char; words,
	// paths and hex dumps do not.
	return r.chars >= minBase64 && r.upper > 0 && r.lower > 0 && r.digit > 0 && r.changes*3 >= r.chars
}

// base64Headers are the first chars of common binary files: PNG, JPEG, GIF, WebP, PDF, ZIP, gzip, MP3, Ogg,
// and MP4 and its kin.
var base64Headers = []string{
	"iVBORw0K", "/9j/", "9j/4A", "R0lGOD", "UklGR", "JVBERi0", "UEsDB", "H4sI", "SUQz", "T2dnUw", "AAAAIGZ0eX", "AAAAHGZ0eX",
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

// base64Char marks the chars of both base64 alphabets.
var base64Char = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' ||
			c == '+' || c == '/' || c == '-' || c == '_'
	}
	return is
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
	last, line, width, lines := byte(0), 0, 0, 0 // lines: the end of the last full line
	for at < len(s) {
		c := s[at]
		if base64Char[c] {
			class := r.count(c)
			if class != last {
				r.changes++
				last = class
			}
			r.chars++
			line++
			at++
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
		// A line break inside: the line before it must be as long as the first one, and at least 60.
		n := lineBreak(s[at:])
		if n == 0 || line < 60 || width != 0 && line != width {
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

// count books c and gives its class.
func (r *base64Run) count(c byte) byte {
	switch {
	case c >= 'a':
		r.lower++
		return 'a'
	case c == '_':
		return '_'
	case c >= 'A':
		r.upper++
		return 'A'
	case c >= '0' && c <= '9':
		r.digit++
		return '0'
	}
	return '_'
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
// image.
func omitRawBinary(s string) (string, int) {
	if !hasRawBinary(s) {
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
		if rawBinaryLine(line) {
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
