// Package runs is a run as the outside sees it: the JSON of the command line and of the HTTP API, and the texts
// of the audit record.
package runreport

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"precis/internal/store"
	"precis/pipeline"
)

// Run is one execution of the compaction workflow. Fields that do not apply are empty; times that have not come
// are null.
type Run struct {
	ID            string `json:"id"`
	Conversation  string `json:"conversation"`
	WorkflowID    string `json:"workflow_id"`
	TemporalRunID string `json:"temporal_run_id"`
	// Outcome is "" while the run goes on.
	Outcome   store.Outcome      `json:"outcome"`
	ErrorKind pipeline.ErrorKind `json:"error_kind"`
	Reason    string             `json:"reason"`
	Trigger   Trigger            `json:"trigger"`
	// Summarizer wrote the summary: "self", "VENDOR/MODEL" or "digest". Rung is the step of the ladder that led to it.
	Summarizer string        `json:"summarizer"`
	Rung       string        `json:"rung"`
	Prompt     Prompt        `json:"prompt"`
	Mode       pipeline.Mode `json:"mode"`
	Digest     bool          `json:"digest"`
	Focus      string        `json:"focus"`
	Full       bool          `json:"full"`
	Covers     Covers        `json:"covers"`
	// Marker is the one that the run wrote. MarkerStatus is what has become of it: prepared, applied, undone or
	// discarded. Undone is when it was taken back, null: it was not.
	Marker       string             `json:"marker"`
	MarkerStatus store.MarkerStatus `json:"marker_status"`
	Undone       *time.Time         `json:"undone"`
	TokensBefore int                `json:"tokens_before"`
	TokensAfter  int                `json:"tokens_after"`
	Usage        Usage              `json:"usage"`
	// Models are the same calls by model.
	Models []ModelUsage `json:"models"`
	// Cost is what they cost by the configured prices, null where none is configured for any of them.
	Cost         *Cost           `json:"cost"`
	Verification json.RawMessage `json:"verification"`
	// Versions of the code and the configuration that asked for the run, with a hash of the settings that counted for
	// it. Prompt has the prompt's, each step's worker that of the worker's code.
	Versions json.RawMessage `json:"versions"`
	// Steps are left out of lists.
	Steps    []Step     `json:"steps,omitempty"`
	Created  time.Time  `json:"created"`
	Started  *time.Time `json:"started"`
	Finished *time.Time `json:"finished"`
	ReplayOf string     `json:"replay_of"`
	// Replay is "recorded" or "live" for a run that repeats another one, Apply says that a live one is to take effect,
	// Batch is the batch that it belongs to, and Comparison what it found, once it has ended: not in lists.
	Replay     string      `json:"replay,omitempty"`
	Apply      bool        `json:"apply,omitempty"`
	Batch      string      `json:"batch,omitempty"`
	Comparison *Comparison `json:"comparison,omitempty"`
	// Texts are there when they were asked for.
	*Texts
}

// Trigger is what started the run, with the numbers of its first stage. Sizes are in tokens.
type Trigger struct {
	Kind      pipeline.TriggerKind `json:"kind"`
	Used      int                  `json:"used"`
	Limit     int                  `json:"limit"`
	Window    int                  `json:"window"`
	Estimated bool                 `json:"estimated"`
	// Reason is one sentence with the numbers.
	Reason string `json:"reason"`
}

// Prompt names the prompt that the summary was asked with.
type Prompt struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Covers says which messages the summary stands for. SHA256 is the conversation's hash chain at To: it commits
// to every message up to there.
type Covers struct {
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	Messages int    `json:"messages"`
	SHA256   string `json:"sha256"`
}

// Usage sums the run's model calls, failed ones too, in tokens. Input counts what the cache had, and took, as well.
type Usage struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	CacheWrite  int64 `json:"cache_write"`
	Output      int64 `json:"output"`
	Calls       int   `json:"calls"`
	// Lost counts calls whose answer never came: perhaps paid for.
	Lost int `json:"lost"`
}

