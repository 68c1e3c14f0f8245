package evidence

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/seals"
)

// tombstone compares a conversation whose content was deleted with what the seal of the deletion recorded. Earlier
// builds recorded no tombstone; of their deletions only the time is sealed.
func (v *Verification) tombstone(ctx context.Context, f *Findings) error {
	c := v.Conversation
	rows, err := v.tx.Query(ctx, `SELECT record FROM seals WHERE cid = $1 AND kind = 'conversation' ORDER BY n`, c.CID)
	if err != nil {
		return err
	}
	var raw []byte
	var stone *seals.Tombstone
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		var r seals.Record
		if json.Unmarshal(raw, &r) == nil && r.Deleted != nil { // the chain of the seals reports others
			stone = r.Deleted
		}
		return nil
	})
	if err != nil {
		return err
	}
	var left int64
	if err := v.tx.QueryRow(ctx, `SELECT count(*) FROM messages WHERE cid = $1`, c.CID).Scan(&left); err != nil {
		return err
	}
	f.Checked++
	if left > 0 {
		f.add(Tampered, "messages", c.Ref.ID, "", "the content was deleted, and %d messages are there", left)
	}
	if stone == nil {
		return nil
	}
	for _, figure := range []struct {
		column string
		same   bool
	}{
		{"head_seq", c.HeadSeq == stone.Messages},
		{"head_chain", c.HeadChain == stone.HeadChain},
		{"tokens_sum", c.Sums.Tokens == stone.Tokens},
		{"chars_sum", c.Sums.Chars == stone.Chars},
		{"turns_sum", c.Sums.Turns == stone.Turns},
		{"content_deleted_at", c.ContentDeleted.Equal(stone.At)},
	} {
		if !figure.same {
			f.add(Tampered, "conversations", c.Ref.ID, figure.column, "it is not what the deletion recorded")
		}
	}
	return nil
}
