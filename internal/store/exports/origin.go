package exports

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// Origin returns where an imported conversation came from and when it was imported, nil if it was not imported.
func (s *Store) Origin(ctx context.Context, ref db.ConversationRef) (*seals.ImportedFrom, time.Time, error) {
	var record []byte
	var at time.Time
	err := s.db.Read(ctx, "read a conversation's origin", func(ctx context.Context, q db.Querier) error {
		c, err := conversations.Find(ctx, q, ref)
		if err != nil {
			return err
		}
		err = q.QueryRow(ctx, `SELECT record, created_at FROM seals WHERE cid = $1 AND n = 1`, c.CID).Scan(&record, &at)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || record == nil {
		return nil, at, err
	}
	var r seals.Record
	if err := json.Unmarshal(record, &r); err != nil {
		return nil, at, db.Failed("read a conversation's first seal", err)
	}
	return r.Imported, at, nil
}
