package pipeline

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

var (
	userHeading = regexp.MustCompile(`(?im)^[ \t#>*_]*(?:\d{1,2}[.):][ \t]*)?[ \t*_]*(?:list of )?(?:all ` +
		`)?(?:the )?user(?:'s|’s)? messages[ \t*_]*(?:\([^)\n]*\))?[ \t*_]*(?:[:：]|$)[*_]*`)
	sixthHeading = regexp.MustCompile(`(?m)^[ \t#>*_]*6[.):、．][^\n]*?(?:[:：]|$)[*_]*`)
	nextHeading  = regexp.MustCompile(
		`(?m)^[ \t]{0,1}(?:#{1,6}[ \t]|[*_]*\d{1,2}[.):、．][ \t]*[*_]*\S|\*\*[^*\n]+\*\*:?[ \t]*$)`)
	fifthSection = regexp.MustCompile(`(?m)^[ \t#>*_]*5[.):、．]`)
	nextNumbered = regexp.MustCompile(`(?m)^[ \t#>*_]*7[.):、．]`)
)

// userSection is the place of the section in a summary that lists the user's messages.
type userSection struct{ body, end int }

// findUserSection finds the section by its title, or as the sixth of numbered sections if the title is in another
// language.
func findUserSection(w *work, summary string) (userSection, bool) {
	if m := w.find(userHeading, summary); m != nil {
		end := len(summary)
		if strings.HasPrefix(strings.TrimLeft(summary[m[0]:m[1]], " \t#>*_"), "6") {
			if next := w.find(nextNumbered, summary[m[1]:]); next != nil {
				return userSection{body: m[1], end: m[1] + next[0]}, true
			}
		}
		if next := w.find(nextHeading, summary[m[1]:]); next != nil {
			end = m[1] + next[0]
		}
		return userSection{body: m[1], end: end}, true
	}
	m := w.find(sixthHeading, summary)
	if m == nil || w.find(fifthSection, summary[:m[0]]) == nil {
		return userSection{}, false
	}
	next := w.find(nextNumbered, summary[m[1]:])
	if next == nil {
		return userSection{}, false
	}
	return userSection{body: m[1], end: m[1] + next[0]}, true
}

// UserMessagesSection puts the user's real messages into the section of a summary that lists them: in order, as many of
// the newest as fit into budgetChars, with the oldest of those cut if it does not fit whole. A summary without that
// section is returned unchanged, and so is any summary if there are no messages or no budget. The cost is linear. The
// error is that of the context, if it is done first.
func UserMessagesSection(ctx context.Context, summary string, users []Message, budgetChars int) (string, error) {
	return interruptible(ctx, "the list of the user's messages", func(w *work) string {
		return userMessagesSection(w, summary, users, budgetChars)
	})
}

func userMessagesSection(w *work, summary string, users []Message, budgetChars int) string {
	section, found := findUserSection(w, summary)
	if !found {
		return summary
	}
	list := userList(w, users, budgetChars)
	if list == "" {
		return summary
	}
	rest := strings.TrimLeft(summary[section.end:], "\r\n")
	out := summary[:section.body] + "\n" + list
	if rest != "" {
		out += "\n\n" + rest
	}
	return out
}

// SummarizedUsers returns what the user said in messages that are summarized: the user messages that an earlier summary
// among them lists, and then the messages themselves. It is for UserMessagesSection, so that what the user said long
// ago is not lost with the second compaction. The cost is linear. The error is that of the context, if
// it is done first.
func SummarizedUsers(ctx context.Context, source []Message) ([]Message, error) {
	return interruptible(ctx, "the search for the user's messages", func(w *work) []Message {
		return summarizedUsers(w, source)
	})
}

func summarizedUsers(w *work, source []Message) []Message {
	var users []Message
	for _, m := range source {
		w.spend(0)
		switch {
		case m.Genuine():
			users = append(users, m)
		case m.Kind == KindSummary:
			for _, p := range m.Parts {
				for _, text := range listedUsers(w, p.Text) {
					users = append(users, Message{Role: RoleUser, Parts: []Part{{Kind: PartText, Text: text}}})
				}
			}
		}
	}
	return users
}

// listedUsers returns the user messages that a summary lists: the entries of that section, or the quotes of a digest.
// The end of an entry shows how much was cut.
func listedUsers(w *work, summary string) []string {
	w.spend(len(summary))
	if at := strings.Index(summary, digestHead); at >= 0 {
		return quotedUsers(w, summary[at:])
	}
	section, found := findUserSection(w, summary)
	if !found {
		return nil
	}
	var list listItems
	for line := range strings.Lines(summary[section.body:section.end]) {
		w.spend(len(line))
		list.add(strings.TrimRight(line, "\r\n"))
	}
	items := list.all()
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

// quotedUsers returns the quotes of the user in a digest.
func quotedUsers(w *work, digest string) []string {
	_, section, found := strings.Cut(digest, "\n"+sectionUser+"\n")
	if !found {
		return nil
	}
	var quotes []string
	var last strings.Builder
	open := false
	end := func() {
		if open {
			quotes = append(quotes, last.String())
			last.Reset()
		}
		open = false
	}
	for line := range strings.Lines(section) {
		w.spend(len(line))
		line = strings.TrimRight(line, "\r\n")
		switch {
		case !open && strings.HasPrefix(line, "<"+quoteTag+" "):
			open = true
		case open && line == "</"+quoteTag+">":
			end()
		case open:
			last.WriteString(line + "\n")
		case strings.HasPrefix(line, "## "):
			return quotes
		}
	}
	end()
	return quotes
}

// userList lists user messages within a budget.
func userList(w *work, users []Message, budget int) string {
	var items []string
	left := 0
	for i := len(users) - 1; i >= 0; i-- {
		w.spend(bytesOf(users[i]))
		text := userText(users[i])
		if !users[i].Genuine() || text == "" {
			continue
		}
		item := listItem(text)
		switch size := Chars(item) + 1; {
		case left > 0:
			left++
		case size <= budget:
			items, budget = append(items, item), budget-size
		default:
			if budget > minListedChars {
				items = append(items, cutItem(text, budget-1))
			} else {
				left++
			}
			budget = 0
		}
	}
	if len(items) == 0 {
		return ""
	}
	var b strings.Builder
	if left > 0 {
		fmt.Fprintf(&b, "[%d earlier message(s) not listed]\n", left)
	}
	for i := len(items) - 1; i >= 0; i-- {
		b.WriteString(items[i])
		if i > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// listItem returns a text as an entry of a list, its further lines indented.
func listItem(text string) string { return "- " + strings.ReplaceAll(text, "\n", "\n  ") }

// cutItem returns a list item cut to limit chars. The cut comes first and the indent after it, so that the marker is
// indented too.
func cutItem(text string, limit int) string {
	for keep := limit; ; {
		item := listItem(Truncate(text, keep))
		over := Chars(item) - limit
		if over <= 0 || keep <= 0 {
			return item
		}
		keep -= over
	}
}

// minListedChars is the least of a message that is worth listing.
const minListedChars = 80

// userText returns the text of a user message, without tool results that it may contain.
func userText(m Message) string {
	var texts []string
	for _, p := range m.Parts {
		switch {
		case p.Kind == PartText && strings.TrimSpace(p.Text) != "":
			text, _ := omitBinary(strings.TrimSpace(p.Text))
			texts = append(texts, text)
		case p.Kind == PartImage || p.Kind == PartFile:
			text, _ := renderBinary(p)
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}
