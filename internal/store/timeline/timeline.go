// Package timeline keeps the events of conversations: what happened to each conversation, in order, chained by hashes.
package timeline

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// Store appends and reads events.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Kind is the kind of an entry in a conversation's timeline.
type Kind string

// The kinds of event.
const (
	Trigger   Kind = "trigger"
	Stage     Kind = "stage"
	Attempt   Kind = "attempt"
	Prepared  Kind = "prepared"
	Applied   Kind = "applied"
	Undone    Kind = "undone"
	Discarded Kind = "discarded"
	Finished  Kind = "finished"
	Warning   Kind = "warning"
)

// Event is one entry in a conversation's timeline.
type Event struct {
	// Seq numbers the events of a conversation from 1, without gaps, in the order in which they can be seen.
	Seq  int64
	Kind Kind
	// Run is the run that the event belongs to, "": none.
	Run string
	// Data is a JSON object without text of the conversation.
	Data    json.RawMessage
	Created time.Time
}

func scanEvent(row pgx.CollectableRow) (e Event, err error) {
	return e, row.Scan(&e.Seq, &e.Kind, &e.Run, (*[]byte)(&e.Data), &e.Created)
}

// Append adds an entry to a conversation's timeline.
func (s *Store) Append(ctx context.Context, ref db.ConversationRef, e Event) (Event, error) {
	err := s.db.Write(ctx, "note an event", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		e, err = Append(ctx, tx, c.CID, e)
		return err
	})
	return e, err
}

// Append adds an entry in a transaction. It locks the conversation's row until the end of the transaction, so that no
// reader sees a number before the numbers below it.
func Append(ctx context.Context, tx pgx.Tx, cid int64, e Event) (Event, error) {
	data, err := db.CleanJSON(e.Data)
	if err != nil {
		return e, err
	}
	return db.One(ctx, tx, scanEvent, `WITH n AS (
			UPDATE conversations SET event_seq = event_seq + 1,
				event_chain = `+Chain("event_chain", "event_seq + 1", "$2::text", "$3::text", "$4::jsonb", "now()")+`
			WHERE cid = $1 RETURNING event_seq, event_chain
		)
		INSERT INTO events (cid, seq, kind, run, data, created_at, chain)
		SELECT $1, n.event_seq, $2, nullif($3, ''), $4, now(), n.event_chain FROM n
		RETURNING seq, kind, coalesce(run, ''), data,
		created_at`, cid, db.CleanText(string(e.Kind)), db.CleanText(e.Run), data)
}

// Chain returns the SQL expression of an event's chain hash: SHA-256 over the chain of the one before it (32 zero bytes
// for the first), its number as 8 bytes big-endian, the SHA-256 each of its kind, its run ("" for none) and its data as
// PostgreSQL writes them, and microseconds since 1970 as 8 bytes.
func Chain(before, seq, kind, run, data, created string) string {
	return `sha256(` + before + ` || int8send((` + seq + `)::bigint) || sha256(convert_to(` + kind + `,
		'UTF8')) || sha256(convert_to(` + run + `, 'UTF8'))
		|| sha256(convert_to((` + data + `)::text, 'UTF8')) || int8send((extract(epoch
			FROM ` + created + `) * 1000000)::bigint))`
}

// After returns a conversation's events after the given number, oldest first, at most limit (1 to 1000) of them.
func (s *Store) After(ctx context.Context, ref db.ConversationRef, after int64, limit int) ([]Event, error) {
	var list []Event
	err := s.db.Read(ctx, "read events", func(ctx context.Context, q db.Querier) error {
		c, err := conversations.Find(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = db.All(ctx, q, scanEvent, `SELECT seq, kind, coalesce(run, ''), data, created_at FROM events
			WHERE cid = $1 AND seq > $2 ORDER BY seq LIMIT $3`, c.CID, after, db.ClampLimit(limit))
		return err
	})
	return list, err
}

// Heads returns the number of the last event of each of the conversations that exist, in one query, for clients that
// follow timelines.
func (s *Store) Heads(ctx context.Context, refs []db.ConversationRef) (map[db.ConversationRef]int64, error) {
	tenants, ids := make([]string, len(refs)), make([]string, len(refs))
	for i, ref := range refs {
		tenants[i], ids[i] = ref.Tenant, ref.ID
	}
	heads := make(map[db.ConversationRef]int64, len(refs))
	err := s.db.Read(ctx, "look for events", func(ctx context.Context, q db.Querier) error {
		rows, err := q.Query(ctx, `SELECT c.tenant, c.id, c.event_seq
			FROM unnest($1::text[], $2::text[]) AS f(tenant, id)
			JOIN conversations c USING (tenant, id)`, tenants, ids)
		if err != nil {
			return err
		}
		var ref db.ConversationRef
		var head int64
		_, err = pgx.ForEachRow(rows, []any{&ref.Tenant, &ref.ID, &head}, func() error {
			heads[ref] = head
			return nil
		})
		return err
	})
	return heads, err
}
