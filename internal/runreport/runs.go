// Package runreport converts stored runs to the form of the HTTP API and the command line, with their costs, texts and
// comparisons.
package runreport

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"precis/internal/api/wire"
	"precis/internal/store/runs"
)

// ShortID is the length of a run's short id, the end of its id.
const ShortID = runs.ShortID

// Of returns a stored run in the form of the HTTP API.
func Of(r runs.Run) wire.Run {
	out := wire.Run{
		ID: r.Ref.ID, Conversation: r.Conversation, WorkflowID: r.WorkflowID, TemporalRunID: r.TemporalRunID,
		Outcome: r.Outcome, ErrorKind: r.ErrorKind, Reason: r.Reason, Trigger: triggerOf(r),
		Summarizer: r.Facts.Summarizer, Rung: string(r.Facts.Rung), Mode: r.Facts.Mode, Digest: r.Facts.Digest,
		Prompt: wire.RunPrompt{Name: r.Facts.PromptName, Version: r.Facts.PromptVersion},
		Focus:  r.Focus, Full: r.Full, Marker: r.Marker, MarkerStatus: r.MarkerStatus,
		TokensBefore: r.Facts.TokensBefore, TokensAfter: r.Facts.TokensAfter,
		Usage: usageOf(r.Usage), Models: ModelsOf(r.Models),
		Verification: object(r.Facts.Verification), Versions: versionsOf(r),
		Created: r.Created.UTC(), Started: timeOrNull(r.Started), Finished: timeOrNull(r.Finished),
		ReplayOf: r.ReplayOf, Replay: string(r.ReplayMode()), Apply: r.Replay.Apply, Batch: r.Replay.Batch,
	}
	if r.MarkerStatus == runs.MarkerUndone {
		out.Undone = timeOrNull(r.MarkerEnded)
	}
	if r.Facts.CoversTo > 0 {
		out.Covers = wire.RunCovers{
			From: r.Facts.CoversFrom, To: r.Facts.CoversTo, Messages: r.Facts.CoveredMessages,
			SHA256: r.Facts.CoveredChain.String(),
		}
	}
	for _, s := range r.Attempts {
		out.Steps = append(out.Steps, wire.RunStep{
			Stage: string(s.Stage), Call: s.Call, Attempt: s.Attempt, Rung: string(s.Rung), Summarizer: s.Summarizer,
			Outcome: s.Outcome, ErrorKind: s.ErrorKind, Message: s.Message, Started: s.Started.UTC(),
			MS: s.Took.Milliseconds(), Numbers: object(s.Numbers), Artifacts: s.Artifacts, Next: string(s.Next),
			Worker: s.Worker,
		})
	}
	return out
}

// triggerOf returns the decision of the trigger stage, and before that has ended the decision in the run's request.
func triggerOf(r runs.Run) wire.RunTrigger {
	var numbers struct {
		Trigger json.RawMessage `json:"trigger"`
	}
	decision := r.Trigger
	if json.Unmarshal(r.Facts.Numbers, &numbers) == nil && len(numbers.Trigger) > 0 {
		decision = numbers.Trigger
	}
	var t wire.RunTrigger
	_ = json.Unmarshal(decision, &t) // without a readable decision, only the kind is known
	t.Kind = r.Kind
	return t
}

// versionsOf returns the run's versions with a hash of its settings.
func versionsOf(r runs.Run) json.RawMessage {
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
