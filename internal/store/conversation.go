package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// NewConversation is what a conversation starts with. Raw JSON is kept byte for byte, nil: not given.
type NewConversation struct {
	// ID is the client's own id, at most 160 bytes without control characters. Empty: one is made.
	ID string
	// Format is the wire format of every message to come, such as "anthropic".
	Format string
	Vendor string
	Model  string
	// Window and MaxOutput in tokens, 0: not known.
	Window, MaxOutput int
	// System and Tools are the agent's, in the format's own form. Envelope is the agent's last request
	// without its messages, where there was one.
	System, Tools, Envelope json.RawMessage
	// Settings is what this conversation sets of pipeline.Settings, as JSON.
	Settings json.RawMessage
	// Metadata is the client's own.
	Metadata json.RawMessage
	// Ephemeral marks a conversation that is made for one run: DeleteConversationContent follows.
	Ephemeral bool
}

// Conversation is one row of conversations.
type Conversation struct {
	Ref    ConversationRef
	Format string
	Vendor string
	Model  string
	// Window and MaxOutput in tokens, 0: not known.
	Window, MaxOutput int
	// LearnedWindow is the window that a vendor's overflow error named, 0: none.
	LearnedWindow                               int
	System, Tools, Envelope, Settings, Metadata json.RawMessage
	// TenantSettings is what its tenant sets of pipeline.Settings, nil: nothing.
	TenantSettings json.RawMessage
	// OverheadTokens is the local estimate of System and Tools, -1: not measured.
	OverheadTokens int
	Ephemeral      bool
	// HeadSeq is the last message's sequence number, 0 when there is none.
	HeadSeq int64
	// HeadChain is the head's chain hash: it commits to every message.
	HeadChain Hash
	// ActiveMarker is the marker that the context starts from, "" for the full history.
	ActiveMarker string
	// Epoch goes up with each change of ActiveMarker.
	Epoch int64
	// Sums are over all messages.
	Sums Sums
	// Usage is the server's last own figure.
	Usage Usage
	// Measured is what the history was when its context was built last; nil when there is none of this epoch.
	Measured *Measured
	// AutoHeld says that an undo came and no user message since: no automatic run may start.
	AutoHeld bool
	Created  time.Time
	// ContentDeleted is zero while the content is there.
	ContentDeleted time.Time

	cid int64
	// syncChain is the sync chain of the head, nil when it is not known.
	syncChain *Hash
	sealChain Hash
	// now is the database's time when the row was read, that of the transaction.
	now time.Time
}

// Measured is the exact size of a history at a moment.
type Measured struct {
	// Tokens is the local estimate of what is sent of it, trimmed; Seq the last message that it counts.
	Tokens, Seq int64
}

// Sums are running totals over the messages up to one of them, so that the difference of two gives the size
// of what stands between them.
type Sums struct {
	// Tokens are local estimates, Chars Unicode code points, Turns genuine user messages.
	Tokens, Chars, Turns int64
}

// Minus gives the sums over what comes after o.
func (s Sums) Minus(o Sums) Sums {
	return Sums{Tokens: s.Tokens - o.Tokens, Chars: s.Chars - o.Chars, Turns: s.Turns - o.Turns}
}

// Usage is the server's own count of the tokens of one request and its answer.
type Usage struct {
	// Tokens is 0 while no figure has come.
	Tokens int
	// CoversSeq is the last message that the figure counts.
	CoversSeq int64
	// Estimate is the local estimate of what the figure counts, in tokens.
	Estimate int
	// Stale says that a marker was applied or undone since the request began: the figure is of a context that
	// is no longer sent.
	Stale bool
	// Calibration is real tokens divided by estimated ones at the last figure, 0: not known.
	Calibration float64
}

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String gives the hash in lower-case hex.
func (h Hash) String() string { return fmt.Sprintf("%x", h[:]) }

// MarshalText gives hex, and nothing for a hash that is unset.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads what MarshalText gives.
func (h *Hash) UnmarshalText(text []byte) error {
	*h = Hash{}
	if len(text) == 0 {
		return nil
	}
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*len(h) {
		return invalidf("%q is no SHA-256 in hex", text)
	}
	return nil
}

// IsZero says whether the hash is unset: as a chain, that of no message.
func (h Hash) IsZero() bool { return h == Hash{} }

