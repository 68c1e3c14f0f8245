package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/replies"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// Request is the request of a compaction.
type Request struct {
	// Kind is the trigger: "tokens", "turns", "manual", "background" or "overflow".
	Kind pipeline.TriggerKind
	// Trigger is the decision with its numbers, a JSON object.
	Trigger json.RawMessage
	// Focus is the user's instruction for the summary, any bytes.
	Focus         string
	Full          bool
	ForceExternal bool
	// Prepare is set to prepare the summary without applying it.
	Prepare bool
	// Prompt and Summarizer override the settings, "": they do not.
	Prompt, Summarizer string
	// Settings are the effective settings as JSON. Later changes do not affect the run.
	Settings json.RawMessage
	// Versions of code, prompts and configuration, a JSON object.
	Versions json.RawMessage
	// Hold is how long the caller has to start the run's workflow itself, before a dispatcher starts it; 0: a
	// dispatcher starts it at once.
	Hold time.Duration
	// ReplayOf is the run to replay, "": none. A replay may run while other runs are unfinished.
	ReplayOf string
	Replay   ReplayOptions
	// LiveReplays bounds the live replays.
	LiveReplays ReplayBounds
}

// Request creates a run of a conversation and the outbox row for its workflow, in one transaction. A conversation has
// at most one unfinished run except replays: if there is one, Request returns it with attached true, and if that run
// only prepares and the request does not, the run will apply its marker. A manual request while a reply is open is
// ErrReplyOpen.
func (s *Store) Request(ctx context.Context, ref db.ConversationRef, req Request) (r Run, attached bool, err error) {
	clean, err := req.Cleaned()
	if err != nil {
		return r, false, db.Failed("request a run", err)
	}
	id := db.NewID()
	err = s.db.Write(ctx, "request a run", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		r, attached, err = RequestLocked(ctx, tx, c, id, clean)
		return err
	})
	return r, attached, err
}

// Cleaned validates the request and returns it in the form that is stored.
func (req Request) Cleaned() (Request, error) {
	var err error
	if req.Trigger, err = db.CleanJSON(req.Trigger); err != nil {
		return req, fmt.Errorf("trigger: %w", err)
	}
	if req.Versions, err = db.CleanJSON(req.Versions); err != nil {
		return req, fmt.Errorf("versions: %w", err)
	}
	if !goodTrigger(req.Kind) {
		return req, db.Invalidf("trigger kind %q", req.Kind)
	}
	if req.Replay != (ReplayOptions{}) && req.ReplayOf == "" || req.Replay.Apply && !req.Replay.Live {
		return req, db.Invalidf("a replay repeats a run, and only a live one takes effect")
	}
	return req, nil
}

// RequestLocked is Request for a conversation whose row the transaction has locked.
func RequestLocked(ctx context.Context, tx pgx.Tx, c conversations.Conversation, id string,
	req Request,
) (r Run, attached bool, err error) {
	if !c.ContentDeleted.IsZero() {
		return r, false, db.ErrContentDeleted
	}
	if req.Kind == triggerManual && req.ReplayOf == "" {
		if err := replies.NoneOpen(ctx, tx, c.CID); err != nil {
			return r, false, err
		}
	}
	var replayOf *string
	in := precis.Input{Tenant: c.Ref.Tenant, Conversation: c.Ref.ID, Run: id}
	if req.ReplayOf == "" {
		r, err = db.One(ctx, tx, scanRun,
			`SELECT `+runColumns+runJoins+` WHERE r.cid = $1 AND r.outcome IS NULL AND r.replay_of IS NULL`, c.CID)
		if err == nil {
			r, err = promote(ctx, tx, r, req)
			return r, true, err
		}
		if !db.IsNotFound(err) {
			return r, false, err
		}
	} else {
		r, attached, err = replayOfBatch(ctx, tx, c, req)
		if err != nil || attached {
			return r, attached, err
		}
		replayOf, in.Replay = &req.ReplayOf, req.Replay.mode()
	}
	_, err = tx.Exec(ctx, `INSERT INTO runs (id, cid, tenant, workflow_id, requested_head, trigger_kind, trigger,
		focus, "full",
			force_external, prepare, prompt_override, summarizer_override, settings, versions, replay_of)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		id, c.CID, c.Ref.Tenant, in.WorkflowID(), c.HeadSeq, string(req.Kind), req.Trigger, []byte(req.Focus), req.Full,
		req.ForceExternal, req.Prepare, db.CleanText(req.Prompt), db.CleanText(req.Summarizer), []byte(req.Settings),
		req.Versions, replayOf)
	if err != nil {
		return r, false, err
	}
	if replayOf != nil {
		r, err = insertReplay(ctx, tx, db.RunRef{Tenant: c.Ref.Tenant, ID: id}, req)
		return r, false, err
	}
	_, err = tx.Exec(
		ctx, `INSERT INTO outbox (tenant, conversation, run, trace_parent, due_at) VALUES ($1, $2, $3, $4, now() + $5)`,
		c.Ref.Tenant, c.Ref.ID, id, db.TraceParent(ctx), req.Hold)
	if err != nil {
		return r, false, err
	}
	if _, err := timeline.Append(ctx, tx, c.CID,
		timeline.Event{Kind: timeline.Trigger, Run: id, Data: req.Trigger}); err != nil {
		return r, false, err
	}
	r, err = Find(ctx, tx, db.RunRef{Tenant: c.Ref.Tenant, ID: id})
	return r, false, err
}

// promote lets an unfinished run that only prepares apply its marker, if the request that joins it does not only
// prepare.
func promote(ctx context.Context, tx pgx.Tx, r Run, req Request) (Run, error) {
	if !r.Prepare || req.Prepare {
		return r, nil
	}
	r.Prepare = false
	_, err := tx.Exec(ctx, `UPDATE runs SET prepare = false WHERE id = $1`, r.Ref.ID)
	return r, err
}

const triggerManual pipeline.TriggerKind = "manual"

func goodTrigger(k pipeline.TriggerKind) bool {
	switch k {
	case "tokens", "turns", triggerManual, "background", "overflow":
		return true
	}
	return false
}
