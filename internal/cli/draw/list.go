package draw

import (
	"time"

	"github.com/google/uuid"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/runreport"
)

// Unfinished is the word for runs that have no outcome yet.
const Unfinished = runreport.Unfinished

// RunTable returns a table of runs: one short line each, or with wide all columns.
func RunTable(list []wire.Run, wide bool) term.Table {
	var t term.Table
	if wide {
		t.Row("RUN", "ASKED FOR (UTC)", "CONVERSATION", "TRIGGER", "OUTCOME", "ERROR", "SUMMARIZER", "TOKENS", "TOOK",
			"CALLS", "COST")
		for _, r := range list {
			t.Row(r.ID, term.When(r.Created), r.Conversation, string(r.Trigger.Kind), endWord(r), string(r.ErrorKind),
				r.Summarizer,
				sizeWords(r), runTook(r), term.Count(r.Usage.Calls), CostCell(r.Cost))
		}
		return t
	}
	t.Row("RUN", "ASKED (UTC)", "CONV", "TRIGGER", "OUTCOME", "TOKENS", "COST")
	for _, r := range list {
		outcome := endWord(r)
		if r.Outcome == precis.OutcomeFailed && r.ErrorKind != "" {
			outcome = string(r.ErrorKind) // an error kind implies the failure, and the line is short
		}
		size := ""
		if r.TokensBefore > 0 {
			size = term.Short(r.TokensBefore)
		}
		if r.TokensAfter > 0 {
			size += "→" + term.Short(r.TokensAfter)
		}
		cost := CostCell(r.Cost)
		if r.Usage.Calls == 0 {
			cost = ""
		}
		t.Row(ShortRun(r.ID), r.Created.UTC().Format("01-02 15:04"), shortConversation(r.Conversation),
			string(r.Trigger.Kind), outcome, size, cost)
	}
	t.Fit(2, 4)
	return t
}

// ShortRun returns the end of a run's id, which every command takes.
func ShortRun(id string) string { return id[max(0, len(id)-runreport.ShortID):] }

// shortConversation returns the id of a conversation. Of a generated id it returns the end, because the beginning is
// the same for all ids of one day.
func shortConversation(id string) string {
	if uuid.Validate(id) == nil {
		return "…" + id[len(id)-6:]
	}
	return id
}

// endWord returns the outcome of a run, and whether its compaction was undone.
func endWord(r wire.Run) string {
	switch {
	case r.Outcome == "":
		return Unfinished
	case r.Undone != nil:
		return string(r.Outcome) + ", undone"
	}
	return string(r.Outcome)
}

// sizeWords returns the size of the context before and after, in tokens.
func sizeWords(r wire.Run) string {
	if r.TokensBefore == 0 {
		return ""
	}
	size := term.Tokens(r.TokensBefore, r.Trigger.Estimated)
	if r.TokensAfter > 0 {
		size += " → ≈" + term.Count(r.TokensAfter)
	}
	return size
}

// runTook returns how long a run took, "" if it has not ended.
func runTook(r wire.Run) string {
	if r.Started == nil || r.Finished == nil {
		return ""
	}
	return term.Took(r.Finished.Sub(*r.Started))
}

// Duration formats milliseconds, "" for 0.
func Duration(ms int64) string {
	if ms == 0 {
		return ""
	}
	return term.Took(time.Duration(ms) * time.Millisecond)
}
