package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// LiveView is what the context of a conversation is made from, at one moment.
type LiveView struct {
	Conversation Conversation
	// Marker is the active one, nil: the full history. Summary is its text, nil for one that only squeezes the tail.
	Marker  *Marker
	Summary []byte
	// Native is what the vendor's own compaction gave for the marker, nil: there is none.
	Native []byte
	// Prepared waits to be applied, nil: none.
	Prepared *Marker
	// Carried are the messages that the marker covers and keeps verbatim, Tail all that come after it, both in order.
	Carried, Tail []Message
	// Covered are the sums over all messages that the marker covers, carried ones too.
	Covered Sums
	// TurnStart is the last genuine user message, 0: none.
	TurnStart int64
	// Enrichments are the values that count for this turn, by key.
	Enrichments []Enrichment
	// ReplyOpen says that the agent's model is generating.
	ReplyOpen bool

	packedNative []byte
}

// Head is the last message of the view, 0: none. It differs from the conversation's when LiveOptions.UpTo was set.
func (v LiveView) Head() int64 {
	if n := len(v.Tail); n > 0 {
		return v.Tail[n-1].Seq
	}
	if v.Marker != nil {
		return v.Marker.CoversTo
	}
	return 0
}

// ChainAt gives the chain hash of a message of the view; ok is false when the view does not hold it.
func (v LiveView) ChainAt(seq int64) (chain Hash, ok bool) {
	if v.Marker != nil && v.Marker.CoversTo == seq {
		return v.Marker.CoveredChain, true
	}
	for _, list := range [...][]Message{v.Tail, v.Carried} {
		for _, m := range list {
			if m.Seq == seq {
				return m.Chain, true
			}
		}
	}
	return chain, false
}

// LiveOptions narrow a view.
type LiveOptions struct {
	// UpTo leaves out the messages after it, 0: none. For a run, which works on the conversation as it was.
	UpTo int64
	// BeneathDigest looks through an active marker whose summary is a digest, down to the newest that is none: for a
	// run that replaces the digest by a summary of the untouched messages. Conversation.ActiveMarker still names the
	// digest.
	BeneathDigest bool
	// From is the marker that the view starts from, whatever its status, in place of the active one; "" for the full
	// history. Nil: the active one.
	From *string
}

// LiveView reads what the context is made from, all of it from one snapshot. The cost is that of what is live, not of
// what was ever said.
func (s *Store) LiveView(ctx context.Context, ref ConversationRef, o LiveOptions) (LiveView, error) {
	var v LiveView
	var packed []byte
	err := s.snapshot(ctx, "read what is live", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		v, packed, err = liveView(ctx, tx, c, o)
		return err
	})
	if err != nil {
		return v, err
	}
	return s.unpackSummary(v, packed)
}

// unpackSummary gives a view its summary, which liveView leaves packed.
func (s *Store) unpackSummary(v LiveView, packed []byte) (LiveView, error) {
	if packed == nil {
		return v, nil
	}
	sum, err := parseHash(v.Marker.Summary)
	if err != nil {
		return v, err
	}
	if v.Summary, err = s.unpack(sum, packed); err != nil || v.Marker.Native == "" {
		return v, err
	}
	if sum, err = parseHash(v.Marker.Native); err != nil {
		return v, err
	}
	v.Native, err = s.unpack(sum, v.packedNative)
	v.packedNative = nil
	return v, err
}

// liveView reads what is live of a conversation, and the active marker's summary, packed.
func liveView(ctx context.Context, tx pgx.Tx, c Conversation, o LiveOptions) (v LiveView, packed []byte, err error) {
	if !c.ContentDeleted.IsZero() {
		return v, nil, ErrContentDeleted
	}
	v.Conversation = c
	if v.Marker, err = startMarker(ctx, tx, c, o); err != nil {
		return v, nil, err
	}
	if m := v.Marker; m != nil {
		if m.Summary != "" {
			sum, err := parseHash(m.Summary)
			if err != nil {
				return v, nil, err
			}
			if packed, err = artifactData(ctx, tx, c.Ref.Tenant, sum); err != nil {
				return v, nil, err
			}
		}
		if v.packedNative, err = nativeData(ctx, tx, c, m); err != nil {
			return v, nil, err
		}
		if v.Carried, err = messagesAt(ctx, tx, c.cid, m.Carried); err != nil {
			return v, nil, err
		}
		if v.Covered, err = sumsAt(ctx, tx, c.cid, m.CoversTo); err != nil {
			return v, nil, err
		}
	}
	if v.Tail, err = tailAfter(ctx, tx, c.cid, v.coversTo(), o.UpTo); err != nil {
		return v, nil, err
	}
	return v, packed, v.readBeside(ctx, tx, c, o)
}

