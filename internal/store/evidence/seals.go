package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// Seals recomputes the chain over the conversation's seals, and compares the rows with them: those of the given runs
// and their markers, or all rows if no run is given.
func (v *Verification) Seals(ctx context.Context, runs ...string) (f Findings, head seals.Head, err error) {
	c := v.Conversation
	whole, head, err := v.sealChain(ctx, &f)
	if err != nil || !whole {
		return f, head, err
	}
	if head.Seals == 0 {
		f.add(Missing, "seals", c.Ref.ID, "",
			"the conversation has no seals: a version that kept none wrote it, or they were removed")
		return f, head, nil
	}
	var last seals.Seal
	for {
		page, err := db.All(ctx, v.tx, seals.Scan, `SELECT n, kind, subject, sha256, chain, record, created_at
			FROM seals
			WHERE cid = $1 AND (kind, subject, n) > ($2, $3, $4) ORDER BY kind, subject, n LIMIT $5`,
			c.CID, string(last.Kind), last.Subject, last.N, verifyPage/10)
		if err != nil {
			return f, head, err
		}
		for i, s := range page {
			if s.Kind == last.Kind && s.Subject == last.Subject {
				compareSeals(&f, last, s)
			}
			newest := i+1 < len(page) && (page[i+1].Kind != s.Kind || page[i+1].Subject != s.Subject)
			if i+1 == len(page) {
				if newest, err = v.newest(ctx, s); err != nil {
					return f, head, err
				}
			}
			if newest && s.Kind != seals.Pruning {
				wanted, err := v.wanted(ctx, s, runs)
				if err != nil {
					return f, head, err
				}
				if wanted {
					if err := v.compareRows(ctx, &f, s); err != nil {
						return f, head, err
					}
				}
			}
			last = s
		}
		if len(page) < verifyPage/10 {
			break
		}
	}
	return f, head, v.unsealed(ctx, &f, runs)
}

// sealChain recomputes the chain of the seals. whole is false if the chain is broken, so that no record can be trusted.
func (v *Verification) sealChain(ctx context.Context, f *Findings) (whole bool, head seals.Head, err error) {
	c := v.Conversation
	rows, err := v.tx.Query(
		ctx, `SELECT n, kind, subject, sha256, chain, sha256(record) FROM seals WHERE cid = $1 ORDER BY n`, c.CID)
	if err != nil {
		return false, head, err
	}
	var n int64
	var kind seals.Kind
	var of string
	var sum, chain, computed []byte
	_, err = pgx.ForEachRow(rows, []any{&n, &kind, &of, &sum, &chain, &computed}, func() error {
		f.Checked++
		switch {
		case n != head.Seals+1:
			f.add(Missing, "seals", fmt.Sprint(head.Seals+1), "", "seals %d to %d are missing", head.Seals+1, n-1)
		case string(sum) != string(computed):
			f.add(Tampered, "seals", fmt.Sprint(n), "record or sha256",
				"the record of %s %s is not what its hash commits to", kind, of)
		case seals.Chain(head.Chain, n, kind, of, db.ToHash(sum)) != db.ToHash(chain):
			f.add(Tampered, "seals", fmt.Sprint(n), "kind, subject or chain",
				"the seal of %s %s is not what its chain commits to", kind, of)
		}
		head = seals.Head{Seals: n, Chain: db.ToHash(chain)}
		return nil
	})
	if err != nil {
		return false, head, err
	}
	var wantN int64
	var wantChain []byte
	if err := v.tx.QueryRow(ctx, `SELECT seal_seq, seal_chain FROM conversations WHERE cid = $1`, c.CID).Scan(&wantN,
		&wantChain); err != nil {
		return false, head, err
	}
	switch {
	case head.Seals < wantN:
		f.add(Missing, "seals", fmt.Sprint(head.Seals+1), "",
			"conversations.seal_seq says %d, and the last seal that is there is %d", wantN, head.Seals)
	case head.Seals > wantN:
		f.add(Tampered, "conversations", c.Ref.ID, "seal_seq", "the last seal is %d, and there is a seal %d",
			wantN, head.Seals)
	case head.Chain != db.ToHash(wantChain):
		f.add(Tampered, "conversations", c.Ref.ID, "seal_chain", "the hash of the seals is not that of seal %d",
			head.Seals)
	}
	if err := v.signatures(ctx, f, head); err != nil {
		return false, head, err
	}
	if err := v.activation(ctx, f, head.Seals); err != nil {
		return false, head, err
	}
	return f.Bad == 0, head, nil
}

