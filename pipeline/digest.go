package pipeline

import (
	"context"
	"strings"
)

// DigestInput is what a digest is made from.
type DigestInput struct {
	// Messages in order, a prior summary (KindSummary) first if there is one.
	Messages []Message
	// Todo is the current list of open tasks, such as the one that the agent keeps with a tool; "" if there is none.
	Todo string
	// BudgetChars bounds the digest, in chars.
	BudgetChars int
}

// digestHead is the first line of a digest. A later digest recognizes it and merges the parts.
const digestHead = "[Digest: no model wrote this. It quotes the conversation; what it leaves out is in the transcript.]"

// The sections of a digest, in order. The user's words come before everything from tools.
const (
	sectionEarlier  = "## Earlier summary"
	sectionUser     = "## What the user said"
	sectionTodo     = "## Open todos"
	sectionSaid     = "## What was said last in each turn"
	sectionFiles    = "## Files touched"
	sectionCommands = "## Commands run"
)

// The elements of a digest. They differ from those of a rendered transcript and of the context, so that neither has to
// escape a digest inside it.
const (
	quoteTag   = "quote"
	earlierTag = "earlier_summary"
)

var digestTags = append([]string{quoteTag, earlierTag}, reservedTags...)

// escapeDigest is escapeTags for a text in a digest.
func escapeDigest(s string) string { return escapeFolded(s, digestTags) }

// digestUseful is the least that a cut quote keeps, in chars.
const digestUseful = 80

// Digest returns a summary without a model, so that a compaction succeeds when no model answers: the whole prior
// summary, every genuine user message, whole or cut to a fair share, the last statement of the assistant in each turn,
// the files that its tools touched and the commands that they ran, and the open todos. The same input gives the same
// digest, which is never over the budget. If the budget is short, the earlier summary comes first, then the user's
// words, newer before older, then the rest. A prior summary that is a digest is taken apart and merged, so that digests
// do not nest. The cost is linear, except for sorting. The error is that of the context, if it is done first.
func Digest(ctx context.Context, in DigestInput) (string, error) {
	return interruptible(ctx, "the digest", func(w *work) string { return makeDigest(w, in) })
}

func makeDigest(w *work, in DigestInput) string {
	d := collectDigest(w, in.Messages)
	if in.Todo != "" {
		d.todo = in.Todo
	} else if open, listed := openTasks(w, in.Messages); listed {
		d.todo = strings.Join(listLines(open), "\n")
	}
	d.todo = strings.TrimSpace(escapeDigest(d.todo))
	return d.writeWithLimits(in.Messages, in.BudgetChars)
}

// limitsShare is the divisor of the budget for limits that the user set and that were cut out of the messages.
const limitsShare = 4

// writeWithLimits writes the digest and, if quotes are cut, the limits that the user set in them, word for word.
func (d *digest) writeWithLimits(messages []Message, budget int) string {
	text := d.write(budget)
	none, limits := newSource(d.work, nil), constraints(d.work, messages)
	if len(missingLimits(d.work, text, limits, none)) == 0 {
		return text
	}
	room := min(maxConstraintsChars, budget/limitsShare)
	text = strings.TrimRight(d.write(budget-room), "\n")
	missing := missingLimits(d.work, text, limits, none)
	room -= len("\n\n" + constraintsTitle + "\n")
	for i := range missing {
		missing[i].text = escapeDigest(missing[i].text)
		room -= len("\n- ") + len("  ")*strings.Count(missing[i].text, "\n")
	}
	return appendSection(text, constraintsTitle, withinBudget(missing, room))
}

// listLines returns texts as entries of a list.
func listLines(items []string) []string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = listItem(item)
	}
	return lines
}
