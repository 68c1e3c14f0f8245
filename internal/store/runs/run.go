// Package runs keeps the executions of CompactionWorkflow, every attempt at their stages, and what each stage found.
package runs

import (
	"encoding/json"
	"time"

	"precis"
	"precis/internal/contract"
	"precis/internal/store/db"
	"precis/pipeline"
)

// Store requests, finishes and reads runs.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Attempts records the attempts at a run's stages and keeps their results.
type Attempts struct{ db *db.DB }

// NewAttempts returns Attempts over an open database.
func NewAttempts(d *db.DB) *Attempts { return &Attempts{db: d} }

// MarkerStatus is the status of a marker.
type MarkerStatus string

// The statuses.
const (
	// MarkerPrepared: the marker can be applied. A conversation has at most one.
	MarkerPrepared MarkerStatus = "prepared"
	// MarkerApplied: the marker was applied; it is the active marker, or below it.
	MarkerApplied MarkerStatus = "applied"
	MarkerUndone  MarkerStatus = "undone"
	// MarkerDiscarded: the marker was prepared and never applied, for its Reason.
	MarkerDiscarded MarkerStatus = "discarded"
)

// Run is one row of the table runs, with the sums of its model calls.
type Run struct {
	Ref          db.RunRef
	Conversation string
	WorkflowID   string
	// TemporalRunID is "" until the workflow has started.
	TemporalRunID string
	// Outcome is "" while the run is unfinished.
	Outcome   precis.Outcome
	ErrorKind pipeline.ErrorKind
	Reason    string

	Kind               pipeline.TriggerKind
	Trigger            json.RawMessage
	Focus              string
	Full               bool
	ForceExternal      bool
	Prepare            bool
	Prompt, Summarizer string // what was asked for instead of the settings
	Settings, Versions json.RawMessage
	ReplayOf           string
	// Replay is zero for a run that is not a replay.
	Replay Replay
	// RequestedHead is the head of the conversation when the run was requested.
	RequestedHead int64

	Facts Facts
	// Marker is the marker that the run wrote, "": none. MarkerStatus is its status, MarkerEnded when it was undone or
	// discarded.
	Marker       string
	MarkerStatus MarkerStatus
	MarkerEnded  time.Time
	Usage        Usage
	// Models are the same calls by model.
	Models []ModelUsage
	// Created is when the run was requested, Started when a worker started it, Finished when it ended; zero: not yet.
	Created, Started, Finished time.Time
	// Attempts are set by Get and FindWithAttempts only.
	Attempts []Attempt
}

// Facts are what becomes known during a run. Recording them again replaces those that are not zero.
type Facts struct {
	// Summarizer wrote the summary; Rung is the fallback that led to it.
	Summarizer    string
	Rung          contract.Fallback
	PromptName    string
	PromptVersion string
	Mode          pipeline.Mode
	Digest        bool
	// CoversFrom and CoversTo are sequence numbers, CoveredMessages counts what was summarized.
	CoversFrom, CoversTo int64
	CoveredMessages      int
	// CoveredChain is Message.Chain at CoversTo.
	CoveredChain db.Hash
	// TokensBefore and TokensAfter are of the whole context.
	TokensBefore, TokensAfter int
	// Context is the artifact of the new context, Snapshot that of what the context was built from.
	Context, Snapshot string
	// Head is the last message of the conversation that the run worked on.
	Head int64
	// Verification and Numbers are JSON objects. Numbers are merged key by key.
	Verification, Numbers json.RawMessage
}

// Usage sums a run's model calls, failed ones too.
type Usage struct {
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input, CachedInput, CacheWrite, Output int64
	Calls                                  int
	// Lost counts calls that were begun and never finished. They may have been billed without an answer.
	Lost int
}

// ModelUsage sums the calls of one model, failed ones too.
type ModelUsage struct {
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	// Tokens. Input does not count CachedInput and CacheWrite.
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached"`
	CacheWrite  int64 `json:"written"`
	Output      int64 `json:"output"`
	Calls       int   `json:"calls"`
}
