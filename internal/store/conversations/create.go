package conversations

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/pipeline"
)

// NewConversation is what a conversation starts with. Raw JSON is stored byte for byte, nil: not given.
type NewConversation struct {
	// ID is the client's own id, at most 160 bytes without control characters. Empty: a new id.
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
	// Settings are the conversation's own pipeline.Settings, as JSON.
	Settings json.RawMessage
	// Metadata is the client's own.
	Metadata json.RawMessage
	// Ephemeral marks a conversation that is made for one run, after which its content is deleted.
	Ephemeral bool
}

// Create creates a conversation. If one with the id exists, it returns that one with created false, or a ConflictError
// if it was created with another body.
func (s *Store) Create(ctx context.Context, tenant string,
	n NewConversation,
) (c Conversation, created bool, err error) {
	if err := n.Validate(); err != nil {
		return c, false, db.Failed("create a conversation", err)
	}
	if n.ID == "" {
		n.ID = db.NewID()
	}
	hash := n.hash()
	err = s.db.Write(ctx, "create a conversation", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := db.One(ctx, tx, pgx.RowTo[string], `SELECT id FROM tenants WHERE id = $1`, tenant); err != nil {
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
		// A separate statement also sees a row that another transaction has committed since.
		var same bool
		same, err = db.One(ctx, tx, pgx.RowTo[bool],
			`SELECT created_hash = $3 FROM conversations WHERE tenant = $1 AND id = $2`,
			tenant, n.ID, hash[:])
		if err != nil {
			return err
		}
		if !same {
			return db.Conflictf(db.ConflictDifferent, "conversation %q exists and was created with another body", n.ID)
		}
		c, err = Find(ctx, tx, db.ConversationRef{Tenant: tenant, ID: n.ID})
		if err == nil && created {
			err = seals.Write(ctx, tx, c.CID, seals.OfConversation())
		}
		return err
	})
	return c, created, err
}

// MaxID bounds the id of a conversation, in bytes.
const MaxID = 160

// Validate returns an ErrInvalid for a conversation that cannot be created.
func (n NewConversation) Validate() error {
	switch {
	case n.ID != "" && !db.GoodID(n.ID, MaxID):
		return db.Invalidf("the conversation's id %q %s", n.ID, db.IDProblem(n.ID, MaxID))
	case !db.PossibleID(n.Format, 64):
		return db.Invalidf("a conversation needs a format")
	case n.Vendor != "" && !db.PossibleID(n.Vendor, 256), n.Model != "" && !db.PossibleID(n.Model, 256):
		return db.Invalidf("vendor and model have at most 256 bytes of UTF-8 and no control characters")
	case n.Window < 0 || n.MaxOutput < 0 || int64(n.Window) > db.MaxInt4 || int64(n.MaxOutput) > db.MaxInt4:
		return db.Invalidf("window and max_output are token counts: must be 0 to %d", db.MaxInt4)
	}
	return nil
}

// hash is over all fields, each with its length, so that two different bodies cannot have the same hash.
func (n NewConversation) hash() db.Hash {
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
	return db.Hash(h.Sum(nil))
}

// overhead returns the local estimate, in tokens, of what a request holds beside its messages.
func overhead(system, tools json.RawMessage) int {
	return pipeline.EstimateText(string(system)) + pipeline.EstimateText(string(tools))
}
