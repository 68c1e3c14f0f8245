// Package conversations keeps conversations and their messages. A conversation's row is the lock for every change to
// the conversation; messages are append-only (a trigger in the database refuses anything else) and are appended by
// package changes.
package conversations

import (
	"encoding/json"
	"time"

	"precis/internal/store/db"
)

// Store reads and creates conversations.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Messages reads the messages of conversations.
type Messages struct{ db *db.DB }

// NewMessages returns Messages over an open database.
func NewMessages(d *db.DB) *Messages { return &Messages{db: d} }

// Conversation is one row of the table conversations.
type Conversation struct {
	Ref    db.ConversationRef
	Format string
	Vendor string
	Model  string
	// Window and MaxOutput in tokens, 0: not known.
	Window, MaxOutput int
	// LearnedWindow is the window that a vendor's overflow error named, 0: none.
	LearnedWindow                               int
	System, Tools, Envelope, Settings, Metadata json.RawMessage
	// TenantSettings are the pipeline.Settings of its tenant, nil: none.
	TenantSettings json.RawMessage
	// OverheadTokens is the local estimate of System and Tools, -1: not measured.
	OverheadTokens int
	Ephemeral      bool
	// HeadSeq is the last message's sequence number, 0 when there is none.
	HeadSeq int64
	// HeadChain is the head's chain hash: it commits to every message.
	HeadChain db.Hash
	// ActiveMarker is the marker that the context starts from, "" for the full history.
	ActiveMarker string
	// Epoch goes up with each change of ActiveMarker.
	Epoch int64
	// Sums are over all messages.
	Sums Sums
	// Usage is the server's last own figure.
	Usage Usage
	// Measured is the size of the history when its context was last built in this epoch, nil: not built yet.
	Measured *Measured
	// AutoHeld is set after an undo until the next user message: no automatic run may start.
	AutoHeld bool
	Created  time.Time
	// ContentDeleted is when the content was deleted, zero: it was not.
	ContentDeleted time.Time

	CID int64
	// SyncChain is the sync chain of the head, nil when it is not known.
	SyncChain *db.Hash
	// SealChain is the chain of the last seal: it commits to everything that was sealed.
	SealChain db.Hash
	// Now is the database's time when the row was read, that of the transaction.
	Now time.Time
}

// Measured is the exact size of a history at a moment.
type Measured struct {
	// Tokens is the local estimate of the trimmed history, Seq the last message that it counts.
	Tokens, Seq int64
}

// Sums are running totals over the messages up to one of them, so that the difference of two is the size of the
// messages between them.
type Sums struct {
	// Tokens are local estimates, Chars Unicode code points, Turns genuine user messages.
	Tokens, Chars, Turns int64
}

// Minus returns the sums over the messages after those of o.
func (s Sums) Minus(o Sums) Sums {
	return Sums{Tokens: s.Tokens - o.Tokens, Chars: s.Chars - o.Chars, Turns: s.Turns - o.Turns}
}

// Usage is the server's own count of the tokens of one request and its answer.
type Usage struct {
	// Tokens is 0 until the first figure was reported.
	Tokens int
	// CoversSeq is the last message that the figure counts.
	CoversSeq int64
	// Estimate is the local estimate of what the figure counts, in tokens.
	Estimate int
	// Stale is set if a marker was applied or undone since the request began: the figure is of a context that is no
	// longer sent.
	Stale bool
	// Calibration is real tokens divided by estimated ones at the last figure, 0: not known.
	Calibration float64
}
