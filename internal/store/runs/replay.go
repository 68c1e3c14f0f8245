package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/contract"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// ReplayOptions say how a run is repeated.
type ReplayOptions struct {
	// Live asks the models anew; else their answers are read from the record.
	Live bool
	// Apply makes the summary of a live one take effect.
	Apply bool
	// Batch is the ReplayBatch that it belongs to, "": none. A batch repeats a run once, and starts it by itself.
	Batch string
}

// Replay is what a run is as the repetition of another one.
type Replay struct {
	ReplayOptions
	// Identical reports whether everything came out of the record as it was; nil: it has not ended, or is live.
	Identical *bool
	// Comparison is the artifact with what was found, "": not yet.
	Comparison string
}

func (o ReplayOptions) mode() precis.ReplayMode {
	if o.Live {
		return precis.ReplayLive
	}
	return precis.ReplayRecorded
}

// Input is what the run's workflow is started with.
func (r Run) Input() precis.Input {
	return precis.Input{
		Tenant: r.Ref.Tenant, Conversation: r.Conversation, Run: r.Ref.ID, Replay: r.ReplayMode(),
	}
}

// ReplayMode is the mode of a replay, "" for a run that is not a replay.
func (r Run) ReplayMode() precis.ReplayMode {
	if r.ReplayOf == "" {
		return ""
	}
	return r.Replay.mode()
}

// replayOfBatch checks that the run which is to be repeated is of the conversation, and gives the replay of it that the
// batch has already, if it has.
func replayOfBatch(ctx context.Context, tx pgx.Tx, c conversations.Conversation,
	req Request,
) (r Run, found bool, err error) {
	original, err := Find(ctx, tx, db.RunRef{Tenant: c.Ref.Tenant, ID: req.ReplayOf})
	if err != nil {
		return r, false, err
	}
	if original.Conversation != c.Ref.ID {
		return r, false, db.Invalidf("run %s is not one of conversation %s", req.ReplayOf, c.Ref.ID)
	}
	if req.Replay.Batch == "" {
		return r, false, nil
	}
	id, err := db.One(ctx, tx, pgx.RowTo[string], `SELECT run FROM replays WHERE batch = $1 AND original = $2`,
		req.Replay.Batch, req.ReplayOf)
	if db.IsNotFound(err) {
		return r, false, nil
	}
	if err == nil {
		r, err = Find(ctx, tx, db.RunRef{Tenant: c.Ref.Tenant, ID: id})
	}
	return r, true, err
}

// insertReplay writes what a new run is as a replay. One that belongs to no batch is left to a dispatcher to start.
func insertReplay(ctx context.Context, tx pgx.Tx, ref db.RunRef, req Request) (Run, error) {
	var batch *string
	if req.Replay.Batch != "" {
		batch = &req.Replay.Batch
	}
	_, err := tx.Exec(ctx, `INSERT INTO replays (run, original, live, apply, batch) VALUES ($1, $2, $3, $4, $5)`,
		ref.ID, req.ReplayOf, req.Replay.Live, req.Replay.Apply, batch)
	if err == nil && batch == nil {
		_, err = tx.Exec(ctx, `INSERT INTO outbox (tenant, conversation, run, trace_parent)
			SELECT r.tenant, c.id, r.id, $2 FROM runs r JOIN conversations c ON c.cid = r.cid
			WHERE r.id = $1`, ref.ID, db.TraceParent(ctx))
	}
	if err != nil {
		return Run{}, err
	}
	return Find(ctx, tx, ref)
}

// FirstState is the state that the first step of a run worked on, "": its record holds none. The run has its steps.
func (r Run) FirstState() string {
	for _, s := range r.Attempts {
		if sha := s.Artifacts[contract.ArtifactSnapshot]; sha != "" {
			return sha
		}
	}
	return ""
}
