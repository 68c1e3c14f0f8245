package pipeline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text that others wrote is compared with our own marks as a reader would: without regard to the width and the case of
// letters, to letters of mathematical alphabets, and to characters that are not seen.

// slashes and dashes are characters that look like one of ASCII and are not its wide form.
var lookalikes = map[rune]rune{
	'⁄': '/', '∕': '/', '⧸': '/', '╱': '/', '﹤': '<', '﹥': '>', '‐': '-', '‑': '-', '‒': '-', '–': '-', '−': '-',
	'﹣': '-', '▁': '_', '﹍': '_', 'ℓ': 'l', 'ℯ': 'e', 'ℴ': 'o', 'ℊ': 'g', 'ſ': 's', '\u212a': 'k',
	'∣': '|', '❘': '|', 'ⅿ': 'm', 'ⅽ': 'c', 'ⅾ': 'd', 'ⅰ': 'i', 'ⅼ': 'l', 'ⅴ': 'v', 'ⅹ': 'x',
}

// foldRune returns the character that a reader sees, in lower case, and false for one that is not seen.
func foldRune(r rune) (rune, bool) {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A', true
		}
		return r, r >= ' ' && r != 0x7f || r == '\t' || r == '\n' || r == '\r'
	}
	if seen, known := lookalikes[r]; known {
		return seen, true
	}
	switch {
	case 0xFF01 <= r && r <= 0xFF5E: // wide
		return foldRune(r - 0xFF01 + '!')
	case 0x1D400 <= r && r <= 0x1D6A3: // mathematical
		return 'a' + (r-0x1D400)%26, true
	case 0x24B6 <= r && r <= 0x24E9: // circled
		return 'a' + (r-0x24B6)%26, true
	case 0x1F130 <= r && r <= 0x1F149 || 0x1F170 <= r && r <= 0x1F189: // squared
		return 'a' + (r-0x1F130)%64, true
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Me, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point), r == 0x2800:
		return 0, false
	case unicode.IsSpace(r):
		return ' ', true
	}
	return unicode.ToLower(r), true
}

// foldAhead bounds how many seen characters a mark may have behind its first one.
const foldAhead = 48

// folded returns the first characters of a text as a reader sees them, up to one that could begin another mark. What is
// read once is read for one beginning alone, so that looking at every beginning of a text is linear.
func folded(s string) string {
	var out strings.Builder
	n := 0
	for _, r := range s {
		seen, ok := foldRune(r)
		if !ok {
			continue
		}
		if seen == '<' || seen == '[' || n == foldAhead {
			break
		}
		if n == 0 && unicode.IsSpace(seen) {
			continue // as many spaces as there are
		}
		out.WriteRune(seen)
		n++
	}
	return out.String()
}

// Beginnings and ends of frames, by which servers of models without an API of their own tell the turns apart. "<" with
// one of these behind it, folded.
var angleFrames = []string{
	"s>", "/s>", "bos>", "eos>", "sys>", "/sys>", "start_of_turn>", "end_of_turn>", "start_of_image>", "unk>", "pad>",
	"endoftext>", "extra_id_", "im_start>", "im_end>", "eot>", "eom>",
}

// squareFrames are those with a "[" before them.
var squareFrames = []string{
	"inst]", "/inst]", "system_prompt]", "/system_prompt]", "available_tools]", "/available_tools]", "tool_calls]",
	"/tool_calls]", "tool_results]", "/tool_results]", "tool_content]", "/tool_content]", "gmask]",
}

// frame reports whether what follows a "<", folded, makes it a part of a frame: <|NAME|>, and those of angleFrames.
func frame(ahead string) bool {
	if rest, piped := strings.CutPrefix(ahead, "|"); piped {
		name, _, closed := strings.Cut(rest, "|>")
		return closed && name != "" && !strings.ContainsAny(name, " \t\r\n|>")
	}
	for _, f := range angleFrames {
		if strings.HasPrefix(ahead, f) {
			return true
		}
	}
	return false
}

// escapeFolded makes a text harmless: nothing in it is a tag with one of the names, however it is spelled, or a part of
// a frame. The character that begins one becomes "&lt;" or "&#91;". Everything else is unchanged, so that code,
// addresses and quotes can be copied verbatim.
func escapeFolded(s string, names []string) string {
	var out strings.Builder
	copied := 0
	for at, r := range s {
		if r != '<' && r != '[' && r != '＜' && r != '﹤' && r != '［' {
			continue
		}
		size := utf8.RuneLen(r)
		ahead := folded(s[at+size:])
		with := ""
		switch seen, _ := foldRune(r); {
		case seen == '<' && (frame(ahead) || foldedTag(ahead, names)):
			with = "&lt;"
		case seen == '[' && hasAnyPrefix(ahead, squareFrames):
			with = "&#91;"
		}
		if with != "" {
			out.WriteString(s[copied:at])
			out.WriteString(with)
			copied = at + size
		}
	}
	if copied == 0 {
		return s
	}
	out.WriteString(s[copied:])
	return out.String()
}

// foldedTag reports whether what follows a "<", folded, makes it a tag with one of the names.
func foldedTag(ahead string, names []string) bool {
	return hasAnyPrefix(strings.TrimLeft(ahead, " \t\r\n/\\"), names)
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
