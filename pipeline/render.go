package pipeline

import (
	"strconv"
	"strings"
)

// RenderMessage returns a message as plain text, as a summarizer sees it: texts unchanged, tool calls as name and
// arguments, tool results as their text, binary content as "[binary omitted: ~138 KB]". Reasoning and blocks of an
// unknown kind are left out. The result for an empty message is "".
func RenderMessage(m Message) string {
	var texts []string
	for _, p := range m.Parts {
		if text, _ := renderPart(p, ""); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// renderPart returns one part as text, and how many binaries it left out. name is the tool's name for a result that
// does not have one, "" if unknown. The result for a blank text is "".
func renderPart(p Part, name string) (text string, binaries int) {
	switch p.Kind {
	case PartText:
		return omitBinaryBlank(p.Text)
	case PartToolCall:
		input, n := omitBinary(p.Input)
		return strings.TrimSpace("[call " + toolName(p.Name) + "] " + input), n
	case PartToolResult:
		text, n := resultText(p)
		if p.Name != "" {
			name = p.Name
		}
		head := "[result"
		if name != "" {
			head += " of " + toolName(name)
		}
		if p.IsError {
			head += ", an error"
		}
		return strings.TrimSpace(head + "] " + text), n
	case PartImage, PartFile:
		return renderBinary(p)
	}
	return "", 0
}

// resultText returns the text of a tool result with its binaries left out.
func resultText(p Part) (text string, binaries int) {
	var out strings.Builder
	for _, c := range p.Content {
		text, n := c.Text, 0
		switch c.Kind {
		case PartText:
			text, n = omitBinary(text)
		case PartImage, PartFile:
			text, n = renderBinary(c)
		}
		binaries += n
		if text == "" {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(text)
	}
	return out.String(), binaries
}

// renderBinary returns the text in place of an image or a file. For a file that is text it is the text.
func renderBinary(p Part) (text string, binaries int) {
	if p.Text != "" {
		return omitBinaryBlank(p.Text)
	}
	text = binaryPlaceholder(p.Bytes)
	if p.Kind == PartFile && p.Name != "" {
		text = "[file " + toolName(p.Name) + "] " + text
	}
	return text, 1
}

// omitBinaryBlank is omitBinary, but returns "" for a text of white space alone.
func omitBinaryBlank(s string) (string, int) {
	if strings.TrimSpace(s) == "" {
		return "", 0
	}
	return omitBinary(s)
}

// maxNameChars bounds the name of a tool or a file in a line that we write.
const maxNameChars = 200

// toolName returns a name on one line, of bounded length.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, name)
	return Truncate(name, maxNameChars)
}

// The elements of a rendered transcript. Each message is one, on separate lines, with the role of its author; role
// "user" is for the user's own words alone.
const (
	messageTag = "message"
	summaryTag = "conversation_summary"
)

// reservedTags are the names of the tags that structure a rendered transcript or the context. escapeTags makes sure
// that they open or close nothing in the text of a message.
var reservedTags = []string{messageTag, summaryTag}

// escapeTags turns the "<" of whatever looks like one of the reserved tags into "&lt;", opening or closing, with any
// space inside, in any spelling that a reader takes for it: see foldRune. The same happens to frames of models, such as
// <|im_start|>. Everything else is unchanged, so that code, addresses and quotes can be copied verbatim from the
// transcript.
func escapeTags(s string) string { return escapeFolded(s, reservedTags) }

// escaper returns escapeTags for tags of the given names; old is as builds did it that compared the case alone, for the
// replay of what they recorded.
func escaper(old bool, names []string) func(string) string {
	if old {
		return func(s string) string { return escapeNamed(s, names) }
	}
	return func(s string) string { return escapeFolded(s, names) }
}

// escapeNamed turns the "<" of tags of the given names into "&lt;", in any case.
func escapeNamed(s string, names []string) string {
	at := strings.IndexByte(s, '<')
	if at < 0 {
		return s
	}
	var out strings.Builder
	copied := 0
	for at < len(s) {
		if namedTag(s[at+1:], names) {
			if copied == 0 {
				out.Grow(len(s) + 64)
			}
			out.WriteString(s[copied:at])
			out.WriteString("&lt;")
			copied = at + 1
		}
		next := strings.IndexByte(s[at+1:], '<')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if copied == 0 {
		return s
	}
	out.WriteString(s[copied:])
	return out.String()
}

// namedTag reports whether what follows a "<" makes it a tag with one of the names.
func namedTag(rest string, names []string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	rest = strings.TrimPrefix(rest, "/")
	rest = strings.TrimLeft(rest, " \t\r\n")
	for _, name := range names {
		if len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name) {
			return true
		}
	}
	return false
}

// withNonce returns the name of an element with a nonce in it.
func withNonce(name, nonce string) string {
	if nonce == "" {
		return name
	}
	return name + "-" + nonce
}

// openTag returns the opening tag of the element for a message, or for a quote of it.
func openTag(name string, seq int64, role string) string {
	return "<" + name + ` seq="` + strconv.FormatInt(seq, 10) + `" role="` + role + `">`
}

// renderRole returns the role of a message in the rendered transcript: what the runtime added under the user's name is
// not called the user's.
func renderRole(m Message) string {
	if m.Role != RoleUser || m.Genuine() {
		return string(m.Role)
	}
	switch m.Kind {
	case KindUserInfo:
		return "environment"
	case KindReminder:
		return "reminder"
	}
	return "automatic"
}

// summaryBody returns the text of an earlier summary, without its wrapper and without the instruction to continue
// behind it, which is for the agent and not for a summarizer.
func summaryBody(text string) string {
	const open, end = "<" + summaryTag + ">", "</" + summaryTag + ">"
	if from := strings.Index(text, open); from >= 0 {
		text = text[from+len(open):]
		if to := strings.LastIndex(text, end); to >= 0 {
			text = text[:to]
		}
	}
	return strings.TrimSpace(text)
}
