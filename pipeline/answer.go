package pipeline

import (
	"regexp"
	"strings"
)

// Finish says why a model stopped, in one vocabulary for all vendors.
type Finish string

// The reasons to stop. FinishNone is an answer that names none: it is incomplete.
const (
	FinishNone          Finish = ""
	FinishStop          Finish = "stop"
	FinishLength        Finish = "length"
	FinishToolUse       Finish = "tool_use"
	FinishRefusal       Finish = "refusal"
	FinishContentFilter Finish = "content_filter"
	FinishError         Finish = "error"
)

// Answer is what a model answered, decoded.
type Answer struct {
	// Text is the visible text, all text blocks joined.
	Text string
	// Reasoning is the thinking, kept for the record only.
	Reasoning string
	// ToolCalls counts the tool calls in the answer.
	ToolCalls int
	// Finish is why the model stopped.
	Finish Finish
}

// AcceptLimits is what an answer is measured by.
type AcceptLimits struct {
	// ReplacedTokens is the size of what the summary replaces, 0: not checked.
	ReplacedTokens int
	// MaxTokens is the cap of a summary, 0: none.
	MaxTokens int
	// Prompt is the prompt that was used: its own lines are no summary.
	Prompt Prompt
	// RequireTag refuses an answer without a <summary> tag, whatever it says.
	RequireTag bool
}

// AcceptSummary takes the summary out of an answer, or says with the error's kind why there is none in it.
//
// What the model stopped for decides first: a refusal or a filter is Refused, the output limit OutputTooLong,
// no reason or an error MalformedOutput, whatever text there is. Then analysis, reasoning and lines of the
// prompt are taken out, and the <summary> block counts, also when its closing tag is missing or followed by
// closing tags of a tool call.
//
// Without the tag the text itself counts, if it is plain text, since models leave the tag out and still write
// a good summary. Plain text does not begin with markup or JSON (that is a tool call written as text), and is
// not a short remark on what the model is about to do. Tagged or not, a short text that declines, tells of an
// error or only holds a place is no summary. A tool call beside an accepted text is left aside; one without
// any is ToolCallOutput.
//
// At last the size: over MaxTokens is OutputTooLong, not below ReplacedTokens is NotSmaller.
func AcceptSummary(a Answer, l AcceptLimits) (string, *Error) {
	if err := acceptFinish(a); err != nil {
		return "", err
	}
	text, leaked := dropPromptLines(a.Text, l.Prompt)
	text = dropPrivate(text)
	summary, tagged := summaryBlock(text)
	if !tagged {
		summary = text
	}
	summary = dropTrailingMarkup(summary)

	switch {
	case summary == "" && leaked:
		return "", Errorf(MalformedOutput,
			"the answer holds nothing but lines of the prompt, or of what stands around a summary")
	case summary == "" && a.ToolCalls > 0:
		return "", Errorf(ToolCallOutput, "the answer is %d tool calls and no text", a.ToolCalls)
	case summary == "":
		return "", Errorf(EmptyOutput, "the answer holds no text%s", reasoningNote(a))
	case !tagged && l.RequireTag:
		return "", Errorf(MalformedOutput, "the answer has no <summary> block")
	case !tagged && toolShaped(summary):
		return "", Errorf(ToolCallOutput, "the answer is a tool call written as text")
	case !tagged && looksAnnounced(summary) && a.ToolCalls > 0:
		return "", Errorf(ToolCallOutput, "the answer is a tool call with a remark, not a summary")
	case !tagged && looksAnnounced(summary):
		return "", Errorf(MalformedOutput, "the answer says what the model is about to do, and no more")
	case looksRefused(summary, tagged):
		return "", Errorf(Refused, "the model declined in so many words")
	case looksPlaceholder(summary):
		return "", Errorf(MalformedOutput, "the answer is an error text or a placeholder")
	}

	tokens := EstimateText(summary)
	if l.MaxTokens > 0 && tokens > l.MaxTokens {
		err := Errorf(OutputTooLong, "the summary has about %d tokens, its cap is %d", tokens, l.MaxTokens)
		err.ActualTokens, err.LimitTokens = tokens, l.MaxTokens
		return "", err
	}
	if l.ReplacedTokens > 0 && tokens >= l.ReplacedTokens {
		err := Errorf(NotSmaller, "the summary has about %d tokens and would replace %d", tokens, l.ReplacedTokens)
		err.ActualTokens, err.LimitTokens = tokens, l.ReplacedTokens
		return "", err
	}
	return summary, nil
}

