package pipeline

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The lengths from which a run of base64 is removed from a text, in base64 chars. Shorter runs stay, because a model
// may need to read or copy them: a hash, a signed token, a certificate, a small icon.
const (
	// minBase64 is the limit for a run that is recognized only by its letters: 1.5 KB of content.
	minBase64 = 2048
	// minMarkedBase64 is the limit for a run with a mark: a data: URL, or a known file header.
	minMarkedBase64 = 256
)

// binaryPlaceholder returns the text in place of binary content. A KB is 1,024 bytes of the decoded content, rounded up
// to at least one; an unknown size is left out. The text has no quote and no backslash, so that it can be inside a JSON
// string at any depth.
func binaryPlaceholder(bytes int) string {
	if bytes <= 0 {
		return "[binary omitted]"
	}
	return "[binary omitted: ~" + strconv.Itoa(max(1, (bytes+512)/1024)) + " KB]"
}

// omitBinary replaces base64 and raw binary inside a text by "[binary omitted: ~138 KB]" and returns how many it found.
// JSON stays valid, even nested as a string in other JSON: only the inside of string tokens is changed, and no escape
// is cut. It is linear, and returns s if there is nothing to replace.
func omitBinary(s string) (string, int) {
	s, encoded := omitBase64(s)
	s, raw := omitRawBinary(s)
	return s, encoded + raw
}

// minRawBinary: a line is raw binary if it has at least so many chars that no text has, and they are more than one in
// ten.
const minRawBinary = 16

// omitRawBinary replaces runs of lines that are not text, as a program prints when asked to show an image. JSON may
// have such chars in its strings, and stays as it is.
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

// hasRawBinary reports whether s has any byte that no text has, or a replacement char. It is a quick first check.
func hasRawBinary(s string) bool {
	for i := 0; i < len(s); i++ {
		if notText[s[i]] {
			return true
		}
	}
	return !utf8.ValidString(s) || strings.Contains(s, string(utf8.RuneError))
}

// notText marks the control bytes that text does not have: all except white space, backspace and escape.
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
