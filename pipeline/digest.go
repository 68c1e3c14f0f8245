package pipeline

import "strings"

// DigestInput is what a digest is made of.
type DigestInput struct {
	// Messages in order, a prior summary (KindSummary) first if there is one.
	Messages []Message
	// Todo is the current list of what is open, "": the one that the agent keeps with a tool, if it does.
	Todo string
	// BudgetChars bounds the digest, in chars.
	BudgetChars int
}

// digestHead is the first line of a digest: it says what it is, and lets a later digest take it apart.
const digestHead = "[Digest: no model wrote this. It quotes the conversation; what it leaves out is in the transcript.]"

// The sections of a digest, in order. What the user said comes before everything from tools.
const (
	sectionEarlier  = "## Earlier summary"
	sectionUser     = "## What the user said"
	sectionTodo     = "## Open todos"
	sectionSaid     = "## What was said last in each turn"
	sectionFiles    = "## Files touched"
	sectionCommands = "## Commands run"
)

// The elements of a digest. They are not those of a rendered transcript or of the context, so that neither
// has to escape a digest inside it.
const (
	quoteTag   = "quote"
	earlierTag = "earlier_summary"
)

var digestTags = append([]string{quoteTag, earlierTag}, reservedTags...)

// escapeDigest is escapeTags for a text in a digest.
func escapeDigest(s string) string { return escapeNamed(s, digestTags) }

// digestUseful is the least that a quote is cut to, in chars.
const digestUseful = 80

// Digest is a summary without a model, so that a compaction lands when no model answers: the prior summary
// whole, every genuine user message, whole or cut to a fair share, the last thing that the assistant said
// in each turn, the files that its tools touched and the commands that they ran, and the open todos. The
// same input gives the same digest; it is never over the budget. Where the budget is short, the earlier
// summary comes first, then the user's words, the newest before the older ones, then the rest. A prior
// summary that is a digest itself is taken apart and merged, so that digests do not nest.
func Digest(in DigestInput) string {
	d := collectDigest(in.Messages)
	if in.Todo != "" {
		d.todo = in.Todo
	} else if open, listed := OpenTasks(in.Messages); listed {
		d.todo = strings.Join(listLines(open), "\n")
	}
	d.todo = strings.TrimSpace(escapeDigest(d.todo))
	return d.writeWithLimits(in.Messages, in.BudgetChars)
}

// limitsShare is how much of a digest may go to limits of the user's that were cut out of their messages.
const limitsShare = 4

// writeWithLimits writes the digest, and where quotes are cut the limits that the user set in them, word for word.
func (d *digest) writeWithLimits(messages []Message, budget int) string {
	text := d.write(budget)
	none := newSource(nil)
	if len(missingLimits(text, messages, none)) == 0 {
		return text
	}
	room := min(maxConstraintsChars, budget/limitsShare)
	text = strings.TrimRight(d.write(budget-room), "\n")
	missing := missingLimits(text, messages, none)
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