// acceptFinish judges why the model stopped.
func acceptFinish(a Answer) *Error {
	switch a.Finish {
	case FinishStop, FinishToolUse:
		return nil
	case FinishRefusal:
		return Errorf(Refused, "the model declined to write the summary")
	case FinishContentFilter:
		return Errorf(Refused, "a content filter stopped the answer")
	case FinishLength:
		return Errorf(OutputTooLong, "the answer was cut off at the output limit%s", reasoningNote(a))
	case FinishNone:
		return Errorf(MalformedOutput, "the answer names no finish reason, so it is not complete")
	}
	return Errorf(MalformedOutput, "the answer ended with %q", string(a.Finish))
}

func reasoningNote(a Answer) string {
	if strings.TrimSpace(a.Text) == "" && strings.TrimSpace(a.Reasoning) != "" {
		return ", only reasoning"
	}
	return ""
}

// minPromptLine is the least number of chars at which a line that stands in the prompt was copied from it:
// shorter ones, such as section titles, belong into a summary.
const minPromptLine = 40

// frameSentences and frameLines are what SummaryText puts around a summary. It is put there anew each time: a model
// that gives an earlier summary back would pile it up.
var (
	frameSentences = []string{
		summaryFirstLine + " " + summaryDigest, summaryFirstLine, summaryDigest, summaryTail, summaryContinue,
		summaryAtRest, summaryPropose, summaryRepeatedBelow + " " + summaryRepeated, summaryRepeatedBelow,
	}
	frameLines = regexp.MustCompile(`(?m)^[ \t]*(\[\d+` + regexp.QuoteMeta(summaryOmitted) + `.*\]|` +
		regexp.QuoteMeta(summaryTranscript) + `.*)[ \t]*(\n|$)`)
)

// dropPromptLines takes out whatever the model copied from what is ours: the instruction as a whole, each line that
// stands in it, and what stands around an earlier summary.
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

// flatten makes texts comparable: flat, and without case.
func flatten(s string) string { return strings.ToLower(flat(s)) }

// flat makes texts comparable: in one line, without list marks and runs of white space.
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

// dropPrivate takes out the analysis and the reasoning that stand in front of the summary. One that is never
// closed goes up to the summary, or to the end.
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

