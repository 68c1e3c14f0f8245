package pipeline

import (
	"context"
	"strings"
)

// Verification is the result of checking a summary against its source.
type Verification struct {
	// ConstraintsMissing are sentences in which the user set a limit and which the model left out.
	ConstraintsMissing []string `json:"constraints_missing"`
	// UnsupportedIdentifiers are in the summary and nowhere in the source.
	UnsupportedIdentifiers []string `json:"unsupported_identifiers"`
	// Misattributed are quotes of the user that no user message contains.
	Misattributed []string `json:"misattributed"`
	// Appended is what the check added to the summary, one string per entry.
	Appended []string `json:"appended"`
}

// The sections that the check adds to a summary. A later compaction finds them by their titles.
const (
	constraintsTitle = "## Limits that the user set, word for word"
	lookAheadTitle   = "## Used after this part, and found only in it"
)

const (
	// maxConstraintsChars bounds the section of limits, in chars.
	maxConstraintsChars = 8000
	// maxConstraintChars is the longest sentence that is taken for a limit; a longer one is probably pasted.
	maxConstraintChars = 600
	// maxConstraints is how many limits are looked for in one summary. Nobody sets more; a text that seems
	// to is pasted.
	maxConstraints = 5000
	// maxQuotes bounds the quotes of the user that are looked up for one summary.
	maxQuotes = 2000
	// maxIdentifiers bounds the identifiers that are looked up for one summary.
	maxIdentifiers = 500
	// maxLookAhead bounds the identifiers that the look-ahead adds, and maxLookAheadLine the source line beside each,
	// in chars.
	maxLookAhead     = 40
	maxLookAheadLine = 240
)

// VerifySummary compares a summary with source, the messages that it was made from, and with tail, those that stay
// verbatim behind it (nil: none). It appends what must not be lost: sentences in which the user set a limit and which
// are in neither, and what the agent has used in the tail although it is only in the source, which a summary that was
// prepared ahead cannot contain. What cannot be corrected is flagged. The check is deterministic and calls no model;
// the cost is linear. The error is that of the context, if it is done first.
//
// Call UserMessagesSection first: it removes what the model made up in that section.
func VerifySummary(ctx context.Context, summary string, source, tail []Message) (string, Verification, error) {
	var v Verification
	summary, err := interruptible(ctx, "the check of the summary", func(w *work) string {
		var checked string
		checked, v = verify(w, summary, source, tail)
		return checked
	})
	return summary, v, err
}

func verify(w *work, summary string, source, tail []Message) (string, Verification) {
	before, behind := newSource(w, source), newSource(w, tail)
	v := Verification{
		UnsupportedIdentifiers: unsupported(w, summary, before, behind),
		Misattributed:          misattributed(w, summary, before, behind),
	}

	limits := missingLimits(w, summary, constraints(w, source), behind)
	for _, c := range limits {
		v.ConstraintsMissing = append(v.ConstraintsMissing, c.text)
	}
	kept := withinBudget(limits, maxConstraintsChars)
	summary = appendSection(summary, constraintsTitle, kept)
	used := lookAhead(w, summary, source, tail)
	summary = appendSection(summary, lookAheadTitle, used)
	v.Appended = append(append(v.Appended, kept...), used...)
	return summary, v
}

// missingLimits returns the limits that are neither in the summary nor in a user message behind it.
func missingLimits(w *work, summary string, all []constraint, behind *sourceTexts) []constraint {
	if len(all) == 0 {
		return nil
	}
	texts, low := make([]string, len(all)), make([]string, len(all))
	for i, c := range all {
		texts[i], low[i] = flat(w, c.text), flatten(w, c.text)
	}
	inSummary := firstPlaces(w, texts, flat(w, summary))
	inTail := firstPlaces(w, low, strings.Join(behind.users, "\n"))
	var missing []constraint
	for i, c := range all {
		if inSummary[i] < 0 && inTail[i] < 0 {
			missing = append(missing, c)
		}
	}
	return missing
}

// appendSection adds items to the section with the title. It creates the section if there is none.
func appendSection(summary, title string, items []string) string {
	if len(items) == 0 {
		return summary
	}
	var lines strings.Builder
	for _, item := range items {
		lines.WriteString("\n- " + strings.ReplaceAll(item, "\n", "\n  "))
	}
	list := lines.String()
	summary = strings.TrimRight(summary, " \t\r\n")
	at := strings.Index(summary, title)
	if at < 0 {
		return summary + "\n\n" + title + "\n" + list
	}
	end := len(summary)
	if next := strings.Index(summary[at+len(title):], "\n## "); next >= 0 {
		end = at + len(title) + next
	}
	return strings.TrimRight(summary[:end], "\n") + list + summary[end:]
}

// withinBudget keeps the limits that fit into budget chars, in order, the likeliest of them first.
func withinBudget(limits []constraint, budget int) []string {
	keep := make([]bool, len(limits))
	for _, i := range byLikelihood(limits) {
		if size := Chars(limits[i].text); size <= budget {
			budget -= size
			keep[i] = true
		}
	}
	var kept []string
	for i, c := range limits {
		if keep[i] {
			kept = append(kept, c.text)
		}
	}
	return kept
}
