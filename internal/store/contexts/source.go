// Package contexts reads what the context of a conversation is made from, now or as a snapshot recorded it.
package contexts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/artifacts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/livestate"
	"precis/internal/store/markers"
)

// Store reads the sources of contexts and keeps snapshots of them.
type Store struct {
	db *db.DB
	// kept are the last snapshots that KeepSnapshot has written.
	kept recent
}

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Source is what the context of a conversation is made from, at one moment.
type Source struct {
	Conversation conversations.Conversation
	// Marker is the active marker, nil: the full history. Summary is its text, nil for a marker that only shortens the
	// tail.
	Marker  *markers.Marker
	Summary []byte
	// Native is the result of the vendor's own compaction for the marker, nil: none.
	Native []byte
	// Prepared is the prepared marker, nil: none.
	Prepared *markers.Marker
	// Carried are the covered messages that stay verbatim, Tail the messages after the marker, both in order.
	Carried, Tail []conversations.Message
	// Covered are the sums over all messages that the marker covers, including carried ones.
	Covered conversations.Sums
	// TurnStart is the last genuine user message, 0: none.
	TurnStart int64
	// Enrichments are the live state for this turn, by key.
	Enrichments []livestate.Enrichment
	// OldRules is set if a snapshot of a build before TextRules was made of this: texts are then redacted and escaped
	// as that build did it, so that what it recorded comes out again.
	OldRules bool
	// ReplyOpen is set if the agent's model is generating a reply.
	ReplyOpen bool

	packedNative []byte
}

// Head returns the last message of the source, 0 if there is none. It differs from the conversation's head if
// Options.UpTo was set.
func (v Source) Head() int64 {
	if n := len(v.Tail); n > 0 {
		return v.Tail[n-1].Seq
	}
	if v.Marker != nil {
		return v.Marker.CoversTo
	}
	return 0
}

// ChainAt returns the chain hash of a message; ok is false if the source does not have the message.
func (v Source) ChainAt(seq int64) (chain db.Hash, ok bool) {
	if v.Marker != nil && v.Marker.CoversTo == seq {
		return v.Marker.CoveredChain, true
	}
	for _, list := range [...][]conversations.Message{v.Tail, v.Carried} {
		for _, m := range list {
			if m.Seq == seq {
				return m.Chain, true
			}
		}
	}
	return chain, false
}

// Options select what a source is read from.
type Options struct {
	// UpTo excludes the messages after it, 0: none. A run sets it to work on the conversation as it was.
	UpTo int64
	// BeneathDigest skips active markers whose summary is a digest, down to the newest one whose summary is not. A run
	// sets it to replace a digest by a summary of the messages themselves. Conversation.ActiveMarker is still the
	// digest.
	BeneathDigest bool
	// From is the marker to start from, whatever its status; "" for the full history, nil for the active marker.
	From *string
}

// Read reads the source of a conversation's context from one snapshot of the database. Its cost depends on the size of
// the context, not on that of the whole conversation.
func (s *Store) Read(ctx context.Context, ref db.ConversationRef, o Options) (Source, error) {
	var v Source
	var packed []byte
	err := s.db.Snapshot(ctx, "read what is live", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		v, packed, err = ReadLocked(ctx, tx, c, o)
		return err
	})
	if err != nil {
		return v, err
	}
	return Unpack(s.db, v, packed)
}

// Unpack decompresses the summary that ReadLocked returned, and returns the complete source.
func Unpack(d *db.DB, v Source, packed []byte) (Source, error) {
	if packed == nil {
		return v, nil
	}
	sum, err := db.ParseHash(v.Marker.Summary)
	if err != nil {
		return v, err
	}
	if v.Summary, err = d.Unpack(sum, packed); err != nil || v.Marker.Native == "" {
		return v, err
	}
	if sum, err = db.ParseHash(v.Marker.Native); err != nil {
		return v, err
	}
	v.Native, err = d.Unpack(sum, v.packedNative)
	v.packedNative = nil
	return v, err
}

// ReadLocked is Read within a transaction. packed is the marker's summary, still compressed: see Unpack.
func ReadLocked(ctx context.Context, tx pgx.Tx, c conversations.Conversation,
	o Options,
) (v Source, packed []byte, err error) {
	if !c.ContentDeleted.IsZero() {
		return v, nil, db.ErrContentDeleted
	}
	v.Conversation = c
	if v.Marker, err = startMarker(ctx, tx, c, o); err != nil {
		return v, nil, err
	}
	if m := v.Marker; m != nil {
		if m.Summary != "" {
			sum, err := db.ParseHash(m.Summary)
			if err != nil {
				return v, nil, err
			}
			if packed, err = artifacts.Data(ctx, tx, c.Ref.Tenant, sum); err != nil {
				return v, nil, err
			}
		}
		if v.packedNative, err = nativeData(ctx, tx, c, m); err != nil {
			return v, nil, err
		}
		if v.Carried, err = conversations.MessagesAt(ctx, tx, c.CID, m.Carried); err != nil {
			return v, nil, err
		}
		if v.Covered, err = conversations.SumsAt(ctx, tx, c.CID, m.CoversTo); err != nil {
			return v, nil, err
		}
	}
	if v.Tail, err = conversations.MessagesAfter(ctx, tx, c.CID, v.coversTo(), o.UpTo); err != nil {
		return v, nil, err
	}
	return v, packed, v.readBeside(ctx, tx, c, o)
}

// startMarker returns the marker that a source starts from, nil for the full history.
func startMarker(ctx context.Context, q db.Querier, c conversations.Conversation, o Options) (*markers.Marker, error) {
	for id := db.Or(o.From, c.ActiveMarker); id != ""; {
		m, err := markers.Find(ctx, q, c.CID, id)
		if err != nil || !o.BeneathDigest || !m.Digest {
			return &m, err
		}
		id = m.Base
	}
	return nil, nil
}

func (v Source) coversTo() int64 {
	if v.Marker == nil {
		return 0
	}
	return v.Marker.CoversTo
}

// readBeside reads the parts of a source that are not messages.
func (v *Source) readBeside(ctx context.Context, tx pgx.Tx, c conversations.Conversation, o Options) error {
	var err error
	v.TurnStart, err = db.One(ctx, tx, pgx.RowTo[int64], `SELECT coalesce(max(seq), 0) FROM messages
		WHERE cid = $1 AND genuine AND ($2::bigint = 0 OR seq <= $2)`, c.CID, o.UpTo)
	if err != nil {
		return err
	}
	if v.Enrichments, err = livestate.ForTurn(ctx, tx, c, v.TurnStart); err != nil {
		return err
	}
	prepared, err := db.One(ctx, tx, markers.Scan,
		`SELECT `+markers.Columns+` FROM markers m WHERE m.cid = $1 AND m.status = 'prepared'`, c.CID)
	if err == nil {
		v.Prepared = &prepared
	} else if !db.IsNotFound(err) {
		return err
	}
	v.ReplyOpen, err = db.One(ctx, tx, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM replies
		WHERE cid = $1 AND ended_at IS NULL AND expires_at > clock_timestamp())`, c.CID)
	return err
}

// nativeData reads the native artifact of a marker, still compressed; nil if it has none.
func nativeData(ctx context.Context, q db.Querier, c conversations.Conversation, m *markers.Marker) ([]byte, error) {
	if m.Native == "" {
		return nil, nil
	}
	sum, err := db.ParseHash(m.Native)
	if err != nil {
		return nil, err
	}
	return artifacts.Data(ctx, q, c.Ref.Tenant, sum)
}
