package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// NewMessage is a message to append: what arrived, and what its codec found in it.
type NewMessage struct {
	// ClientID is the client's own id, "": none. The same one again adds nothing.
	ClientID string
	Role     pipeline.Role
	Kind     pipeline.Kind
	// Genuine is pipeline.Message.Genuine.
	Genuine bool
	// Chars are Unicode code points, Tokens a local estimate.
	Chars, Tokens int
	// Native is the message as it arrived, any bytes.
	Native []byte
	// SearchText is what a search finds, "": nothing. It is cleaned and cut to MaxSearchBytes here.
	SearchText string
	// Fingerprint is of the JSON value that Native is, however it is written. Zero: not known, and then a client's
	// whole list is compared message by message.
	Fingerprint Hash
}

// Message is a stored message. Its parts are the codec's matter: Pipeline leaves them empty.
type Message struct {
	Seq      int64
	ClientID string
	Role     pipeline.Role
	Kind     pipeline.Kind
	Genuine  bool
	// Chars are Unicode code points, Tokens a local estimate.
	Chars, Tokens int
	Native        json.RawMessage
	// Chain commits to this message and all before it, see Chain.
	Chain Hash
	// Sums are over the conversation up to and including this message.
	Sums    Sums
	Created time.Time
	// Pruned is when a placeholder took the place of its content, zero: it is whole.
	Pruned time.Time
}

// Pipeline gives the message as the pipeline takes it, without its parts.
func (m Message) Pipeline() pipeline.Message {
	return pipeline.Message{Seq: m.Seq, ID: m.ClientID, Role: m.Role, Kind: m.Kind, Native: m.Native, Tokens: m.Tokens}
}

// Chain gives the chain hash of a message: SHA-256 over the chain of the one before it (zero for the first), its
// sequence number as 8 bytes big-endian, its role, kind and client id each ended by a zero byte, and the SHA-256 of its
// native bytes. A changed, missing or moved message changes every chain after it.
func Chain(before Hash, seq int64, role pipeline.Role, kind pipeline.Kind, clientID string, native []byte) Hash {
	return chainOver(before, seq, role, kind, clientID, sha256.Sum256(native))
}

// chainOver is Chain where the bytes are gone and their hash is known: what was pruned stays proved.
func chainOver(before Hash, seq int64, role pipeline.Role, kind pipeline.Kind, clientID string, native Hash) Hash {
	h := sha256.New()
	_, _ = h.Write(before[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(seq))
	_, _ = h.Write(n[:])
	for _, s := range [...]string{string(role), string(kind), clientID} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	_, _ = h.Write(native[:])
	return Hash(h.Sum(nil))
}

// messageRecord is what a message's row says that its chain does not commit to.
type messageRecord struct {
	chain                Hash
	sums                 Sums
	chars, tokens, bytes int64
	genuine              bool
	created              time.Time
	syncChain            []byte
	searchText           Hash
}

// hash gives the record of a message's row, messages.record: SHA-256 over its chain, then as 8 bytes big-endian each
// its sums (tokens, chars, turns), chars, tokens, bytes, 1 if it is genuine, and microseconds since 1970 when it was
// written, then the SHA-256 of its search text and its sync chain, if it has one.
func (r messageRecord) hash() Hash {
	h := sha256.New()
	_, _ = h.Write(r.chain[:])
	genuine := int64(0)
	if r.genuine {
		genuine = 1
	}
	var n [8]byte
	for _, v := range [...]int64{
		r.sums.Tokens, r.sums.Chars, r.sums.Turns, r.chars, r.tokens, r.bytes, genuine,
		r.created.UnixMicro(),
	} {
		binary.BigEndian.PutUint64(n[:], uint64(v))
		_, _ = h.Write(n[:])
	}
	_, _ = h.Write(r.searchText[:])
	_, _ = h.Write(r.syncChain)
	return Hash(h.Sum(nil))
}

// syncChain goes on a sync chain by one message, nil where it is not known.
func syncChain(before *Hash, fingerprint Hash) *Hash {
	if before == nil || fingerprint.IsZero() {
		return nil
	}
	next := SyncChain(*before, fingerprint)
	return &next
}

// SyncChain gives the sync chain of a message: SHA-256 over that of the one before it (zero for the first) and the
// fingerprint of its JSON value. Unlike Chain it can be computed from what a client holds.
func SyncChain(before, fingerprint Hash) Hash {
	h := sha256.New()
	_, _ = h.Write(before[:])
	_, _ = h.Write(fingerprint[:])
	return Hash(h.Sum(nil))
}

// bytes gives the hash as a column takes it, nil for none.
func (h *Hash) bytes() []byte {
	if h == nil {
		return nil
	}
	return h[:]
}

const messageColumns = `m.seq, coalesce(m.client_id, ''), m.role, m.kind, m.genuine, m.chars, m.tokens, m.native, m.chain,
	m.tokens_sum, m.chars_sum, m.turns_sum, m.created_at, m.pruned_at`

func scanMessage(row pgx.CollectableRow) (Message, error) {
	var m Message
	var chain []byte
	var pruned *time.Time
	err := row.Scan(&m.Seq, &m.ClientID, &m.Role, &m.Kind, &m.Genuine, &m.Chars, &m.Tokens, (*[]byte)(&m.Native),
		&chain,
		&m.Sums.Tokens, &m.Sums.Chars, &m.Sums.Turns, &m.Created, &pruned)
	copy(m.Chain[:], chain)
	m.Pruned = or(pruned, time.Time{})
	return m, err
}

// The size of one page of Messages: whichever is reached first.
const (
	pageMessages = 500
	pageBytes    = 8 << 20
)

// Messages walks the messages from seq from to seq to, both included, in order; to 0: up to the head as it is
// when it gets there. It holds no connection while the caller works, and at most a few megabytes, or one message,
// of content. It stops after the first error.
func (s *Store) Messages(ctx context.Context, ref ConversationRef, from, to int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for next := from; to == 0 || next <= to; {
			page, err := s.messagePage(ctx, ref, next, to)
			if err != nil {
				yield(Message{}, err)
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			next = page[len(page)-1].Seq + 1
		}
	}
}

func (s *Store) messagePage(ctx context.Context, ref ConversationRef, from, to int64) ([]Message, error) {
	var page []Message
	err := s.read(ctx, "read messages", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		// The sum is over a column of numbers: what is past the page is not read from its TOAST table.
		page, err = all(ctx, q, scanMessage, `SELECT `+messageColumns+` FROM (
				SELECT *, sum(bytes) OVER (ORDER BY seq) - bytes AS bytes_before FROM (
					SELECT * FROM messages WHERE cid = $1 AND seq >= $2 AND ($3::bigint = 0 OR seq <= $3) ORDER BY seq LIMIT $4
				) p
			) m WHERE m.bytes_before < $5 ORDER BY m.seq`, cid, from, to, pageMessages, pageBytes)
		return err
	})
	return page, err
}