// summaryBlock gives what stands in the <summary> block. The tag that opens it stands at the start of a line
// or behind another tag; where none does, it is the last one, since a mention of the tag comes before its
// use. It ends at the last closing tag, or at the end of the text.
func summaryBlock(text string) (body string, found bool) {
	opens := summaryOpen.FindAllStringIndex(text, -1)
	if len(opens) == 0 {
		// Some models take the wrapper of an earlier summary for the form to answer in.
		if rest, wrapped := strings.CutPrefix(text, "<"+summaryTag+">"); wrapped {
			body, _, _ = strings.Cut(rest, "</"+summaryTag+">")
			return strings.TrimSpace(body), true
		}
		// A block whose opening tag went into the prefill or was forgotten still ends somewhere.
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

// dropTrailingMarkup takes closing tags off the end that close nothing in the text, such as what is left of
// a tool call's wrapper.
func dropTrailingMarkup(text string) string {
	at := closingTail.FindStringIndex(text)
	if at == nil {
		return strings.TrimSpace(text)
	}
	body := text[:at[0]]
	for _, tag := range closingTag.FindAllStringSubmatchIndex(text[at[0]:], -1) {
		if strings.Contains(strings.ToLower(body), "<"+strings.ToLower(text[at[0]+tag[2]:at[0]+tag[3]])) {
			// It closes something: it belongs to the text, and so does what stands before it.
			body = text[:at[0]+tag[1]]
		}
	}
	return strings.TrimSpace(body)
}

// toolShaped says whether a text is a tool call: it begins with markup or with JSON, perhaps in a fence.
func toolShaped(text string) bool {
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		_, rest, _ = strings.Cut(rest, "\n")
		text = strings.TrimSpace(rest)
	}
	if tag := leadingTag.FindStringSubmatch(text); tag != nil {
		return true
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[{") {
		return true
	}
	return strings.HasPrefix(text, "<|") || strings.HasPrefix(text, "[TOOL_CALLS]") ||
		strings.HasPrefix(text, "functions.")
}

const (
	// maxRefusalChars is the longest that a refusal or a placeholder gets. A summary may well begin with the
	// same words, but it goes on.
	maxRefusalChars = 600
	// maxTaggedRefusalChars is the same inside of a <summary> block, where it is rarer.
	maxTaggedRefusalChars = 200
)

var refusalStart = regexp.MustCompile(`(?i)^["'*_\s]*(` + strings.Join([]string{
	`(i['’]?m|i am) (very |so |really )?sorry`,
	`sorry[,.! ]`,
	`(i )?apologi[sz]e`,
	`my apologies`,
	`unfortunately,? i `,
	`(i['’]?m|i am) (unable|not able|not in a position|not going to be able|not comfortable)\b`,
	`i (can['’]?t|cannot|can not|could not|couldn['’]?t|won['’]?t|will not|must decline|have to ` +
		`decline|decline|refuse|do not|don['’]t) ` +
		`(help|assist|produce|provide|create|write|generate|do|comply|continue|summari[` +
		`sz]e|fulfil|complete|process|share|engage|feel|have access)`,
	`i (must|have to|need to) (decline|refuse)`,
	`as an (ai|artificial)`,
	`(this|the|your) request (violates|goes against|cannot|can['’]t)`,
	`lo siento`, `no puedo`,
	`désolé`, `je suis désolé`, `je ne peux pas`,
	`es tut mir leid`, `tut mir leid`, `ich kann (das|dir|ihnen|dabei|diese|hier|leider)`,
	`desculpe`, `não posso`, `sinto muito`,
	`mi dispiace`, `non posso`,
	`извините`, `к сожалению`, `я не могу`,
	`抱歉`, `对不起`, `很抱歉`, `我无法`, `我不能`,
	`申し訳`, `すみません`,
	`죄송`,
}, "|") + `)`)

// looksRefused says whether a short text declines.
func looksRefused(text string, tagged bool) bool {
	limit := maxRefusalChars
	if tagged {
		limit = maxTaggedRefusalChars
	}
	return Chars(text) <= limit && refusalStart.MatchString(text)
}

// maxAnnouncementChars is the longest that a remark before an action gets.
const maxAnnouncementChars = 240

var announcement = regexp.MustCompile(
	`(?i)^["'*_\s]*((sure|okay|ok|alright|certainly|of course|great|first|now|next)[,.!:]? )?(` + strings.Join([]string{
		`let me`, `let['’]?s`,
		`i['’]?ll`, `i (will|shall|need to|have to|must|should|am going to|want to|would like to)`, `i['’]?m going to`,
		`(before|to) (i |summari[sz]|answer|continu|proceed|do (that|this|so))`,
		`reading`, `checking`, `looking`,
		`ich (werde|lese|muss|schaue|sehe)`, `je vais`, `voy a`, `vou`, `leggo`, `я (сейчас|прочитаю|посмотрю)`,
		`让我`, `我(来|将|会|先|需要)`, `まず`, `먼저`,
	}, "|") + `)`)

// looksAnnounced says whether a short text is what a model says before it acts.
func looksAnnounced(text string) bool {
	return Chars(text) <= maxAnnouncementChars && announcement.MatchString(text)
}

var placeholder = regexp.MustCompile(`(?i)^[\[("'*_\s]*(` + strings.Join([]string{
	`(error|failed|failure|unable|could not|cannot)\b[^\n]{0,60}\b(generat|creat|produc|summari)[^\n]*`,
	`(api|http|internal|server|request|network|connection|timeout|fatal|unexpected|unknown)[ _]?(server )?error\b[^\n]*`,
	`(error|exception|traceback)\b ?[:(][^\n]*`,
	`(no )?(conversation )?summary( is| was)?( currently)? (not |un)available`,
	`summary (unavailable|missing|pending|failed|goes here|placeholder)`,
	`(no|there is no|there was no|nothing) (prior |previous |earlier |conversation ` +
		`)?(history|conversation|messages|content|transcript|summary|to summari[sz]e)( (to summari[` +
		`sz]e|available|provided|yet|found))*`,
	`(your |insert |the )?summary( text)?( here)?`,
	`text|content|todo|tbd|n/?a|none|null|nil|undefined|empty|ok(ay)?|done|sure|yes|no|\.+|-+|…+`,
}, "|") + `)[\])"'*_.!\s]*$`)

// looksPlaceholder says whether a short text stands where a summary should.
func looksPlaceholder(text string) bool {
	return Chars(text) <= maxRefusalChars && placeholder.MatchString(text)
}
