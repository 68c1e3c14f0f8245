package pipeline

import (
	"strings"
)

// Section is one part of a summary, under its heading.
type Section struct {
	// Title is the heading without its marks, "" for what stands before the first.
	Title string `json:"title"`
	// Text is what stands under it, Chars its size.
	Text  string `json:"text"`
	Chars int    `json:"chars"`
}

// Sections divides a summary at its headings: Markdown's, numbered and bold lines. Empty ones are left out.
func Sections(summary string) []Section {
	var out []Section
	add := func(title, text string) {
		title = strings.Trim(strings.TrimSpace(title), "#*_: \t")
		if text = strings.TrimSpace(text); title != "" || text != "" {
			out = append(out, Section{Title: title, Text: text, Chars: Chars(text)})
		}
	}
	title, from := "", 0
	for _, at := range nextHeading.FindAllStringIndex(summary, -1) {
		if at[0] < from {
			continue
		}
		add(title, summary[from:at[0]])
		end := len(summary)
		if n := strings.IndexByte(summary[at[0]:], '\n'); n >= 0 {
			end = at[0] + n
		}
		title, from = summary[at[0]:end], end
		// "6. All user messages: the text goes on in the line" keeps the text.
		if head, rest, split := strings.Cut(title, ": "); split && len(rest) > 0 {
			title, from = head, end-len(rest)
		}
	}
	add(title, summary[from:])
	return out
}

// FactKind is what a fact is.
type FactKind string

// The kinds of facts that a program can look for in a summary.
const (
	FactLimit  FactKind = "limit"  // a sentence in which the user set a limit
	FactURL    FactKind = "url"    //
	FactPath   FactKind = "path"   // a path, or the name of a file
	FactHash   FactKind = "hash"   // a commit, a UUID
	FactNumber FactKind = "number" // a number with its unit
	FactName   FactKind = "name"   // what stands in quotation marks or code marks
)

// Fact is something that the summarised messages say and a summary holds or does not.
type Fact struct {
	Kind FactKind `json:"kind"`
	Text string   `json:"text"`
}

// SummaryFacts are the facts of two summaries of the same messages.
type SummaryFacts struct {
	// OnlyA and OnlyB stand in one of the two alone, limits first; Both counts what stands in both.
	OnlyA, OnlyB []Fact
	Both         int
}

// CompareSummaries looks for the facts of source, the messages that both summaries were made from: the limits that the
// user set, and the identifiers that either summary names and the messages have. What a summary made up is no fact.
// It is deterministic; the cost is linear.
func CompareSummaries(source []Message, a, b string) SummaryFacts {
	var out SummaryFacts
	put := func(f Fact, inA, inB bool) {
		switch {
		case inA && inB:
			out.Both++
		case inA:
			out.OnlyA = append(out.OnlyA, f)
		case inB:
			out.OnlyB = append(out.OnlyB, f)
		}
	}
	limits := constraints(source)
	texts := make([]string, len(limits))
	for i, c := range limits {
		texts[i] = flat(c.text)
	}
	inA, inB := firstPlaces(texts, flat(a)), firstPlaces(texts, flat(b))
	for i, c := range limits {
		put(Fact{FactLimit, c.text}, inA[i] >= 0, inB[i] >= 0)
	}

	var ids []string
	seen := map[string]bool{}
	for _, summary := range []string{a, b} {
		for _, id := range identifiersIn(summary, maxIdentifiers) {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	said := occurring(ids, newSource(source))
	hasA, hasB := occurring(ids, &sourceTexts{raw: a}), occurring(ids, &sourceTexts{raw: b})
	for i, id := range ids {
		if said[i] {
			put(Fact{kindOfIdentifier(id), id}, hasA[i], hasB[i])
		}
	}
	return out
}

// kindOfIdentifier sorts what identifiersIn finds.
func kindOfIdentifier(id string) FactKind {
	whole := func(at []int) bool { return at != nil && at[0] == 0 && at[1] == len(id) }
	switch {
	case strings.HasPrefix(id, "http://"), strings.HasPrefix(id, "https://"):
		return FactURL
	case whole(hashForm.FindStringIndex(id)):
		return FactHash
	case whole(unitForm.FindStringIndex(id)):
		return FactNumber
	case looksPath(id), whole(fileForm.FindStringIndex(id)):
		return FactPath
	}
	return FactName
}