// activation compares the active marker, the epoch and the timeline with the last seal. Every change of the active
// marker is sealed.
func (v *Verification) activation(ctx context.Context, f *Findings, last int64) error {
	c := v.Conversation
	raw, err := db.One(ctx, v.tx, pgx.RowTo[[]byte], `SELECT record FROM seals WHERE cid = $1 AND n = $2`, c.CID, last)
	if db.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var r seals.Record
	if json.Unmarshal(raw, &r) != nil {
		return nil // the chain of the seals reports it
	}
	if r.Epoch != c.Epoch {
		f.add(Tampered, "conversations", c.Ref.ID, "epoch", "it is %d, and the last seal says %d", c.Epoch,
			r.Epoch)
	}
	if r.ActiveMarker != c.ActiveMarker {
		f.add(Tampered, "conversations", c.Ref.ID, "active_marker", "it is %q, and the last seal says %q",
			c.ActiveMarker, r.ActiveMarker)
	}
	if r.Events == 0 {
		return nil
	}
	chain, err := db.One(ctx, v.tx, pgx.RowTo[[]byte], `SELECT chain FROM events WHERE cid = $1 AND seq = $2`, c.CID,
		r.Events)
	switch {
	case db.IsNotFound(err):
		f.add(Missing, "events", fmt.Sprint(r.Events), "", "the last seal was written when event %d was there",
			r.Events)
	case err != nil:
		return err
	case db.ToHash(chain) != r.EventChain:
		f.add(Tampered, "events", fmt.Sprint(r.Events), "chain",
			"it is not what the last seal says of the timeline")
	}
	return nil
}

func (v *Verification) newest(ctx context.Context, s seals.Seal) (bool, error) {
	return db.One(ctx, v.tx, pgx.RowTo[bool],
		`SELECT NOT EXISTS (SELECT FROM seals WHERE cid = $1 AND kind = $2 AND subject = $3 AND n > $4)`,
		v.Conversation.CID, string(s.Kind), s.Subject, s.N)
}

// wanted reports whether the seal is of one of the runs, of their markers, or of what all runs depend on.
func (v *Verification) wanted(ctx context.Context, s seals.Seal, runs []string) (bool, error) {
	switch {
	case len(runs) == 0, s.Kind == seals.Conversation, s.Kind == seals.LiveState:
		return true, nil
	case s.Kind == seals.Run:
		return slices.Contains(runs, s.Subject), nil
	}
	// A marker is wanted if one of the runs wrote it or a marker based on it, or if the marker is missing.
	return db.One(ctx, v.tx, pgx.RowTo[bool], `WITH RECURSIVE under AS (
			SELECT id, base FROM markers WHERE cid = $1 AND run = ANY($2)
			UNION SELECT m.id, m.base FROM markers m JOIN under u ON m.id = u.base
		)
		SELECT EXISTS (SELECT FROM under WHERE id = $3) OR NOT EXISTS (SELECT FROM markers
		WHERE id = $3)`, v.Conversation.CID, runs, s.Subject)
}

// unsealed finds rows that have no seal. The store seals every row that it writes, so something else wrote them.
func (v *Verification) unsealed(ctx context.Context, f *Findings, runs []string) error {
	for _, look := range []struct{ table, sql string }{
		{"runs", `SELECT id FROM runs r WHERE cid = $1 AND outcome IS NOT NULL AND NOT EXISTS (
			SELECT FROM seals s WHERE s.cid = $1 AND s.kind = 'run' AND s.subject = r.id) ORDER BY id`},
		{"markers", `SELECT id FROM markers m WHERE cid = $1 AND NOT EXISTS (
			SELECT FROM seals s WHERE s.cid = $1 AND s.kind = 'marker' AND s.subject = m.id) ORDER BY id`},
		{"enrichments", `SELECT key || '@' || version FROM enrichments e WHERE cid = $1 AND NOT EXISTS (
			SELECT FROM seals s WHERE s.cid = $1 AND s.kind = 'state' AND s.subject = e.key || '@' || e.version)
			ORDER BY key, version`},
	} {
		keys, err := db.All(ctx, v.tx, pgx.RowTo[string], look.sql, v.Conversation.CID)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if look.table == "runs" && len(runs) > 0 && !slices.Contains(runs, key) {
				continue
			}
			f.add(Tampered, look.table, key, "", "the row has no seal: precis did not write it")
		}
	}
	return nil
}
