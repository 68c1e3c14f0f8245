package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"
)

// AppendOptions go with one append.
type AppendOptions struct {
	// IfSeq, when set, is the head that the caller believes in: another one is ErrStaleSequence.
	IfSeq *int64
	// Usage is the server's figure for the request whose answer ends what is appended, nil: none.
	Usage *UsageReport
	// LearnWindow is the window that a vendor's overflow error named, in tokens; 0: none did.
	LearnWindow int
	// Watch looks, in the same transaction, whether a compaction is due; nil: nobody looks.
	Watch Watch
}

// UsageReport is a server's own figure for one request and its answer.
type UsageReport struct {
	// Tokens in all: input, cached input and output. Not over 0: no figure.
	Tokens int
	// Estimate is the local estimate of the same content in tokens, for the calibration; 0: not known.
	Estimate int
	// Epoch is Conversation.Epoch when the request began, nil: not known. Then it is that of the reply that is open,
	// else now, unless the figure fits the context before the last marker better (see late). A figure of an earlier
	// epoch is dropped.
	Epoch *int64
	// CoversSeq is the last message that the figure counts, 0: the last one that is appended with it.
	CoversSeq int64
	// Covers is the index of that message among those that are appended with it, nil: CoversSeq counts.
	Covers *int

	// late says that it was found to be of an earlier epoch.
	late bool
}

// AppendResult says what an append did.
type AppendResult struct {
	// FirstSeq and LastSeq are the first and last message that was written, 0 when all were there already.
	FirstSeq, LastSeq int64
	// Seqs has the sequence number of every message that was given, also of those that were there already.
	Seqs []int64
	// Duplicates counts the latter.
	Duplicates int
	// Conversation is the conversation after the append.
	Conversation Conversation
	// Watched is what the watch made of it.
	Watched Watched
}

// From this many messages on COPY beats a multi-row insert.
const copyFrom = 64

// Append adds messages at the end of a conversation, all or none of them. Its cost does not depend on what is
// there already. Appends to one conversation go one after another; numbers have no gaps. A message whose client
// id the conversation has adds nothing, and keeps its first number.
func (s *Store) Append(ctx context.Context, ref ConversationRef, messages []NewMessage,
	o AppendOptions,
) (AppendResult, error) {
	var res AppendResult
	for i, m := range messages {
		if err := m.validate(); err != nil {
			return res, fmt.Errorf("store: append: message %d: %w", i, err)
		}
	}
	err := s.write(ctx, "append", func(ctx context.Context, tx pgx.Tx) (err error) {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		res, err = appendLocked(ctx, tx, c, messages, o)
		if err != nil {
			return err
		}
		res.Watched, err = s.watchLocked(ctx, tx, &res.Conversation, o.Watch)
		return err
	})
	return res, err
}

func (m NewMessage) validate() error {
	switch {
	case m.ClientID != "" && !goodID(m.ClientID, 512):
		return invalidf("a client id has at most 512 bytes of UTF-8 and no control characters")
	case m.Role != "system" && m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
		return invalidf("role %q: it is system, user, assistant or tool", m.Role)
	case m.Kind != "" && !goodID(string(m.Kind), 64):
		return invalidf("kind %q", m.Kind)
	case len(m.Native) == 0:
		return invalidf("it is empty")
	case len(m.Native) > MaxMessageBytes:
		return invalidf("it has %d bytes, a message has at most %d", len(m.Native), MaxMessageBytes)
	case m.Chars < 0 || m.Tokens < 0 || m.Chars > math.MaxInt32 || m.Tokens > math.MaxInt32:
		return invalidf("chars %d, tokens %d: not negative, at most %d", m.Chars, m.Tokens, math.MaxInt32)
	}
	return nil
}

// MaxMessageBytes bounds one message. PostgreSQL takes a value of 1 GB, and needs it twice in memory.
const MaxMessageBytes = 256 << 20

