package markers

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/artifacts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
	"precis/pipeline"
)

// checkMarker compares a marker with the locked conversation. If it covers what its base covers, it fills in that
// range.
func checkMarker(ctx context.Context, tx pgx.Tx, c conversations.Conversation, n NewMarker) (NewMarker, error) {
	if n.Base != c.ActiveMarker {
		return n, db.Conflictf(db.ConflictBaseChanged, "the summary was written on marker %q, active is %q now", n.Base,
			c.ActiveMarker)
	}
	if n.Base != "" {
		base, err := Find(ctx, tx, c.CID, n.Base)
		if err != nil {
			return n, err
		}
		if n.CoversFrom == 0 && n.CoversTo == 0 {
			n.CoversFrom, n.CoversTo = base.CoversFrom, base.CoversTo
			if n.CoveredChain.IsZero() {
				n.CoveredChain = base.CoveredChain
			}
		}
		// A digest is replaced by a summary of the messages themselves, which may cover less than the digest.
		if n.CoversTo < base.CoversTo && !base.Digest {
			return n, db.Invalidf("the marker covers up to message %d and its base up to %d: the messages between "+
				"would be in the context twice",
				n.CoversTo, base.CoversTo)
		}
	}
	if n.CoversTo == 0 {
		if n.Valve == pipeline.TailValveNone || n.Summary != "" || n.CoversFrom != 0 || n.CoveredMessages != 0 ||
			len(n.Carried) > 0 {
			return n, db.Invalidf("a marker that covers no messages may only have a valve")
		}
		n.CoveredChain = db.Hash{}
		return n, nil
	}
	if n.CoversFrom < 1 || n.CoversTo < n.CoversFrom || n.CoversTo > c.HeadSeq {
		return n, db.Invalidf("the marker covers messages %d to %d of a conversation of %d messages", n.CoversFrom,
			n.CoversTo,
			c.HeadSeq)
	}
	for _, seq := range n.Carried {
		if seq < 1 || seq > n.CoversTo {
			return n, db.Invalidf("carried message %d is not among the covered ones, 1 to %d", seq, n.CoversTo)
		}
	}
	chain, err := conversations.ChainAt(ctx, tx, c.CID, n.CoversTo)
	if err != nil {
		return n, err
	}
	if chain != n.CoveredChain {
		return n, db.Conflictf(db.ConflictCoveredChanged, "the messages up to %d are not the ones that were summarized",
			n.CoversTo)
	}
	return n, nil
}

// insertMarker writes a marker; an applied one becomes the active marker.
func insertMarker(ctx context.Context, tx pgx.Tx, c conversations.Conversation, m Marker) (Marker, error) {
	sum, err := db.OptionalHash(m.Summary)
	if err != nil {
		return m, err
	}
	if err := artifacts.Linked(ctx, tx, c, m.Summary); err != nil {
		return m, err
	}
	if err := linkedNative(ctx, tx, c, m.NewMarker); err != nil {
		return m, err
	}
	native, err := db.OptionalHash(m.Native)
	if err != nil {
		return m, err
	}
	var base, run *string
	if m.Base != "" {
		base = &m.Base
	}
	if m.Run != "" {
		run = &m.Run
	}
	if m.Carried == nil {
		m.Carried = []int64{}
	}
	epoch := c.Epoch + 1
	m, err = db.One(ctx, tx, Scan, `INSERT INTO markers AS m (id, cid, tenant, base, run, status, origin, covers_from,
		covers_to,
			covered_messages, covered_chain, carried, summary_sha256, summary_tokens, digest, valve, valve_up_to,
			tokens_before,
			tokens_after, epoch, applied_at, calibration, draft, native_sha256, native)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
			CASE WHEN $6 = 'applied' THEN $20::bigint END, CASE
			WHEN $6 = 'applied' THEN clock_timestamp() END, $21, $22, $23, $24)
		RETURNING `+Columns,
		m.ID, c.CID, c.Ref.Tenant, base, run, string(m.Status), string(m.Origin), m.CoversFrom, m.CoversTo,
		m.CoveredMessages, m.CoveredChain[:], m.Carried, sum, m.SummaryTokens, m.Digest, string(m.Valve), m.ValveUpTo,
		m.TokensBefore,
		m.TokensAfter, epoch, m.Calibration, []byte(m.Draft), native, []byte(m.NativeUse))
	if err != nil {
		return m, err
	}
	if m.Status == runs.MarkerApplied {
		err = activate(ctx, tx, c.CID, m.ID, m.Calibration)
	}
	return m, err
}

// activate sets the active marker, "" for none. calibration is the last one known before the change makes the server's
// figure stale, 0: not known.
func activate(ctx context.Context, tx pgx.Tx, cid int64, id string, calibration float64) error {
	_, err := tx.Exec(ctx, `UPDATE conversations SET active_marker = nullif($2, ''), epoch = epoch + 1,
		memory_due_at = CASE WHEN ephemeral THEN NULL ELSE clock_timestamp() END,
		calibration = CASE WHEN $3::float8 > 0 THEN $3 ELSE calibration END, updated_at = now()
		WHERE cid = $1`, cid, id, calibration)
	return err
}

// markerEvent returns a marker's data for the timeline.
func markerEvent(m Marker) json.RawMessage {
	data, err := json.Marshal(map[string]any{
		"marker": m.ID, "origin": m.Origin, "covers_from": m.CoversFrom, "covers_to": m.CoversTo,
		"messages": m.CoveredMessages, "tokens_before": m.TokensBefore, "tokens_after": m.TokensAfter,
		"digest": m.Digest,
	})
	if err != nil {
		panic(err) // strings, numbers and a bool: it cannot fail
	}
	return data
}

// sealMarker seals a marker that has changed, and its run with it.
func sealMarker(ctx context.Context, tx pgx.Tx, cid int64, m Marker) error {
	if m.Run == "" {
		return seals.Write(ctx, tx, cid, seals.OfMarker(m.ID))
	}
	return seals.Write(ctx, tx, cid, seals.OfMarker(m.ID), seals.OfRun(m.Run))
}

// linkedNative checks that a marker's native artifact belongs to the conversation, as artifacts.Linked does for a
// summary. The artifact is the result of a vendor's own compaction, beside the readable summary; each read of the
// context chooses one of the two by the model that the conversation has then.
func linkedNative(ctx context.Context, tx pgx.Tx, c conversations.Conversation, n NewMarker) error {
	if (n.Native == "") != (len(n.NativeUse) == 0) {
		return db.Invalidf("a native compaction and its use must be given together")
	}
	if n.Native == "" {
		return nil
	}
	return artifacts.Linked(ctx, tx, c, n.Native)
}