// Step is one attempt at one stage.
type Step struct {
	Stage string `json:"stage"`
	// Call counts the run's steps, Attempt the attempts at one, both from 1.
	Call    int `json:"call"`
	Attempt int `json:"attempt"`
	// Rung is why this step is taken: "first", or what the ladder did after a failure.
	Rung       string             `json:"rung"`
	Summarizer string             `json:"summarizer"`
	Outcome    store.StepOutcome  `json:"outcome"`
	ErrorKind  pipeline.ErrorKind `json:"error_kind"`
	Message    string             `json:"message"`
	Started    time.Time          `json:"started"`
	MS         int64              `json:"ms"`
	Numbers    json.RawMessage    `json:"numbers"`
	// Artifacts are hashes by what they are.
	Artifacts map[string]string `json:"artifacts"`
	// Next is what the ladder did after it.
	Next string `json:"next"`
	// Worker is the process that did it.
	Worker string `json:"worker"`
}

// Of gives a stored run in its outer form.
func Of(r store.Run) Run {
	out := Run{
		ID: r.Ref.ID, Conversation: r.Conversation, WorkflowID: r.WorkflowID, TemporalRunID: r.TemporalRunID,
		Outcome: r.Outcome, ErrorKind: r.ErrorKind, Reason: r.Reason, Trigger: triggerOf(r),
		Summarizer: r.Facts.Summarizer, Rung: r.Facts.Rung, Mode: r.Facts.Mode, Digest: r.Facts.Digest,
		Prompt: Prompt{Name: r.Facts.PromptName, Version: r.Facts.PromptVersion},
		Focus:  r.Focus, Full: r.Full, Marker: r.Marker, MarkerStatus: r.MarkerStatus,
		TokensBefore: r.Facts.TokensBefore, TokensAfter: r.Facts.TokensAfter,
		Usage: usageOf(r.Usage), Models: ModelsOf(r.Models),
		Verification: object(r.Facts.Verification), Versions: versionsOf(r),
		Created: r.Created.UTC(), Started: timeOrNull(r.Started), Finished: timeOrNull(r.Finished),
		ReplayOf: r.ReplayOf, Replay: r.ReplayMode(), Apply: r.Replay.Apply, Batch: r.Replay.Batch,
	}
	if r.MarkerStatus == store.MarkerUndone {
		out.Undone = timeOrNull(r.MarkerEnded)
	}
	if r.Facts.CoversTo > 0 {
		out.Covers = Covers{
			From: r.Facts.CoversFrom, To: r.Facts.CoversTo, Messages: r.Facts.CoveredMessages,
			SHA256: r.Facts.CoveredChain.String(),
		}
	}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, Step{
			Stage: s.Stage, Call: s.Call, Attempt: s.Attempt, Rung: s.Rung, Summarizer: s.Summarizer,
			Outcome: s.Outcome, ErrorKind: s.ErrorKind, Message: s.Message, Started: s.Started.UTC(),
			MS: s.Took.Milliseconds(), Numbers: object(s.Numbers), Artifacts: s.Artifacts, Next: s.Next,
			Worker: s.Worker,
		})
	}
	return out
}

// triggerOf reads the decision of the first stage, and before there is one what the run was asked for with.
func triggerOf(r store.Run) Trigger {
	var numbers struct {
		Trigger json.RawMessage `json:"trigger"`
	}
	decision := r.Trigger
	if json.Unmarshal(r.Facts.Numbers, &numbers) == nil && len(numbers.Trigger) > 0 {
		decision = numbers.Trigger
	}
	var t Trigger
	_ = json.Unmarshal(decision, &t) // what cannot be read is left out: the kind is known
	t.Kind = r.Kind
	return t
}

// versionsOf adds the hash of the settings, which the run keeps whole.
func versionsOf(r store.Run) json.RawMessage {
	var versions map[string]string
	if len(r.Settings) == 0 || json.Unmarshal(object(r.Versions), &versions) != nil {
		return object(r.Versions)
	}
	sum := sha256.Sum256(r.Settings)
	if versions == nil {
		versions = map[string]string{}
	}
	versions["settings"] = hex.EncodeToString(sum[:6])
	out, err := json.Marshal(versions)
	if err != nil {
		return object(r.Versions)
	}
	return out
}

func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
