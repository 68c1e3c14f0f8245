package runs

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/contract"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// ReplayOptions are how a run is replayed.
type ReplayOptions struct {
	// Live calls the models again; otherwise their answers are read from the record.
	Live bool
	// Apply applies the summary of a live replay.
	Apply bool
	// Batch is the batch of the replay, "": none. A batch replays each run once, and starts its replays itself.
	Batch string
}

// Replay is what a replay has in addition to other runs.
type Replay struct {
	ReplayOptions
	// Identical reports whether the replay produced the same as the record; nil: it has not ended, or is live.
	Identical *bool
	// Comparison is the artifact with the comparison, "": not yet.
	Comparison string
}

func (o ReplayOptions) mode() precis.ReplayMode {
	if o.Live {
		return precis.ReplayLive
	}
	return precis.ReplayRecorded
}

// Input returns the input of the run's workflow.
func (r Run) Input() precis.Input {
	return precis.Input{
		Tenant: r.Ref.Tenant, Conversation: r.Conversation, Run: r.Ref.ID, Replay: r.ReplayMode(),
	}
}

// ReplayMode returns the mode of a replay, "" for any other run.
func (r Run) ReplayMode() precis.ReplayMode {
	if r.ReplayOf == "" {
		return ""
	}
	return r.Replay.mode()
}

// replayOfBatch checks that the run to replay belongs to the conversation, and returns the replay that the batch
// already has of it, if any.
func replayOfBatch(ctx context.Context, tx pgx.Tx, c conversations.Conversation,
	req Request,
) (r Run, found bool, err error) {
	original, err := Find(ctx, tx, db.RunRef{Tenant: c.Ref.Tenant, ID: req.ReplayOf})
	if err != nil {
		return r, false, err
	}
	if original.Conversation != c.Ref.ID {
		return r, false, db.Invalidf("run %s does not belong to conversation %s", req.ReplayOf, c.Ref.ID)
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

// insertReplay writes a new run's row in replays. A dispatcher starts the replay, unless it belongs to a batch.
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

// FirstState returns the snapshot of the first attempt that recorded one, "" if none did. The run must have its
// attempts.
func (r Run) FirstState() string {
	for _, s := range r.Attempts {
		if sha := s.Artifacts[contract.ArtifactSnapshot]; sha != "" {
			return sha
		}
	}
	return ""
}