// appendLocked appends to a conversation whose row the transaction holds.
func appendLocked(ctx context.Context, tx pgx.Tx, c Conversation, messages []NewMessage,
	o AppendOptions,
) (AppendResult, error) {
	if !c.ContentDeleted.IsZero() {
		return AppendResult{}, ErrContentDeleted
	}
	if o.IfSeq != nil && *o.IfSeq != c.HeadSeq {
		return AppendResult{}, fmt.Errorf("the conversation's head is %d, not %d: %w", c.HeadSeq, *o.IfSeq,
			ErrStaleSequence)
	}
	known, err := knownClientIDs(ctx, tx, c.cid, messages)
	if err != nil {
		return AppendResult{}, err
	}
	res := AppendResult{Seqs: make([]int64, len(messages))}
	rows := make([][]any, 0, len(messages))
	before := c.HeadSeq
	for i, m := range messages {
		if seq, ok := known[m.ClientID]; ok && m.ClientID != "" {
			res.Seqs[i] = seq
			res.Duplicates++
			continue
		}
		c.HeadSeq++
		c.HeadChain = Chain(c.HeadChain, c.HeadSeq, m.Role, m.Kind, m.ClientID, m.Native)
		c.Sums.Tokens += int64(m.Tokens)
		c.Sums.Chars += int64(m.Chars)
		if m.Genuine {
			c.Sums.Turns++
		}
		var clientID *string
		if m.ClientID != "" {
			clientID = &m.ClientID
			known[m.ClientID] = c.HeadSeq
		}
		chain := c.HeadChain
		c.syncChain = syncChain(c.syncChain, m.Fingerprint)
		search := searchText(m.SearchText)
		record := messageRecord{
			chain: chain, sums: c.Sums, chars: int64(m.Chars), tokens: int64(m.Tokens), bytes: int64(len(m.Native)),
			genuine: m.Genuine, created: c.now, syncChain: c.syncChain.bytes(),
			searchText: sha256.Sum256([]byte(search)),
		}.hash()
		rows = append(rows, []any{
			c.cid, c.HeadSeq, c.Sums.Tokens, c.Sums.Chars, c.Sums.Turns, m.Chars, m.Tokens,
			len(m.Native), m.Genuine, string(m.Role), string(m.Kind), clientID, chain[:], m.Native, search,
			c.syncChain.bytes(), c.now, record[:],
		})
		res.Seqs[i] = c.HeadSeq
	}
	if len(rows) > 0 {
		res.FirstSeq, res.LastSeq = before+1, c.HeadSeq
	}
	usage, err := c.judge(ctx, tx, o.Usage, res.Seqs)
	if err != nil {
		return AppendResult{}, err
	}
	c.takeUsage(usage)
	learned := c.LearnedWindow
	if o.LearnWindow > 0 {
		c.LearnedWindow = min(o.LearnWindow, maxInt4)
	}
	if len(rows) >= copyFrom {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"messages"}, messageInsertColumns,
			pgx.CopyFromRows(rows)); err != nil {
			return AppendResult{}, err
		}
		rows = nil
	}
	if err := c.save(ctx, tx, rows); err != nil {
		return AppendResult{}, err
	}
	if c.LearnedWindow != learned {
		if err := seal(ctx, tx, c.cid, ofConversation()); err != nil {
			return AppendResult{}, err
		}
	}
	res.Conversation = c
	return res, nil
}

// knownClientIDs finds which of the messages are there already. The caller holds the conversation's row, so that
// nobody can add one meanwhile.
func knownClientIDs(ctx context.Context, tx pgx.Tx, cid int64, messages []NewMessage) (map[string]int64, error) {
	known := map[string]int64{}
	var ids []string
	for _, m := range messages {
		if m.ClientID != "" {
			ids = append(ids, m.ClientID)
		}
	}
	if len(ids) == 0 {
		return known, nil
	}
	rows, err := tx.Query(ctx, `SELECT client_id, seq FROM messages WHERE cid = $1 AND client_id = ANY($2)`, cid, ids)
	if err != nil {
		return nil, err
	}
	var id string
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
		known[id] = seq
		return nil
	})
	return known, err
}

var messageInsertColumns = []string{
	"cid", "seq", "tokens_sum", "chars_sum", "turns_sum", "chars", "tokens", "bytes", "genuine", "role", "kind",
	"client_id", "chain", "native", "search_text", "sync_chain", "created_at", "record",
}

// judge makes the report definite: which message it covers, and of which epoch it is.
func (c *Conversation) judge(ctx context.Context, tx pgx.Tx, r *UsageReport, appended []int64) (*UsageReport, error) {
	if r == nil || r.Tokens <= 0 {
		return nil, nil
	}
	u := *r
	switch {
	case u.Covers != nil && *u.Covers >= 0 && *u.Covers < len(appended):
		u.CoversSeq = appended[*u.Covers]
	case u.CoversSeq == 0 && len(appended) > 0:
		u.CoversSeq = appended[len(appended)-1]
	case u.CoversSeq == 0:
		u.CoversSeq = c.HeadSeq
	}
	u.CoversSeq = min(u.CoversSeq, c.HeadSeq)
	if u.Epoch != nil {
		return &u, nil
	}
	open, err := one(ctx, tx, scanReply, `SELECT `+replyColumns+` FROM replies p
		WHERE p.cid = $1 AND p.ended_at IS NULL AND p.expires_at > clock_timestamp()`, c.cid)
	switch {
	case err == nil:
		u.Epoch = &open.Epoch
		return &u, nil
	case !isNotFound(err):
		return nil, err
	}
	u.late, err = c.late(ctx, tx, u)
	return &u, err
}

// late says whether a figure of unknown age is that of a request which began before the active marker: it is the first
// one since, and nearer to the size before the marker than to the size after it, with what came since added to both.
func (c *Conversation) late(ctx context.Context, tx pgx.Tx, u UsageReport) (bool, error) {
	if c.ActiveMarker == "" || c.Usage.Tokens > 0 && !c.Usage.Stale {
		return false, nil
	}
	m, err := marker(ctx, tx, c.cid, c.ActiveMarker)
	if err != nil || m.TokensBefore <= m.TokensAfter {
		return false, err
	}
	seen := max(m.ValveUpTo, m.CoversTo)
	if c.Usage.CoversSeq > seen {
		return false, nil // one has been dropped already: an agent has one request under way at a time
	}
	then, err := sumsAt(ctx, tx, c.cid, min(seen, c.HeadSeq))
	if isNotFound(err) { // seen is what is being appended: nothing came since
		then, err = c.Sums, nil
	}
	if err != nil {
		return false, err
	}
	since := int(c.Sums.Tokens - then.Tokens)
	return u.Tokens-since > (m.TokensBefore+m.TokensAfter)/2, nil
}

