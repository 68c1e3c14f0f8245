package draw

import (
	"time"

	"github.com/google/uuid"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/runreport"
	"precis/internal/store/runs"
)

// Unfinished is the word for runs that have no outcome yet.
const Unfinished = runreport.Unfinished

// RunTable is a list of runs, within a line each or with all columns.
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
			outcome = string(r.ErrorKind) // that it failed goes without saying, and takes room
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

// ShortRun is the end of a run's id.
func ShortRun(id string) string { return id[max(0, len(id)-runs.ShortID):] }

// shortConversation is a conversation's id, of one that we made its end: those of one day begin alike.
func shortConversation(id string) string {
	if uuid.Validate(id) == nil {
		return "…" + id[len(id)-6:]
	}
	return id
}

// endWord is how a run ended, and that its marker was taken back.
func endWord(r wire.Run) string {
	switch {
	case r.Outcome == "":
		return Unfinished
	case r.Undone != nil:
		return string(r.Outcome) + ", undone"
	}
	return string(r.Outcome)
}

// sizeWords are the context's tokens before and after.
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

// runTook is how long a run took, or has taken so far.
func runTook(r wire.Run) string {
	if r.Started == nil || r.Finished == nil {
		return ""
	}
	return term.Took(r.Finished.Sub(*r.Started))
}

func Duration(ms int64) string {
	if ms == 0 {
		return ""
	}
	return term.Took(time.Duration(ms) * time.Millisecond)
}
