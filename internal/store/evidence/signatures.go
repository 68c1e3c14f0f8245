package evidence

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// signatures verifies the signatures of the seals, if the store has a key for that. The last seal must be signed: its
// chain commits to all others.
func (v *Verification) signatures(ctx context.Context, f *Findings, head seals.Head) error {
	key := v.db.VerifyKey()
	if key == nil || head.Seals == 0 {
		return nil
	}
	rows, err := v.tx.Query(ctx, `SELECT n, s.chain, g.signature FROM seals s JOIN seal_signatures g USING (cid, n)
		WHERE cid = $1 ORDER BY n`, v.Conversation.CID)
	if err != nil {
		return err
	}
	var n, last int64
	var chain, signature []byte
	_, err = pgx.ForEachRow(rows, []any{&n, &chain, &signature}, func() error {
		f.Checked++
		last = n
		if !(seals.Head{Seals: n, Chain: db.ToHash(chain)}).SignedBy(key, signature) {
			f.add(Tampered, "seal_signatures", fmt.Sprint(n), "signature", "seal %d is not what the key has signed", n)
		}
		return nil
	})
	if err == nil && last != head.Seals {
		f.add(Missing, "seal_signatures", fmt.Sprint(head.Seals), "",
			"the last seal is not signed: it was written without audit.signing_key, or by something else than precis")
	}
	return err
}
