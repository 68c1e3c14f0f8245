package pipeline

import (
	"regexp"
	"strings"
)

// toolShaped reports whether a text is a tool call: it begins with markup or with JSON, perhaps in a fence.
func toolShaped(text string) bool {
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		_, rest, _ = strings.Cut(rest, "\n")
		text = strings.TrimSpace(rest)
	}
	if tag := leadingTag.FindStringSubmatch(text[:min(len(text), pieceBytes)]); tag != nil {
		return true
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[{") {
		return true
	}
	return strings.HasPrefix(text, "<|") || strings.HasPrefix(text, "[TOOL_CALLS]") ||
		strings.HasPrefix(text, "functions.")
}

const (
	// maxRefusalChars is the length up to which a text can be a refusal or a placeholder. A summary may begin with the
	// same words, but is longer.
	maxRefusalChars = 600
	// maxTaggedRefusalChars is the same inside a <summary> block, where refusals are rarer.
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

// looksRefused reports whether a short text declines.
func looksRefused(text string, tagged bool) bool {
	limit := maxRefusalChars
	if tagged {
		limit = maxTaggedRefusalChars
	}
	return Chars(text) <= limit && refusalStart.MatchString(text)
}

// maxAnnouncementChars is the length up to which a text can be a remark before an action.
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

// looksAnnounced reports whether a short text only announces what the model is about to do.
func looksAnnounced(text string) bool {
	return Chars(text) <= maxAnnouncementChars && announcement.MatchString(text)
}

var placeholder = regexp.MustCompile(`(?i)^[\[("'*_\s]*(` + strings.Join([]string{
	`(error|failed|failure|unable|could not|cannot)\b[^\n]{0,60}\b(generat|creat|produc|summari)[^\n]*`,
	`(api|http|internal|server|request|network|connection|timeout|fatal|unexpected|` +
		`unknown)[ _]?(server )?error\b[^\n]*`,
	`(error|exception|traceback)\b ?[:(][^\n]*`,
	`(no )?(conversation )?summary( is| was)?( currently)? (not |un)available`,
	`summary (unavailable|missing|pending|failed|goes here|placeholder)`,
	`(no|there is no|there was no|nothing) (prior |previous |earlier |conversation ` +
		`)?(history|conversation|messages|content|transcript|summary|to summari[sz]e)( (to summari[` +
		`sz]e|available|provided|yet|found))*`,
	`(your |insert |the )?summary( text)?( here)?`,
	`text|content|todo|tbd|n/?a|none|null|nil|undefined|empty|ok(ay)?|done|sure|yes|no|\.+|-+|…+`,
}, "|") + `)[\])"'*_.!\s]*$`)

// looksPlaceholder reports whether a short text is a placeholder for a summary.
func looksPlaceholder(text string) bool {
	return Chars(text) <= maxRefusalChars && placeholder.MatchString(text)
}
