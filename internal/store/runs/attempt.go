package runs

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// StepOutcome is what became of one attempt.
type AttemptOutcome string

// The outcomes of an attempt.
const (
	// StepStarted is written when the attempt begins; it stays when the worker died in it.
	AttemptStarted AttemptOutcome = "started"
	AttemptOK      AttemptOutcome = "ok"
	AttemptFailed  AttemptOutcome = "failed"
	// StepReused says that an earlier attempt had left its result, and no work was done.
	AttemptReused AttemptOutcome = "reused"
)

// Step is one attempt at one activity call of a run.
type Attempt struct {
	Stage string
	// Call counts the activity calls of the run, Attempt Temporal's attempts at one, both from 1.
	Call, Attempt int
	// Rung is the step of the ladder that led here.
	Rung       string
	Summarizer string
	Outcome    AttemptOutcome
	ErrorKind  pipeline.ErrorKind
	// Message is one sentence without text of the conversation.
	Message string
	// Next is what the ladder did after it.
	Next string
	// Worker is the process that did it.
	Worker  string
	Started time.Time
	// Took is zero while it goes on.
	Took time.Duration
	// Numbers is a JSON object; Artifacts are references by what they are.
	Numbers   json.RawMessage
	Artifacts map[string]string
}

const attemptColumns = `s.stage, s.call, s.attempt, s.rung, s.summarizer, s.outcome, s.error_kind, s.message, s.next, s.worker,
	s.started_at, coalesce(s.ms, 0), s.numbers, s.artifacts`

func scanAttempt(row pgx.CollectableRow) (Attempt, error) {
	var t Attempt
	var ms int64
	err := row.Scan(&t.Stage, &t.Call, &t.Attempt, &t.Rung, &t.Summarizer, &t.Outcome, &t.ErrorKind, &t.Message,
		&t.Next,
		&t.Worker, &t.Started, &ms, (*[]byte)(&t.Numbers), &t.Artifacts)
	t.Took = time.Duration(ms) * time.Millisecond
	return t, err
}
