package seals

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Subject identifies what a seal records.
type Subject struct {
	Kind Kind
	ID   string
}

// OfRun returns the subject of a run.
func OfRun(id string) Subject { return Subject{Run, id} }

// OfMarker returns the subject of a marker.
func OfMarker(id string) Subject { return Subject{Marker, id} }

// OfConversation returns the subject of a conversation's configuration.
func OfConversation() Subject { return Subject{Conversation, "configuration"} }

// OfLiveState returns the subject of one version of a piece of live state.
func OfLiveState(key string, version int64) Subject {
	return Subject{LiveState, fmt.Sprintf("%s@%d", key, version)}
}

// Write seals the current rows of the subjects. The transaction has locked the conversation's row.
func Write(ctx context.Context, tx pgx.Tx, cid int64, subjects ...Subject) error {
	rows, err := ReadRows(ctx, tx, cid, subjects...)
	if err != nil {
		return err
	}
	records := make([]Record, len(subjects))
	for i := range subjects {
		records[i].Rows = rows[i]
	}
	return Put(ctx, tx, cid, subjects, records)
}

// Put writes one seal for each subject, and signs the last one if the store has a key. The transaction has locked the
// conversation's row.
func Put(ctx context.Context, tx pgx.Tx, cid int64, subjects []Subject, records []Record) error {
	var n, epoch, events int64
	var chain, eventChain []byte
	var active string
	err := tx.QueryRow(ctx, `SELECT seal_seq, seal_chain, epoch, coalesce(active_marker, ''), event_seq, event_chain
		FROM conversations WHERE cid = $1`, cid).Scan(&n, &chain, &epoch, &active, &events, &eventChain)
	if err != nil {
		return err
	}
	head := db.Hash(chain)
	batch := &pgx.Batch{}
	for i, of := range subjects {
		r := records[i]
		r.Form, r.Rule, r.Epoch, r.ActiveMarker = Form, Rule, epoch, active
		r.Events, r.EventChain = events, db.Hash(eventChain)
		record, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode a seal: %w", err)
		}
		n++
		sum := db.Hash(sha256.Sum256(record))
		head = Chain(head, n, of.Kind, of.ID, sum)
		next := head // a copy: it is sent later
		batch.Queue(`INSERT INTO seals (cid, n, kind, subject, sha256, chain, record) VALUES ($1, $2, $3, $4, $5, `+
			`$6, $7)`,
			cid, n, string(of.Kind), of.ID, sum[:], next[:], record)
	}
	if key := db.SigningKey(ctx); key != nil && len(subjects) > 0 {
		batch.Queue(`INSERT INTO seal_signatures (cid, n, signature) VALUES ($1, $2, $3)`, cid, n,
			Head{Seals: n, Chain: head}.Sign(key))
	}
	batch.Queue(`UPDATE conversations SET seal_seq = $2, seal_chain = $3 WHERE cid = $1`, cid, n, head[:])
	return tx.SendBatch(ctx, batch).Close()
}
