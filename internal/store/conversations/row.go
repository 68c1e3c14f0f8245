package conversations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

const (
	conversationColumns = placeColumns + `c.system, c.tools, c.envelope, c.settings, c.metadata,` + figureColumns +
		`, (SELECT t.settings FROM tenants t WHERE t.id = c.tenant)` + lastColumns
	// listColumns leave out what can be large: a list holds as many conversations as fit on a page.
	listColumns = placeColumns + `NULL::bytea, NULL::bytea, NULL::bytea, NULL::bytea,
		CASE WHEN octet_length(c.metadata) <= 16384 THEN c.metadata END,` + figureColumns + `, NULL::bytea` + lastColumns
)

const placeColumns = `c.cid, c.tenant, c.id, c.format, c.vendor, c.model, c.context_window, c.max_output, `

const lastColumns = `, now(), c.seal_chain`

const figureColumns = ` c.ephemeral, c.head_seq, c.head_chain,
	coalesce(c.active_marker, ''), c.epoch, c.tokens_sum, c.chars_sum, c.turns_sum,
	coalesce(c.server_tokens, 0), coalesce(c.server_covers_seq, 0), coalesce(c.server_estimate, 0),
	coalesce(c.server_epoch < c.epoch, false), c.calibration, c.auto_hold_turns >= c.turns_sum, c.created_at,
	c.content_deleted_at, c.learned_window, coalesce(c.overhead_tokens, -1),
	CASE WHEN c.measured_epoch = c.epoch THEN c.measured_tokens END, CASE
	WHEN c.measured_epoch = c.epoch THEN c.measured_seq END,
	c.sync_seq, c.sync_chain`

func scanConversation(row pgx.CollectableRow) (Conversation, error) {
	var c Conversation
	var chain, syncChain, sealed []byte
	var measuredTokens, measuredSeq *int64
	var syncSeq int64
	var deleted *time.Time
	err := row.Scan(&c.CID, &c.Ref.Tenant, &c.Ref.ID, &c.Format, &c.Vendor, &c.Model, &c.Window, &c.MaxOutput,
		(*[]byte)(&c.System), (*[]byte)(&c.Tools), (*[]byte)(&c.Envelope), (*[]byte)(&c.Settings),
		(*[]byte)(&c.Metadata), &c.Ephemeral, &c.HeadSeq, &chain, &c.ActiveMarker, &c.Epoch, &c.Sums.Tokens,
		&c.Sums.Chars, &c.Sums.Turns, &c.Usage.Tokens, &c.Usage.CoversSeq, &c.Usage.Estimate, &c.Usage.Stale,
		&c.Usage.Calibration, &c.AutoHeld, &c.Created, &deleted, &c.LearnedWindow, &c.OverheadTokens, &measuredTokens,
		&measuredSeq,
		&syncSeq, &syncChain, (*[]byte)(&c.TenantSettings), &c.Now, &sealed)
	copy(c.HeadChain[:], chain)
	copy(c.SealChain[:], sealed)
	if measuredTokens != nil {
		c.Measured = &Measured{Tokens: *measuredTokens, Seq: *measuredSeq}
	}
	switch {
	case c.HeadSeq == 0:
		c.SyncChain = &db.Hash{}
	case syncSeq == c.HeadSeq && len(syncChain) == len(db.Hash{}):
		c.SyncChain = new(db.Hash(syncChain))
	}
	if deleted != nil {
		c.ContentDeleted = *deleted
	}
	return c, err
}

// Get reads a conversation.
func Get(ctx context.Context, d *db.DB, ref db.ConversationRef) (Conversation, error) {
	var c Conversation
	err := d.Read(ctx, "read a conversation", func(ctx context.Context, q db.Querier) (err error) {
		c, err = Find(ctx, q, ref)
		return err
	})
	return c, err
}

// Find reads a conversation within a transaction or snapshot.
func Find(ctx context.Context, q db.Querier, ref db.ConversationRef) (Conversation, error) {
	return find(ctx, q, ref, "")
}

// Lock reads a conversation and locks its row until the end of the transaction, so that every other change to it waits.
// Later statements see everything that was committed before.
func Lock(ctx context.Context, tx pgx.Tx, ref db.ConversationRef) (Conversation, error) {
	return find(ctx, tx, ref, " FOR NO KEY UPDATE")
}

func find(ctx context.Context, q db.Querier, ref db.ConversationRef, lock string) (Conversation, error) {
	if !db.PossibleID(ref.ID, 160) || !db.PossibleID(ref.Tenant, 64) {
		return Conversation{}, fmt.Errorf("conversation %q: %w", ref.ID, db.ErrNotFound)
	}
	c, err := db.One(ctx, q, scanConversation,
		`SELECT `+conversationColumns+` FROM conversations c WHERE c.tenant = $1 AND c.id = $2`+lock, ref.Tenant,
		ref.ID)
	if err != nil {
		return c, fmt.Errorf("conversation %q: %w", ref.ID, err)
	}
	return c, nil
}

// Readable returns the key of a conversation, or ErrContentDeleted if its content was deleted.
func Readable(ctx context.Context, q db.Querier, ref db.ConversationRef) (int64, error) {
	type found struct {
		cid     int64
		deleted bool
	}
	if !db.PossibleID(ref.ID, 160) || !db.PossibleID(ref.Tenant, 64) {
		return 0, db.ErrNotFound
	}
	f, err := db.One(ctx, q, func(row pgx.CollectableRow) (f found, err error) {
		return f, row.Scan(&f.cid, &f.deleted)
	}, `SELECT cid, content_deleted_at IS NOT NULL FROM conversations WHERE tenant = $1 AND id = $2`, ref.Tenant,
		ref.ID)
	switch {
	case db.IsNotFound(err):
		err = db.NotFoundf("conversation %q", ref.ID)
	case err == nil && f.deleted:
		err = db.ErrContentDeleted
	}
	return f.cid, err
}