const conversationColumns = `c.cid, c.tenant, c.id, c.format, c.vendor, c.model, c.context_window, c.max_output,
	c.system, c.tools, c.envelope, c.settings, c.metadata, c.ephemeral, c.head_seq, c.head_chain,
	coalesce(c.active_marker, ''), c.epoch, c.tokens_sum, c.chars_sum, c.turns_sum,
	coalesce(c.server_tokens, 0), coalesce(c.server_covers_seq, 0), coalesce(c.server_estimate, 0),
	coalesce(c.server_epoch < c.epoch, false), c.calibration, c.auto_hold_turns >= c.turns_sum, c.created_at,
	c.content_deleted_at, c.learned_window, coalesce(c.overhead_tokens, -1),
	CASE WHEN c.measured_epoch = c.epoch THEN c.measured_tokens END, CASE WHEN c.measured_epoch = c.epoch THEN c.measured_seq END,
	c.sync_seq, c.sync_chain, (SELECT t.settings FROM tenants t WHERE t.id = c.tenant), now(), c.seal_chain`

func scanConversation(row pgx.CollectableRow) (Conversation, error) {
	var c Conversation
	var chain, syncChain, sealed []byte
	var measuredTokens, measuredSeq *int64
	var syncSeq int64
	var deleted *time.Time
	err := row.Scan(&c.cid, &c.Ref.Tenant, &c.Ref.ID, &c.Format, &c.Vendor, &c.Model, &c.Window, &c.MaxOutput,
		(*[]byte)(&c.System), (*[]byte)(&c.Tools), (*[]byte)(&c.Envelope), (*[]byte)(&c.Settings),
		(*[]byte)(&c.Metadata), &c.Ephemeral, &c.HeadSeq, &chain, &c.ActiveMarker, &c.Epoch, &c.Sums.Tokens,
		&c.Sums.Chars, &c.Sums.Turns, &c.Usage.Tokens, &c.Usage.CoversSeq, &c.Usage.Estimate, &c.Usage.Stale,
		&c.Usage.Calibration, &c.AutoHeld, &c.Created, &deleted, &c.LearnedWindow, &c.OverheadTokens, &measuredTokens,
		&measuredSeq,
		&syncSeq, &syncChain, (*[]byte)(&c.TenantSettings), &c.now, &sealed)
	copy(c.HeadChain[:], chain)
	copy(c.sealChain[:], sealed)
	if measuredTokens != nil {
		c.Measured = &Measured{Tokens: *measuredTokens, Seq: *measuredSeq}
	}
	switch {
	case c.HeadSeq == 0:
		c.syncChain = &Hash{}
	case syncSeq == c.HeadSeq && len(syncChain) == len(Hash{}):
		c.syncChain = ptr(Hash(syncChain))
	}
	if deleted != nil {
		c.ContentDeleted = *deleted
	}
	return c, err
}

// CreateConversation makes a conversation. The same id again gives the existing one when everything else is
// the same as then (created is false), and a ConflictError when not.
func (s *Store) CreateConversation(ctx context.Context, tenant string,
	n NewConversation,
) (c Conversation, created bool, err error) {
	if err := n.validate(); err != nil {
		return c, false, fmt.Errorf("store: create a conversation: %w", err)
	}
	if n.ID == "" {
		n.ID = newID()
	}
	hash := n.hash()
	err = s.write(ctx, "create a conversation", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := one(ctx, tx, pgx.RowTo[string], `SELECT id FROM tenants WHERE id = $1`, tenant); err != nil {
			return fmt.Errorf("tenant %q: %w", tenant, err)
		}
		tag, err := tx.Exec(ctx, `INSERT INTO conversations (tenant, id, format, vendor, model, context_window,
				max_output, system, tools, envelope, settings, metadata, ephemeral, created_hash, overhead_tokens)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
			ON CONFLICT ON CONSTRAINT conversations_id_key DO NOTHING`,
			tenant, n.ID, n.Format, n.Vendor, n.Model, n.Window, n.MaxOutput, []byte(n.System), []byte(n.Tools),
			[]byte(n.Envelope), []byte(n.Settings), []byte(n.Metadata), n.Ephemeral, hash[:],
			overhead(n.System, n.Tools))
		if err != nil {
			return err
		}
		created = tag.RowsAffected() == 1
		// A statement of its own: it sees the row of whoever came first, also one that committed just now.
		var same bool
		same, err = one(ctx, tx, pgx.RowTo[bool],
			`SELECT created_hash = $3 FROM conversations WHERE tenant = $1 AND id = $2`,
			tenant, n.ID, hash[:])
		if err != nil {
			return err
		}
		if !same {
			return conflictf(ConflictDifferent, "conversation %q exists and was created with another body", n.ID)
		}
		c, err = conversation(ctx, tx, ConversationRef{tenant, n.ID})
		if err == nil && created {
			err = seal(ctx, tx, c.cid, ofConversation())
		}
		return err
	})
	return c, created, err
}

