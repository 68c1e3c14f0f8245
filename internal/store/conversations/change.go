package conversations

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// Patch lists the changes to a conversation. Nil fields stay as they are; a pointer to a nil RawMessage clears the
// field.
type Patch struct {
	Vendor, Model                               *string
	Window, MaxOutput                           *int
	System, Tools, Envelope, Settings, Metadata *json.RawMessage
	// LearnedWindow in tokens; 0 forgets it. A change of model or window forgets it too.
	LearnedWindow *int
}

// ApplyPatch changes a conversation whose row the transaction has locked. It clears c.Measured, which the change may
// have made wrong.
func ApplyPatch(ctx context.Context, tx pgx.Tx, c *Conversation, p Patch) error {
	vendor, model, window := c.Vendor, c.Model, c.Window
	c.Vendor, c.Model = db.Or(p.Vendor, c.Vendor), db.Or(p.Model, c.Model)
	c.Window, c.MaxOutput = db.Or(p.Window, c.Window), db.Or(p.MaxOutput, c.MaxOutput)
	if c.Vendor != vendor || c.Model != model || c.Window != window {
		c.LearnedWindow = 0
	}
	c.LearnedWindow = db.Or(p.LearnedWindow, c.LearnedWindow)
	if c.OverheadTokens < 0 || p.System != nil || p.Tools != nil {
		c.OverheadTokens = overhead(db.Or(p.System, c.System), db.Or(p.Tools, c.Tools))
	}
	c.System, c.Tools, c.Envelope = db.Or(p.System, c.System), db.Or(p.Tools, c.Tools), db.Or(p.Envelope, c.Envelope)
	c.Settings, c.Metadata = db.Or(p.Settings, c.Settings), db.Or(p.Metadata, c.Metadata)
	c.Measured = nil
	_, err := tx.Exec(ctx, `UPDATE conversations SET vendor = $2, model = $3, context_window = $4, max_output = $5,
			system = $6, tools = $7, envelope = $8, settings = $9, metadata = $10, learned_window = $11,
			overhead_tokens = $12,
			measured_tokens = NULL, measured_seq = NULL, measured_epoch = NULL, updated_at = now() WHERE cid = $1`,
		c.CID, c.Vendor, c.Model, c.Window, c.MaxOutput, []byte(c.System), []byte(c.Tools), []byte(c.Envelope),
		[]byte(c.Settings), []byte(c.Metadata), c.LearnedWindow, c.OverheadTokens)
	if err != nil {
		return err
	}
	return seals.Write(ctx, tx, c.CID, seals.OfConversation())
}