// startMarker gives the marker that a view starts from, nil for the full history.
func startMarker(ctx context.Context, q querier, c Conversation, o LiveOptions) (*Marker, error) {
	for id := or(o.From, c.ActiveMarker); id != ""; {
		m, err := marker(ctx, q, c.cid, id)
		if err != nil || !o.BeneathDigest || !m.Digest {
			return &m, err
		}
		id = m.Base
	}
	return nil, nil
}

func (v LiveView) coversTo() int64 {
	if v.Marker == nil {
		return 0
	}
	return v.Marker.CoversTo
}

func tailAfter(ctx context.Context, q querier, cid, after, upTo int64) ([]Message, error) {
	return all(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM messages m
		WHERE m.cid = $1 AND m.seq > $2 AND ($3::bigint = 0 OR m.seq <= $3) ORDER BY m.seq`, cid, after, upTo)
}

func sumsAt(ctx context.Context, q querier, cid, seq int64) (Sums, error) {
	if seq == 0 {
		return Sums{}, nil
	}
	return one(ctx, q, func(row pgx.CollectableRow) (s Sums, err error) {
		return s, row.Scan(&s.Tokens, &s.Chars, &s.Turns)
	}, `SELECT tokens_sum, chars_sum, turns_sum FROM messages WHERE cid = $1 AND seq = $2`, cid, seq)
}

// readBeside reads what is not messages.
func (v *LiveView) readBeside(ctx context.Context, tx pgx.Tx, c Conversation, o LiveOptions) error {
	var err error
	v.TurnStart, err = one(ctx, tx, pgx.RowTo[int64], `SELECT coalesce(max(seq), 0) FROM messages
		WHERE cid = $1 AND genuine AND ($2::bigint = 0 OR seq <= $2)`, c.cid, o.UpTo)
	if err != nil {
		return err
	}
	if v.Enrichments, err = enrichmentsFor(ctx, tx, c, v.TurnStart); err != nil {
		return err
	}
	prepared, err := one(ctx, tx, scanMarker,
		`SELECT `+markerColumns+` FROM markers m WHERE m.cid = $1 AND m.status = 'prepared'`, c.cid)
	if err == nil {
		v.Prepared = &prepared
	} else if !isNotFound(err) {
		return err
	}
	v.ReplyOpen, err = one(ctx, tx, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM replies
		WHERE cid = $1 AND ended_at IS NULL AND expires_at > clock_timestamp())`, c.cid)
	return err
}

// LiveSums are the sizes of what is live, without its content.
type LiveSums struct {
	// Tail sums the messages after the active marker, Carried the tokens of those it carries, Summary the tokens of its
	// summary. Without a marker Tail is everything.
	Tail                   Sums
	CarriedTokens, Summary int64
	// Enrichments are the tokens of the state that counts for the turn.
	Enrichments int64
}

// Tokens is the local estimate of the whole history as it would be sent, before trimming, without state.
func (l LiveSums) Tokens() int64 { return l.Tail.Tokens + l.CarriedTokens + l.Summary }

// LiveSums measures what is live in constant time, for a trigger that is looked at with every append.
func (s *Store) LiveSums(ctx context.Context, ref ConversationRef) (LiveSums, error) {
	var l LiveSums
	err := s.snapshot(ctx, "measure what is live", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		l = LiveSums{Tail: c.Sums}
		if !c.ContentDeleted.IsZero() {
			return nil
		}
		l, _, err = liveSums(ctx, tx, c)
		return err
	})
	return l, err
}

// liveSums measures a conversation, and gives its active marker.
func liveSums(ctx context.Context, q querier, c Conversation) (LiveSums, *Marker, error) {
	l := LiveSums{Tail: c.Sums}
	var err error
	if l.Enrichments, err = enrichmentTokens(ctx, q, c); err != nil || c.ActiveMarker == "" {
		return l, nil, err
	}
	m, err := marker(ctx, q, c.cid, c.ActiveMarker)
	if err != nil {
		return l, nil, err
	}
	covered, err := sumsAt(ctx, q, c.cid, m.CoversTo)
	if err != nil {
		return l, nil, err
	}
	l.Tail, l.Summary = c.Sums.Minus(covered), int64(m.SummaryTokens)
	l.CarriedTokens, err = one(ctx, q, pgx.RowTo[int64], `SELECT coalesce(sum(tokens), 0)::bigint FROM messages
		WHERE cid = $1 AND seq = ANY($2)`, c.cid, m.Carried)
	return l, &m, err
}
