package pipeline

import "strings"

// Verification is what the check of a summary against its source found.
type Verification struct {
	// ConstraintsMissing are sentences in which the user set a limit and which the model left out.
	ConstraintsMissing []string `json:"constraints_missing"`
	// UnsupportedIdentifiers stand in the summary and nowhere in the source.
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
	// maxConstraints bounds the section of constraints, in chars.
	maxConstraintsChars = 8000
	// maxConstraintChars is the longest sentence that is taken for a limit: what is longer is a paste.
	maxConstraintChars = 600
	// maxIdentifiers bounds the identifiers that are looked up in one summary.
	maxIdentifiers = 1000
	// maxLookAhead bounds the identifiers that the look-ahead adds, and maxLookAheadLine the line of source
	// that stands with each, in chars.
	maxLookAhead     = 40
	maxLookAheadLine = 240
)

// VerifySummary compares a summary with what it was made from, and appends what must not be lost: sentences
// of the user's that set a limit, and for a prepared summary what the agent has used since, in tail, and what
// stands only in the source. It is deterministic and asks no model.
func VerifySummary(summary string, source, tail []Message) (string, Verification) {
	v := Verification{}
	base := newSource(source)
	v.UnsupportedIdentifiers = base.unsupported(summary)
	v.Misattributed = base.misattributed(summary)

	var limits []string
	have := flat(summary)
	for _, c := range constraints(source) {
		if !strings.Contains(have, flat(c)) {
			limits = append(limits, c)
		}
	}
	v.ConstraintsMissing = limits
	kept := withinBudget(limits, maxConstraintsChars)
	summary = appendSection(summary, constraintsTitle, kept)
	used := base.lookAhead(summary, tail)
	summary = appendSection(summary, lookAheadTitle, used)
	v.Appended = append(append([]string(nil), kept...), used...)
	return summary, v
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

// withinBudget keeps the items that fit into limit chars, the shortest first, in their order.
func withinBudget(items []string, limit int) []string {
	sizes := make([]int, len(items))
	for i, item := range items {
		sizes[i] = Chars(item)
	}
	keep := make([]bool, len(items))
	for _, i := range ascending(sizes) {
		if sizes[i] > limit {
			break
		}
		limit -= sizes[i]
		keep[i] = true
	}
	var kept []string
	for i, item := range items {
		if keep[i] {
			kept = append(kept, item)
		}
	}
	return kept
}
