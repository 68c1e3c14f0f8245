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
func dropPromptLines(w *work, text string, p Prompt) (rest string, dropped bool) {
	set := loadPrompts()
	own := []string{p.Text, p.System, set.shorter, set.again, set.focus}
	for _, whole := range append(own, frameSentences...) {
		w.spend(len(text))
		if whole != "" && strings.Contains(text, whole) {
			text, dropped = strings.ReplaceAll(text, whole, "\n"), true
		}
	}
	if strings.Contains(text, summaryOmitted) || strings.Contains(text, summaryTranscript) {
		if framed := w.replaceAll(frameLines, text, ""); framed != text {
			text, dropped = framed, true
		}
	}
	prompt := flatten(w, strings.Join(own, "\n"))
	var kept strings.Builder
	for line := range strings.Lines(text) {
		flat := flatten(w, line)
		w.spend(len(prompt) / 8)
		if Chars(flat) >= minPromptLine && strings.Contains(prompt, flat) {
			dropped = true
			continue
		}
		kept.WriteString(line)
	}
	return kept.String(), dropped
}

// flatten makes texts comparable: it is flat in lower case.
func flatten(w *work, s string) string { return w.lower(flat(w, s)) }

// flat makes texts comparable: it joins them into one line without list marks and runs of white space.
func flat(w *work, s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		w.spend(0)
		w.words(&b, strings.TrimLeft(line, " \t>-*#"))
	}
	return b.String()
}

var (
	summaryOpen = regexp.MustCompile(`(?i)<\s*summary(\s[^<>]*)?>`)
	summaryEnd  = regexp.MustCompile(`(?i)<\s*/\s*summary\s*>`)
	closingTag  = regexp.MustCompile(`^<\s*/\s*([A-Za-z][\w:.-]*)\s*>$`)
	leadingTag  = regexp.MustCompile(`^<\s*/?\s*([A-Za-z][\w:.-]*)[^<>]*>`)
)

// summaryBlock returns the content of the <summary> block. The opening tag is at the start of a line or behind another
// tag. If there is no such tag it is the last one, since a mention of the tag comes before its use. The block ends at
// the last closing tag, or at the end of the text.
func summaryBlock(w *work, text string) (body string, found bool) {
	opens := findAll(summaryOpen, w.tagPieces(text))
	if len(opens) == 0 {
		// Some models answer in the wrapper of an earlier summary.
		if rest, wrapped := strings.CutPrefix(text, "<"+summaryTag+">"); wrapped {
			body, _, _ = strings.Cut(rest, "</"+summaryTag+">")
			return strings.TrimSpace(body), true
		}
		// The opening tag may be in the prefill or missing; the closing tag still ends the block.
		if ends := findAll(summaryEnd, w.tagPieces(text)); len(ends) > 0 {
			return strings.TrimSpace(text[:ends[0][0]]), true
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
	if ends := findAll(summaryEnd, w.tagPieces(body)); len(ends) > 0 {
		body = body[:ends[len(ends)-1][0]]
	}
	return strings.TrimSpace(body), true
}

// dropTrailingMarkup removes closing tags at the end that close nothing in the text, such as the rest of a tool call's
// wrapper.
func dropTrailingMarkup(w *work, text string) string {
	const space = " \t\n\f\r"
	var names []string // of the tags at the end, the last one first
	var ends []int
	body := text
	for {
		trimmed := strings.TrimRight(body, space)
		at := -1
		if strings.HasSuffix(trimmed, ">") {
			at = strings.LastIndexByte(trimmed, '<')
		}
		if at < 0 || len(trimmed)-at > pieceBytes {
			break
		}
		tag := closingTag.FindStringSubmatch(trimmed[at:])
		if tag == nil {
			break
		}
		w.spend(len(body) - at)
		names, ends = append(names, "<"+strings.ToLower(tag[1])), append(ends, len(trimmed))
		body = text[:at]
	}
	if len(names) == 0 {
		return strings.TrimSpace(text)
	}
	body = strings.TrimRight(body, space)
	for i, at := range firstPlaces(w, names, w.lower(body)) {
		if at >= 0 {
			// It closes a tag of the text, so it and everything before it belong to the text.
			return strings.TrimSpace(text[:ends[i]])
		}
	}
	return strings.TrimSpace(body)
}
