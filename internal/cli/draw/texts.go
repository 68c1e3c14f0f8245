package draw

import (
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
)

// Texts returns the requested texts of a run, each under a heading.
func Texts(t *wire.RunTexts) string {
	if t == nil {
		return ""
	}
	var b strings.Builder
	section := func(title, text string) {
		rule := strings.Repeat("─", max(3, term.LineWidth-4-len([]rune(title))))
		b.WriteString("\n── " + title + " " + rule + "\n")
		b.WriteString(strings.TrimRight(term.Printable(text), "\n") + "\n")
	}
	for _, p := range t.Prompts {
		title := fmt.Sprintf("prompt of step %d, for %s", p.Call, p.Summarizer)
		if p.Body != "" {
			section(title, p.Body)
			continue
		}
		section(title+": system", p.System)
		section(title+": user", p.User)
	}
	for _, answer := range t.Answers {
		title := fmt.Sprintf("answer to step %d.%d, by %s", answer.Call, answer.Attempt, answer.Summarizer)
		if answer.ErrorKind != "" {
			title += ", " + string(answer.ErrorKind)
		}
		text := answer.Text
		if text == "" {
			text = answer.Raw
		}
		section(title, text)
	}
	for _, o := range t.Omitted {
		var rows term.Table
		rows.Row("MESSAGE", "ROLE", "CHARS", "FATE")
		for _, m := range o.Messages {
			rows.Row(fmt.Sprint(m.Seq), string(m.Role), term.Count(m.Chars), string(m.Fate))
		}
		var list strings.Builder
		_ = rows.Write(&list)
		section(fmt.Sprintf("shortened in the input of step %d, for %s", o.Call, o.Summarizer), list.String())
	}
	if t.Summary != "" {
		section("summary", t.Summary)
	}
	if t.Checked != nil {
		var found strings.Builder
		list := func(title string, items []string) {
			if len(items) > 0 {
				found.WriteString(title + ":\n")
				for _, item := range items {
					found.WriteString("- " + term.OneLine(item) + "\n")
				}
			}
		}
		list("rules of the user's that the model left out", t.Checked.ConstraintsMissing)
		list("added to the summary", t.Checked.Appended)
		list("names and numbers that are not in the source", t.Checked.UnsupportedIdentifiers)
		list("attributed to the user, who did not say it", t.Checked.Misattributed)
		if found.Len() == 0 {
			found.WriteString("nothing is missing, and nothing was invented\n")
		}
		section("what the check of the summary found", found.String())
	}
	if t.Context != "" {
		section("context", t.Context)
	}
	if t.Deleted > 0 {
		b.WriteString(
			fmt.Sprintf("\n%s deleted with the content of the conversation; `precis compact --keep` keeps them.\n",
				term.PluralWere(t.Deleted, "text")))
	}
	return b.String()
}