func (n NewConversation) validate() error {
	switch {
	case n.ID != "" && !goodID(n.ID, 160):
		return invalidf("a conversation's id has 1 to 160 bytes of UTF-8 and no control characters")
	case !goodID(n.Format, 64):
		return invalidf("a conversation needs a format")
	case n.Vendor != "" && !goodID(n.Vendor, 256), n.Model != "" && !goodID(n.Model, 256):
		return invalidf("vendor and model have at most 256 bytes of UTF-8 and no control characters")
	case n.Window < 0 || n.MaxOutput < 0 || int64(n.Window) > maxInt4 || int64(n.MaxOutput) > maxInt4:
		return invalidf("window and max_output are token counts: not negative, at most %d", maxInt4)
	}
	return nil
}

const maxInt4 = 1<<31 - 1

// goodID says whether s can be an id: valid UTF-8 of 1 to max bytes without control characters.
func goodID(s string, max int) bool {
	return s != "" && len(s) <= max && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// hash is over everything that was given, each part with its length so that none can pass for another.
func (n NewConversation) hash() Hash {
	h := sha256.New()
	put := func(b []byte) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(b)))
		_, _ = h.Write(b)
	}
	for _, b := range [][]byte{
		[]byte(n.Format), []byte(n.Vendor), []byte(n.Model), n.System, n.Tools, n.Envelope,
		n.Settings, n.Metadata,
	} {
		put(b)
	}
	put(fmt.Appendf(nil, "%d %d %t", n.Window, n.MaxOutput, n.Ephemeral))
	return Hash(h.Sum(nil))
}

// newID makes an id that sorts by the time at which it was made.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// GetConversation reads one.
func (s *Store) GetConversation(ctx context.Context, ref ConversationRef) (Conversation, error) {
	var c Conversation
	err := s.read(ctx, "read a conversation", func(ctx context.Context, q querier) (err error) {
		c, err = conversation(ctx, q, ref)
		return err
	})
	return c, err
}

func conversation(ctx context.Context, q querier, ref ConversationRef) (Conversation, error) {
	return findConversation(ctx, q, ref, "")
}

// lockConversation reads a conversation and makes every other change to it wait for the end of the transaction.
// Statements after it see all that was committed before.
func lockConversation(ctx context.Context, tx pgx.Tx, ref ConversationRef) (Conversation, error) {
	return findConversation(ctx, tx, ref, " FOR NO KEY UPDATE")
}

func findConversation(ctx context.Context, q querier, ref ConversationRef, lock string) (Conversation, error) {
	if !goodID(ref.ID, 160) || !goodID(ref.Tenant, 64) {
		return Conversation{}, fmt.Errorf("conversation %q: %w", ref.ID, ErrNotFound)
	}
	c, err := one(ctx, q, scanConversation,
		`SELECT `+conversationColumns+` FROM conversations c WHERE c.tenant = $1 AND c.id = $2`+lock, ref.Tenant,
		ref.ID)
	if err != nil {
		return c, fmt.Errorf("conversation %q: %w", ref.ID, err)
	}
	return c, nil
}

// overhead is the local estimate of what a request holds beside its messages, in tokens.
func overhead(system, tools json.RawMessage) int {
	return pipeline.EstimateText(string(system)) + pipeline.EstimateText(string(tools))
}

// ConversationPatch is what UpdateConversation changes; nil fields stay. A pointer to a nil RawMessage clears.
type ConversationPatch struct {
	Vendor, Model                               *string
	Window, MaxOutput                           *int
	System, Tools, Envelope, Settings, Metadata *json.RawMessage
	// LearnedWindow in tokens; 0 forgets it. A change of model or window forgets it too.
	LearnedWindow *int
}

