package pipeline

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Section is one part of a summary, under its heading.
type Section struct {
	// Title is the heading without its marks, "" for the text before the first heading.
	Title string `json:"title"`
	// Text is the text under the heading, Chars its size.
	Text  string `json:"text"`
	Chars int    `json:"chars"`
}

// Sections divides a summary at its headings: those of Markdown, numbered and bold lines. Empty sections are left out.
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
		// "6. All user messages: the text is on the same line" keeps the text.
		if head, rest, split := strings.Cut(title, ": "); split && len(rest) > 0 {
			title, from = head, end-len(rest)
		}
	}
	add(title, summary[from:])
	return out
}

// SummaryFacts are the facts of two summaries of the same messages.
type SummaryFacts struct {
	// OnlyA and OnlyB are the facts in only one of the two, the user's limits first. Both counts those in both.
	OnlyA, OnlyB []Mention
	Both         int
}

// CompareSummaries looks for the facts of source, the messages that both summaries were made from: the limits that the
// user set, names, paths, numbers. What a summary made up is not a fact, and other sentences of the user are rarely
// kept word for word. It is deterministic; the cost is linear. The error is that of the context, if it is done first.
func CompareSummaries(ctx context.Context, source []Message, a, b string) (SummaryFacts, error) {
	return interruptible(ctx, "the comparison of summaries", func(w *work) SummaryFacts {
		return compareSummaries(w, source, a, b)
	})
}

func compareSummaries(w *work, source []Message, a, b string) SummaryFacts {
	var out SummaryFacts
	facts := slices.DeleteFunc(mentionsOf(w, source), func(f Mention) bool { return f.Kind == MentionIntent })
	slices.SortStableFunc(facts, func(a, b Mention) int {
		return cmp.Compare(slices.Index(MentionKinds, a.Kind), slices.Index(MentionKinds, b.Kind))
	})
	said := map[string]bool{}
	facts = slices.DeleteFunc(facts, func(f Mention) bool { // one name is a path to one and a name to another
		key := flatten(w, f.Text)
		defer func() { said[key] = true }()
		return said[key]
	})
	inA, inB := mentionedIn(w, facts, a), mentionedIn(w, facts, b)
	for i, f := range facts {
		switch {
		case inA[i] && inB[i]:
			out.Both++
		case inA[i]:
			out.OnlyA = append(out.OnlyA, f)
		case inB[i]:
			out.OnlyB = append(out.OnlyB, f)
		}
	}
	return out
}
