package evidence

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/timeline"
)

// Events recomputes the chain over the conversation's timeline.
func (v *Verification) Events(ctx context.Context) (f Findings, err error) {
	c := v.Conversation
	rows, err := v.tx.Query(ctx, `SELECT seq, chain, `+timeline.Chain(`coalesce(lag(chain) OVER (ORDER BY seq),
		decode(repeat('00', 32), 'hex'))`, "seq", "kind", "coalesce(run, '')", "data", "created_at")+`
		FROM events WHERE cid = $1 ORDER BY seq`, c.CID)
	if err != nil {
		return f, err
	}
	var seq, last int64
	var stored, computed, head []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &stored, &computed}, func() error {
		f.Checked++
		switch {
		case seq != last+1:
			f.add(Missing, "events", fmt.Sprint(last+1), "", "events %d to %d are missing", last+1, seq-1)
		case string(stored) != string(computed):
			f.add(Tampered, "events", fmt.Sprint(seq), "kind, run, data, created_at or chain",
				"the event is not what its hash commits to")
		}
		last, head = seq, slices.Clone(stored)
		return nil
	})
	if err != nil {
		return f, err
	}
	var wantSeq int64
	var wantHead []byte
	if err := v.tx.QueryRow(ctx, `SELECT event_seq, event_chain FROM conversations WHERE cid = $1`,
		c.CID).Scan(&wantSeq, &wantHead); err != nil {
		return f, err
	}
	switch {
	case last < wantSeq:
		f.add(Missing, "events", fmt.Sprint(last+1), "",
			"conversations.event_seq says %d, and the last event that is there is %d", wantSeq, last)
	case last > wantSeq:
		f.add(Tampered, "conversations", c.Ref.ID, "event_seq", "the last event is %d, and there is an event %d",
			wantSeq, last)
	case last > 0 && string(head) != string(wantHead):
		f.add(Tampered, "conversations", c.Ref.ID, "event_chain", "the timeline's hash is not that of event %d",
			last)
	}
	return f, nil
}