// UpdateConversation changes what an agent may change: its model, system prompt, tools, settings. The messages
// and markers are not touched, and neither is what the conversation was created with, for CreateConversation.
func (s *Store) UpdateConversation(ctx context.Context, ref ConversationRef,
	p ConversationPatch,
) (Conversation, error) {
	c, _, err := s.ChangeConversation(ctx, ref, func(Conversation) (ConversationPatch, error) { return p, nil }, nil)
	return c, err
}

// ChangeConversation is UpdateConversation with a patch that is made from what is there, under its lock, and then
// watched: a change of model may be enough for a compaction. change and watch may be called more than once.
func (s *Store) ChangeConversation(ctx context.Context, ref ConversationRef,
	change func(Conversation) (ConversationPatch, error), watch Watch,
) (Conversation, Watched, error) {
	var c Conversation
	var w Watched
	err := s.write(ctx, "change a conversation", func(ctx context.Context, tx pgx.Tx) (err error) {
		if c, err = lockConversation(ctx, tx, ref); err != nil {
			return err
		}
		p, err := change(c)
		if err != nil {
			return err
		}
		n := NewConversation{
			Format: "-", Vendor: or(p.Vendor, ""), Model: or(p.Model, ""), Window: or(p.Window, 0),
			MaxOutput: or(p.MaxOutput, 0),
		}
		if err := n.validate(); err != nil {
			return err
		}
		if err := c.patch(ctx, tx, p); err != nil {
			return err
		}
		w, err = s.watchLocked(ctx, tx, &c, watch)
		return err
	})
	return c, w, err
}

// patch changes a conversation whose row the transaction holds. What was measured is no longer sure.
func (c *Conversation) patch(ctx context.Context, tx pgx.Tx, p ConversationPatch) error {
	vendor, model, window := c.Vendor, c.Model, c.Window
	c.Vendor, c.Model = or(p.Vendor, c.Vendor), or(p.Model, c.Model)
	c.Window, c.MaxOutput = or(p.Window, c.Window), or(p.MaxOutput, c.MaxOutput)
	if c.Vendor != vendor || c.Model != model || c.Window != window {
		c.LearnedWindow = 0
	}
	c.LearnedWindow = or(p.LearnedWindow, c.LearnedWindow)
	if c.OverheadTokens < 0 || p.System != nil || p.Tools != nil {
		c.OverheadTokens = overhead(or(p.System, c.System), or(p.Tools, c.Tools))
	}
	c.System, c.Tools, c.Envelope = or(p.System, c.System), or(p.Tools, c.Tools), or(p.Envelope, c.Envelope)
	c.Settings, c.Metadata = or(p.Settings, c.Settings), or(p.Metadata, c.Metadata)
	c.Measured = nil
	_, err := tx.Exec(ctx, `UPDATE conversations SET vendor = $2, model = $3, context_window = $4, max_output = $5,
			system = $6, tools = $7, envelope = $8, settings = $9, metadata = $10, learned_window = $11, overhead_tokens = $12,
			measured_tokens = NULL, measured_seq = NULL, measured_epoch = NULL, updated_at = now() WHERE cid = $1`,
		c.cid, c.Vendor, c.Model, c.Window, c.MaxOutput, []byte(c.System), []byte(c.Tools), []byte(c.Envelope),
		[]byte(c.Settings), []byte(c.Metadata), c.LearnedWindow, c.OverheadTokens)
	if err != nil {
		return err
	}
	return seal(ctx, tx, c.cid, ofConversation())
}

func or[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

// ListConversations gives a tenant's conversations, newest first, at most limit (1 to 1000) of them. cursor is ""
// for the first page and what came back for the next; next is "" after the last.
func (s *Store) ListConversations(ctx context.Context, tenant, cursor string,
	limit int,
) (list []Conversation, next string, err error) {
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", fmt.Errorf("store: list conversations: %w", err)
	}
	limit = clampLimit(limit)
	err = s.read(ctx, "list conversations", func(ctx context.Context, q querier) (err error) {
		list, err = all(ctx, q, scanConversation, `SELECT `+conversationColumns+` FROM conversations c
			WHERE c.tenant = $1 AND ($2::timestamptz IS NULL OR (c.created_at, c.id) < ($2, $3))
			ORDER BY c.created_at DESC, c.id DESC LIMIT $4`, tenant, after.at, after.id, limit+1)
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = makeCursor(list[limit-1].Created, list[limit-1].Ref.ID)
	}
	return list, next, err
}
