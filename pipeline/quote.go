package pipeline

import (
	"context"
	"strings"
	"unicode"
)

// QuoteMessage returns a message as an element of a readable transcript: a tag with its number and the role of its
// author, its text, and the closing tag. Nothing in the text can close the element or open another one. The text is
// that of RenderMessage, "" for an empty message.
func QuoteMessage(m Message) (open, text, end string) {
	return openTag(messageTag, m.Seq, renderRole(m)), escapeTags(RenderMessage(m)), "</" + messageTag + ">"
}

// Quote returns any text so that it can be in or beside a readable transcript: on one line, at most limit chars,
// without any of our tags in it.
func Quote(s string, limit int) string {
	return Truncate(escapeTags(oneLineOf(s)), limit)
}

// QuoteText returns any text, such as a note, so that it can be beside a readable transcript: nothing in it is one of
// our tags or a part of a model's frame. Quoting twice changes nothing more.
func QuoteText(s string) string { return escapeTags(s) }

// QuoteSummary returns the text of a summary message, as SummaryText makes it, so that nothing in it but its own tags
// is one of ours. Builds with fewer rules may have written it.
func QuoteSummary(s string) string {
	const open, end = "<" + summaryTag + ">", "</" + summaryTag + ">"
	from, to := len(open), strings.LastIndex(s, end)
	if !strings.HasPrefix(s, open) || to < from {
		return escapeTags(s)
	}
	return open + escapeTags(s[from:to]) + end + escapeTags(s[to+len(end):])
}

// FilesTouched lists the files that the tools of the messages read or changed, by the names of their arguments, each
// once, the one that was touched last at the end. changed has those that were not only read. Searches do not count. The
// cost is linear, except for sorting. The error is that of the context, if it is done first.
func FilesTouched(ctx context.Context, ms []Message) (files []string, changed map[string]bool, err error) {
	d, err := interruptible(ctx, "the search for files", func(w *work) *digest {
		d := newDigest(w)
		for _, m := range ms {
			w.spend(0)
			for _, p := range m.Parts {
				if p.Kind == PartToolCall {
					d.call(p, false)
				}
			}
		}
		return d
	})
	if err != nil {
		return nil, nil, err
	}
	return d.files.lines(), d.changed, nil
}

// oneLineOf joins the lines of a text.
func oneLineOf(s string) string {
	fields := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	return strings.Join(fields, " ")
}
