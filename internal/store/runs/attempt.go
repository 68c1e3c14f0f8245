package runs

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/pipeline"
)

// Attempt is one attempt at one activity call of a run.
type Attempt struct {
	Stage contract.Stage
	// Call counts the activity calls of the run, Attempt Temporal's attempts at one, both from 1.
	Call, Attempt int
	// Rung is the fallback that led to the attempt.
	Rung       contract.Fallback
	Summarizer string
	Outcome    contract.AttemptOutcome
	ErrorKind  pipeline.ErrorKind
	// Message is one sentence without text of the conversation.
	Message string
	// Next is the fallback that the ladder took after the attempt.
	Next contract.Fallback
	// Worker is the worker process of the attempt.
	Worker  string
	Started time.Time
	// Took is the duration, zero until the attempt has ended.
	Took time.Duration
	// Numbers is a JSON object; Artifacts are references by kind.
	Numbers   json.RawMessage
	Artifacts map[contract.ArtifactKind]string
}

const attemptColumns = `s.stage, s.call, s.attempt, s.rung, s.summarizer, s.outcome, s.error_kind, s.message, s.next,
	s.worker,
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