// takeUsage takes over a server's figure, unless it is of a context that is no longer sent or covers less than
// the figure that is there.
func (c *Conversation) takeUsage(r *UsageReport) {
	switch {
	case r == nil, r.Epoch != nil && *r.Epoch != c.Epoch, !c.Usage.Stale && c.Usage.CoversSeq > r.CoversSeq:
		return
	case r.late: // the next one is not taken for late as well
		c.Usage.CoversSeq = max(c.Usage.CoversSeq, r.CoversSeq)
		return
	}
	c.Usage = Usage{Tokens: r.Tokens, CoversSeq: r.CoversSeq, Estimate: r.Estimate, Calibration: c.Usage.Calibration}
	if r.Estimate > 0 {
		c.Usage.Calibration = float64(r.Tokens) / float64(r.Estimate)
	}
}

// save writes what an append changes on the conversation, and the messages, in one round trip.
func (c *Conversation) save(ctx context.Context, tx pgx.Tx, messages [][]any) error {
	batch := &pgx.Batch{}
	for _, row := range messages {
		batch.Queue(`INSERT INTO messages (cid, seq, tokens_sum, chars_sum, turns_sum, chars, tokens, bytes, genuine, role,
				kind, client_id, chain, native, search_text, sync_chain, created_at, record)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`, row...)
	}
	var tokens, covers, epoch, estimate *int64
	if c.Usage.Tokens > 0 {
		tokens, covers, estimate = ptr(int64(c.Usage.Tokens)), &c.Usage.CoversSeq, ptr(int64(c.Usage.Estimate))
		if !c.Usage.Stale {
			epoch = &c.Epoch
		}
	}
	batch.Queue(`UPDATE conversations SET head_seq = $2, head_chain = $3, tokens_sum = $4, chars_sum = $5, turns_sum = $6,
			server_tokens = $7, server_covers_seq = $8, server_estimate = $9, calibration = $10, updated_at = now(),
			server_epoch = CASE WHEN $7::bigint IS NOT NULL THEN coalesce($11, server_epoch) END,
			learned_window = $12, sync_chain = $13, sync_seq = CASE WHEN $13::bytea IS NOT NULL THEN $2 ELSE sync_seq END
		WHERE cid = $1 RETURNING auto_hold_turns >= turns_sum`,
		c.cid, c.HeadSeq, c.HeadChain[:], c.Sums.Tokens, c.Sums.Chars, c.Sums.Turns, tokens, covers, estimate,
		c.Usage.Calibration, epoch, c.LearnedWindow,
		c.syncChain.bytes()).QueryRow(func(row pgx.Row) error { return row.Scan(&c.AutoHeld) })
	return tx.SendBatch(ctx, batch).Close()
}

func ptr[T any](v T) *T { return &v }

// RecordUsage takes over a server's figure without messages. It returns the conversation with what now counts.
func (s *Store) RecordUsage(ctx context.Context, ref ConversationRef, r UsageReport) (Conversation, error) {
	res, err := s.Append(ctx, ref, nil, AppendOptions{Usage: &r})
	return res.Conversation, err
}

// The size of one batch of AppendStream: whichever is reached first.
const (
	batchMessages = 1000
	batchBytes    = 8 << 20
)

// AppendStream appends a long sequence, as an import does, in batches: memory is bounded by a batch, or by one
// message. Each batch is all or nothing, and expects the head that the one before it left: another writer in
// between is ErrStaleSequence. Seqs of the result stays empty. What was written before an error stays.
func (s *Store) AppendStream(ctx context.Context, ref ConversationRef,
	messages iter.Seq2[NewMessage, error],
) (AppendResult, error) {
	var sum AppendResult
	c, err := s.GetConversation(ctx, ref)
	if err != nil {
		return sum, err
	}
	sum.Conversation = c
	var batch []NewMessage
	var size int
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		res, err := s.Append(ctx, ref, batch, AppendOptions{IfSeq: &sum.Conversation.HeadSeq})
		if err != nil {
			return err
		}
		if sum.FirstSeq == 0 {
			sum.FirstSeq = res.FirstSeq
		}
		if res.LastSeq != 0 {
			sum.LastSeq = res.LastSeq
		}
		sum.Duplicates += res.Duplicates
		sum.Conversation = res.Conversation
		batch, size = nil, 0
		return nil
	}
	for m, err := range messages {
		if err != nil {
			return sum, err
		}
		batch = append(batch, m)
		if size += len(m.Native); len(batch) >= batchMessages || size >= batchBytes {
			if err := flush(); err != nil {
				return sum, err
			}
		}
	}
	return sum, flush()
}
