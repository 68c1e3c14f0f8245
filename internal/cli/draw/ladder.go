package draw

import (
	"fmt"
	"strings"
	"time"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
)

// noAttempts is shown for a run that no worker has started.
const noAttempts = "no stage has started: the run waits for a worker\n"

// Ladder shows the attempts at every stage in the order in which they were made: a line for each, and below it its
// figures and its error.
func Ladder(r wire.Run) string {
	if len(r.Steps) == 0 {
		return noAttempts
	}
	var t term.Table
	t.Row("STEP", "STAGE", "SUMMARIZER", "OUTCOME", "TIME", "NEXT")
	for _, s := range r.Steps {
		t.Row(stepName(s), s.Stage, s.Summarizer, stepOutcome(s), term.Took(time.Duration(s.MS)*time.Millisecond),
			nextWords(s))
	}
	t.Fit(2, 5)
	var lines strings.Builder
	_ = t.Write(&lines)
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(lines.String(), "\n"), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if i == 0 {
			continue
		}
		const indent = "      "
		for _, text := range []string{numberWords(r.Steps[i-1], r.Trigger.Estimated), r.Steps[i-1].Message} {
			for _, wrapped := range term.Wrap(term.OneLine(text), term.LineWidth-len(indent)) {
				b.WriteString(indent + wrapped + "\n")
			}
		}
	}
	return b.String()
}

// Attempts shows the ladder with all columns, one line per attempt.
func Attempts(r wire.Run) string {
	if len(r.Steps) == 0 {
		return noAttempts
	}
	var t term.Table
	t.Row("STEP", "STAGE", "RUNG", "SUMMARIZER", "OUTCOME", "STARTED (UTC)", "MS", "NUMBERS", "NEXT", "WORKER",
		"MESSAGE")
	for _, s := range r.Steps {
		t.Row(stepName(s), s.Stage, s.Rung, s.Summarizer, stepOutcome(s), term.When(s.Started), fmt.Sprint(s.MS),
			numberWords(s, r.Trigger.Estimated),
			nextWords(s), s.Worker, s.Message)
	}
	var b strings.Builder
	_ = t.Write(&b)
	return b.String()
}

// stepName returns the number of a step of the run and, after the first attempt, the number of the attempt.
func stepName(s wire.RunStep) string {
	if s.Attempt > 1 {
		return fmt.Sprintf("%d.%d", s.Call, s.Attempt)
	}
	return fmt.Sprint(s.Call)
}

func stepOutcome(s wire.RunStep) string {
	if s.ErrorKind != "" {
		return string(s.ErrorKind)
	}
	return string(s.Outcome)
}

func nextWords(s wire.RunStep) string {
	if s.Next == "" {
		return ""
	}
	return "→ " + s.Next
}
