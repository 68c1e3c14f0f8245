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

// ReplayBounds bound the live replays that a tenant requests, 0: no bound.
type ReplayBounds struct {
	// PerDay is their number on one day (UTC), PerRun that of the replays of one run.
	PerDay, PerRun int
}

// check returns an ErrInvalid if one more live replay of a run is too many. The tenant's row stays locked, so that
// requests at the same time do not each take the last one.
func (b ReplayBounds) check(ctx context.Context, tx pgx.Tx, tenant, original string) error {
	if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, tenant); err != nil {
		return err
	}
	var day, run int
	err := tx.QueryRow(ctx, `SELECT
		(SELECT count(*) FROM replays p JOIN runs r ON r.id = p.run WHERE r.tenant = $1 AND p.live
			AND r.created_at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'),
		(SELECT count(*) FROM replays p JOIN runs r ON r.id = p.run WHERE r.replay_of = $2 AND p.live)`, tenant,
		original).Scan(&day, &run)
	switch {
	case err != nil:
		return err
	case b.PerDay > 0 && day >= b.PerDay:
		return db.Invalidf("the tenant has requested %d live replays today, and no more are allowed "+
			"(replays.live_per_day): try again tomorrow", day)
	case b.PerRun > 0 && run >= b.PerRun:
		return db.Invalidf("run %s has %d live replays, and no more are allowed (replays.live_per_run)", original, run)
	}
	return nil
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
		return r, false, req.checkBounds(ctx, tx, c.Ref.Tenant)
	}
	id, err := db.One(ctx, tx, pgx.RowTo[string], `SELECT run FROM replays WHERE batch = $1 AND original = $2`,
		req.Replay.Batch, req.ReplayOf)
	if db.IsNotFound(err) {
		return r, false, req.checkBounds(ctx, tx, c.Ref.Tenant)
	}
	if err == nil {
		r, err = Find(ctx, tx, db.RunRef{Tenant: c.Ref.Tenant, ID: id})
	}
	return r, true, err
}

// checkBounds returns an error if the request is one live replay too many.
func (req Request) checkBounds(ctx context.Context, tx pgx.Tx, tenant string) error {
	if !req.Replay.Live || req.LiveReplays == (ReplayBounds{}) {
		return nil
	}
	return req.LiveReplays.check(ctx, tx, tenant, req.ReplayOf)
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