// readable finds the key of a conversation whose content is there.
func readable(ctx context.Context, q querier, ref ConversationRef) (int64, error) {
	type found struct {
		cid  int64
		gone bool
	}
	if !goodID(ref.ID, 160) || !goodID(ref.Tenant, 64) {
		return 0, ErrNotFound
	}
	f, err := one(ctx, q, func(row pgx.CollectableRow) (f found, err error) {
		return f, row.Scan(&f.cid, &f.gone)
	}, `SELECT cid, content_deleted_at IS NOT NULL FROM conversations WHERE tenant = $1 AND id = $2`, ref.Tenant,
		ref.ID)
	switch {
	case isNotFound(err):
		err = notFoundf("conversation %q", ref.ID)
	case err == nil && f.gone:
		err = ErrContentDeleted
	}
	return f.cid, err
}

// MessagesAt reads the messages with the given sequence numbers, in the order of the conversation. One that does
// not exist is ErrNotFound: nothing is left out silently.
func (s *Store) MessagesAt(ctx context.Context, ref ConversationRef, seqs []int64) ([]Message, error) {
	var list []Message
	err := s.read(ctx, "read messages", func(ctx context.Context, q querier) error {
		cid, err := readable(ctx, q, ref)
		if err != nil {
			return err
		}
		list, err = messagesAt(ctx, q, cid, seqs)
		return err
	})
	return list, err
}

func messagesAt(ctx context.Context, q querier, cid int64, seqs []int64) ([]Message, error) {
	wanted := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		wanted[seq] = true
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	list, err := all(ctx, q, scanMessage,
		`SELECT `+messageColumns+` FROM messages m WHERE m.cid = $1 AND m.seq = ANY($2) ORDER BY m.seq`, cid, seqs)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		delete(wanted, m.Seq)
	}
	for seq := range wanted {
		return nil, notFoundf("message %d", seq)
	}
	return list, nil
}

// CheckChain recomputes the chain over all messages of a conversation, and gives it at a sequence number (0: the
// head), which a marker's CoveredChain must equal. The first message that does not fit is ErrTampered, and so is a
// head that is not the one which the conversation says.
func (s *Store) CheckChain(ctx context.Context, ref ConversationRef, upTo int64) (Hash, error) {
	var chain Hash
	err := s.Verify(ctx, ref, func(ctx context.Context, v *Verification) error {
		if !v.Conversation.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		if upTo == 0 {
			upTo = v.Conversation.HeadSeq
		}
		f, chains, err := v.Messages(ctx, upTo)
		if err != nil {
			return err
		}
		for _, fault := range f.List {
			if fault.State != FaultPruned {
				return fmt.Errorf("conversation %q, message %s: %s: %w", ref.ID, fault.Key, fault.Detail, ErrTampered)
			}
		}
		chain = chains[upTo]
		return nil
	})
	return chain, err
}
