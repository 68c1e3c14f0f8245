package pipeline

import (
	"cmp"
	"slices"
	"strings"
)

// Verification is what the check of a summary against its source found.
type Verification struct {
	// ConstraintsMissing are sentences in which the user set a limit and which the model left out.
	ConstraintsMissing []string `json:"constraints_missing"`
	// UnsupportedIdentifiers are in the summary and nowhere in the source.
	UnsupportedIdentifiers []string `json:"unsupported_identifiers"`
	// Misattributed are quotes of the user that no user message contains.
	Misattributed []string `json:"misattributed"`
	// Appended is what the check added to the summary, an entry each.
	Appended []string `json:"appended"`
}

// The sections that the check adds to a summary. The titles are how a later compaction finds them again.
const (
	constraintsTitle = "## Limits that the user set, word for word"
	lookAheadTitle   = "## Used after this part, and found only in it"
)

const (
	// maxConstraintsChars bounds the section of limits, in chars.
	maxConstraintsChars = 8000
	// maxConstraintChars is the longest sentence that is taken for a limit: what is longer is a paste.
	maxConstraintChars = 600
	// maxIdentifiers bounds the identifiers that are looked up for one summary.
	maxIdentifiers = 500
	// maxLookAhead bounds the identifiers that the look-ahead adds, and maxLookAheadLine the line of the
	// source beside each, in chars.
	maxLookAhead     = 40
	maxLookAheadLine = 240
)

// VerifySummary compares a summary with source, the messages that it was made from, and with tail, those that
// stay verbatim behind it (nil: none). It appends what must not be lost: sentences of the user's that set a
// limit and are in neither, and what the agent has used in the tail although it is only in the source,
// which a summary that was prepared ahead cannot know. What it cannot mend it flags. It is deterministic and
// asks no model; the cost is linear.
//
// UserMessagesSection comes before it: that removes what the model made up in that section.
func VerifySummary(summary string, source, tail []Message) (string, Verification) {
	before, behind := newSource(source), newSource(tail)
	v := Verification{
		UnsupportedIdentifiers: unsupported(summary, before, behind),
		Misattributed:          misattributed(summary, before, behind),
	}

	limits := missingLimits(summary, source, behind)
	for _, c := range limits {
		v.ConstraintsMissing = append(v.ConstraintsMissing, c.text)
	}
	kept := withinBudget(limits, maxConstraintsChars)
	summary = appendSection(summary, constraintsTitle, kept)
	used := lookAhead(summary, source, tail)
	summary = appendSection(summary, lookAheadTitle, used)
	v.Appended = append(append(v.Appended, kept...), used...)
	return summary, v
}

// missingLimits returns the limits in the source that neither a summary nor a user message behind it holds.
func missingLimits(summary string, source []Message, behind *sourceTexts) []constraint {
	all := constraints(source)
	texts, low := make([]string, len(all)), make([]string, len(all))
	for i, c := range all {
		texts[i], low[i] = flat(c.text), flatten(c.text)
	}
	inSummary := firstPlaces(texts, flat(summary))
	inTail := firstPlaces(low, strings.Join(behind.users, "\n"))
	var missing []constraint
	for i, c := range all {
		if inSummary[i] < 0 && inTail[i] < 0 {
			missing = append(missing, c)
		}
	}
	return missing
}

// appendSection adds items to the section with the title, or the section when there is none.
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

// withinBudget keeps the limits that fit into budget chars, in their order: those of short messages first,
// since a long one is rather a paste, and there the short sentences.
func withinBudget(limits []constraint, budget int) []string {
	order := make([]int, len(limits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(limits[a].messageChars, limits[b].messageChars),
			cmp.Compare(Chars(limits[a].text), Chars(limits[b].text)))
	})
	keep := make([]bool, len(limits))
	for _, i := range order {
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
