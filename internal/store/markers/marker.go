// Package markers keeps compactions: each marker says which messages a summary stands for, on top of the marker before
// it. A marker is written in one transaction with its run's end, its event and its seal.
package markers

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Store applies, prepares, undoes and reads markers.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Origin is who made a compaction.
type Origin string

// The origins.
const (
	OriginOurs Origin = "ours"
	// OriginAgent: the agent's own runtime compacted and reported it.
	OriginAgent Origin = "agent"
	// OriginImported: the compaction was recorded in an imported file.
	OriginImported Origin = "imported"
)

// NewMarker is a compaction to apply or to prepare.
type NewMarker struct {
	// Base is the marker that was active when the summary was begun, "": none.
	Base string
	// CoversFrom and CoversTo are the first and last message that was summarized beside the base's summary. Both 0: the
	// range of the base, summarized again; without a base, Summary is "" and the marker only shortens the tail.
	CoversFrom, CoversTo int64
	CoveredMessages      int
	// CoveredChain is Message.Chain at CoversTo.
	CoveredChain db.Hash
	// Carried are the messages up to CoversTo that stay in the context verbatim: system, user info, the last user
	// messages.
	Carried []int64
	// Summary is the artifact that holds the summary's text; SummaryTokens is the estimate of its message.
	Summary       string
	SummaryTokens int
	Digest        bool
	// Valve is how far the tail is shortened, ValveUpTo the last message to which that applies.
	Valve     pipeline.TailValve
	ValveUpTo int64
	// Calibration is real tokens divided by estimated ones when it was made, 0: not known.
	Calibration float64
	// TokensBefore and TokensAfter are of the whole context.
	TokensBefore, TokensAfter int
	// Draft is what the summary's text was made from, a JSON object of references and numbers; nil: not stored.
	Draft json.RawMessage
	// Native is the artifact with the result of the vendor's own compaction, "": none. NativeUse is its vendor, model
	// family and format, a JSON object.
	Native    string
	NativeUse json.RawMessage
}

// Marker is one row of the table markers.
type Marker struct {
	ID string
	NewMarker
	// Run is the run that wrote the marker, "": reported or imported.
	Run    string
	Status runs.MarkerStatus
	Reason string
	Origin Origin
	// Epoch is Conversation.Epoch after it was applied, 0 before.
	Epoch int64
	// Created, Applied and Ended (undone or discarded); zero: not yet.
	Created, Applied, Ended time.Time
}

// Columns are the columns of markers, as m, in the order that Scan reads.
const Columns = `m.id, coalesce(m.base, ''), m.covers_from, m.covers_to, m.covered_messages, m.covered_chain, m.carried,
	m.summary_sha256, m.summary_tokens, m.digest, m.valve, m.valve_up_to, m.calibration, m.tokens_before,
	m.tokens_after, coalesce(m.run, ''),
	m.status, m.reason, m.origin, coalesce(m.epoch, 0), m.created_at, m.applied_at, m.ended_at, m.draft,
	m.native_sha256, m.native`

// Scan reads a row of Columns.
func Scan(row pgx.CollectableRow) (Marker, error) {
	var m Marker
	var chain, summary, native []byte
	var applied, ended *time.Time
	err := row.Scan(&m.ID, &m.Base, &m.CoversFrom, &m.CoversTo, &m.CoveredMessages, &chain, &m.Carried, &summary,
		&m.SummaryTokens, &m.Digest, &m.Valve, &m.ValveUpTo, &m.Calibration, &m.TokensBefore, &m.TokensAfter, &m.Run,
		&m.Status, &m.Reason,
		&m.Origin, &m.Epoch, &m.Created, &applied, &ended, (*[]byte)(&m.Draft), &native, (*[]byte)(&m.NativeUse))
	copy(m.CoveredChain[:], chain)
	m.Summary, m.Native = hex.EncodeToString(summary), hex.EncodeToString(native) // NULL is ""
	m.Applied, m.Ended = db.Or(applied, time.Time{}), db.Or(ended, time.Time{})
	return m, err
}

// Find reads a marker of the conversation with the key cid.
func Find(ctx context.Context, q db.Querier, cid int64, id string) (Marker, error) {
	m, err := db.One(ctx, q, Scan, `SELECT `+Columns+` FROM markers m WHERE m.cid = $1 AND m.id = $2`, cid,
		db.CleanText(id))
	if err != nil {
		return m, fmt.Errorf("marker %q: %w", id, err)
	}
	return m, nil
}

// Get reads one marker of a conversation.
func (s *Store) Get(ctx context.Context, ref db.ConversationRef, id string) (Marker, error) {
	var m Marker
	err := s.db.Read(ctx, "read a marker", func(ctx context.Context, q db.Querier) error {
		c, err := conversations.Find(ctx, q, ref)
		if err != nil {
			return err
		}
		m, err = Find(ctx, q, c.CID, id)
		return err
	})
	return m, err
}

// List lists a conversation's markers of every status, newest first.
func (s *Store) List(ctx context.Context, ref db.ConversationRef) ([]Marker, error) {
	var list []Marker
	err := s.db.Read(ctx, "list markers", func(ctx context.Context, q db.Querier) error {
		c, err := conversations.Find(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = db.All(ctx, q, Scan,
			`SELECT `+Columns+` FROM markers m WHERE m.cid = $1 ORDER BY m.created_at DESC, m.id DESC`, c.CID)
		return err
	})
	return list, err
}
