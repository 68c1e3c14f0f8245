package pipeline

import (
	"regexp"
	"strings"
)

// minPromptLine is the length in chars from which a line that is also in the prompt counts as copied from it. Shorter
// ones, such as section titles, belong into a summary.
const minPromptLine = 40

// frameSentences and frameLines are what SummaryText puts around a summary. They are added each time, so they would
// accumulate when a model repeats an earlier summary.
var (
	frameSentences = []string{
		summaryFirstLine + " " + summaryDigest, summaryFirstLine, summaryDigest, summaryTail, summaryContinue,
		summaryAtRest, summaryPropose, summaryRepeatedBelow + " " + summaryRepeated, summaryRepeatedBelow,
	}
	frameLines = regexp.MustCompile(`(?m)^[ \t]*(\[\d+` + regexp.QuoteMeta(summaryOmitted) + `.*\]|` +
		regexp.QuoteMeta(summaryTranscript) + `.*)[ \t]*(\n|$)`)
)

// dropPromptLines removes what the model copied from our texts: the instruction as a whole, each of its lines, and the
// lines around an earlier summary.
func dropPromptLines(text string, p Prompt) (rest string, dropped bool) {
	set := loadPrompts()
	own := []string{p.Text, p.System, set.shorter, set.again, set.focus}
	for _, whole := range append(own, frameSentences...) {
		if whole != "" && strings.Contains(text, whole) {
			text, dropped = strings.ReplaceAll(text, whole, "\n"), true
		}
	}
	if framed := frameLines.ReplaceAllString(text, ""); framed != text {
		text, dropped = framed, true
	}
	prompt := flatten(strings.Join(own, "\n"))
	var kept strings.Builder
	for line := range strings.Lines(text) {
		flat := flatten(line)
		if Chars(flat) >= minPromptLine && strings.Contains(prompt, flat) {
			dropped = true
			continue
		}
		kept.WriteString(line)
	}
	return kept.String(), dropped
}

// flatten makes texts comparable: it is flat in lower case.
func flatten(s string) string { return strings.ToLower(flat(s)) }

// flat makes texts comparable: it joins them into one line without list marks and runs of white space.
func flat(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line = strings.TrimLeft(line, " \t>-*#")
		if words := strings.Fields(line); len(words) > 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(strings.Join(words, " "))
		}
	}
	return b.String()
}

var (
	privateOpen = regexp.MustCompile(`(?i)<\s*(analysis|thinking|think|reasoning|scratchpad)(\s[^<>]*)?>`)
	summaryOpen = regexp.MustCompile(`(?i)<\s*summary(\s[^<>]*)?>`)
	summaryEnd  = regexp.MustCompile(`(?i)<\s*/\s*summary\s*>`)
	closingTail = regexp.MustCompile(`(?:\s*<\s*/\s*[A-Za-z][\w:.-]*\s*>)+\s*$`)
	closingTag  = regexp.MustCompile(`<\s*/\s*([A-Za-z][\w:.-]*)\s*>`)
	leadingTag  = regexp.MustCompile(`^<\s*/?\s*([A-Za-z][\w:.-]*)[^<>]*>`)
)

// dropPrivate removes the analysis and the reasoning in front of the summary. An element that is never closed is
// removed up to the summary, or to the end.
func dropPrivate(text string) string {
	for {
		open := privateOpen.FindStringSubmatchIndex(text)
		if open == nil {
			return strings.TrimSpace(text)
		}
		summary := summaryOpen.FindStringIndex(text)
		if summary != nil && summary[0] < open[0] {
			return strings.TrimSpace(text)
		}
		name := text[open[2]:open[3]]
		closing := regexp.MustCompile(`(?i)<\s*/\s*` + name + `\s*>`)
		rest := text[open[1]:]
		switch end := closing.FindStringIndex(rest); {
		case end != nil:
			text = text[:open[0]] + rest[end[1]:]
		case summary != nil:
			text = text[:open[0]] + text[summary[0]:]
		default:
			text = text[:open[0]]
		}
	}
}

// summaryBlock returns the content of the <summary> block. The opening tag is at the start of a line or behind another
// tag. If there is no such tag it is the last one, since a mention of the tag comes before its use. The block ends at
// the last closing tag, or at the end of the text.
func summaryBlock(text string) (body string, found bool) {
	opens := summaryOpen.FindAllStringIndex(text, -1)
	if len(opens) == 0 {
		// Some models answer in the wrapper of an earlier summary.
		if rest, wrapped := strings.CutPrefix(text, "<"+summaryTag+">"); wrapped {
			body, _, _ = strings.Cut(rest, "</"+summaryTag+">")
			return strings.TrimSpace(body), true
		}
		// The opening tag may be in the prefill or missing; the closing tag still ends the block.
		if end := summaryEnd.FindStringIndex(text); end != nil {
			return strings.TrimSpace(text[:end[0]]), true
		}
		return "", false
	}
	open := opens[len(opens)-1]
	for _, o := range opens {
		before := strings.TrimRight(text[:o[0]], " \t")
		if before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, ">") {
			open = o
			break
		}
	}
	body = text[open[1]:]
	if ends := summaryEnd.FindAllStringIndex(body, -1); len(ends) > 0 {
		body = body[:ends[len(ends)-1][0]]
	}
	return strings.TrimSpace(body), true
}

// dropTrailingMarkup removes closing tags at the end that close nothing in the text, such as the rest of a tool call's
// wrapper.
func dropTrailingMarkup(text string) string {
	at := closingTail.FindStringIndex(text)
	if at == nil {
		return strings.TrimSpace(text)
	}
	body := text[:at[0]]
	for _, tag := range closingTag.FindAllStringSubmatchIndex(text[at[0]:], -1) {
		if strings.Contains(strings.ToLower(body), "<"+strings.ToLower(text[at[0]+tag[2]:at[0]+tag[3]])) {
			// It closes a tag of the text, so it and everything before it belong to the text.
			body = text[:at[0]+tag[1]]
		}
	}
	return strings.TrimSpace(body)
}
