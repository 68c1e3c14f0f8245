package service

import (
	"context"
	"io"

	"precis/internal/api/wire"
	"precis/internal/audit"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/exports"
	"precis/internal/store/seals"
	"precis/pipeline/transcript"
)

// ImportRequest has the options of ImportTranscript.
type ImportRequest struct {
	// ID is the id of the conversation. If it is "", one is generated. Further conversations of the file are ID-2,
	// ID-3…
	ID string
	// Vendor and Model of the agent, if set, take precedence over those in the file.
	Vendor, Model string
	// Window is the context window in tokens, 0 for the known one of the model.
	Window int
	// Pick, if greater than 0, imports only the Pick-th conversation of the file.
	Pick int
	// Ephemeral marks the conversations: their content is deleted when their run has ended.
	Ephemeral bool
	// Progress, if set, is called with the number of messages stored so far.
	Progress func(messages int)
}

// Imported is a conversation that was imported from a transcript.
type Imported struct {
	Ref ConversationRef
	// Meta is what the file says about the conversation.
	Meta transcript.Meta
	// Vendor, Model and Window (in tokens, 0 if unknown) are what is stored.
	Vendor, Model string
	Window        int
	Messages      int
	// Compactions counts the recorded compactions that were stored as markers.
	Compactions int
}

// ImportTranscript stores the conversations of a transcript. Compactions that are recorded in it take effect. After an
// error nothing of the file is kept.
func (s *Service) ImportTranscript(ctx context.Context, tenant string, d *transcript.Decoder,
	req ImportRequest,
) ([]Imported, error) {
	got, err := conversation.ImportFile(ctx, s.Store, d, conversation.ImportOptions{
		Tenant: tenant, ID: req.ID, Vendor: req.Vendor, Model: req.Model, Window: req.Window,
		Models: s.installation().Models, Ephemeral: req.Ephemeral, TrustCompactions: true, Pick: req.Pick,
		Progress: req.Progress,
	})
	if err != nil {
		for _, im := range got.Conversations {
			s.deleteContent(ctx, im.Conversation.Ref)
		}
		return nil, refused(err)
	}
	list := make([]Imported, len(got.Conversations))
	for i, im := range got.Conversations {
		c := im.Conversation
		list[i] = Imported{
			Ref: c.Ref, Meta: im.Meta, Vendor: c.Vendor, Model: c.Model, Window: c.Window, Messages: im.Messages,
			Compactions: im.Compactions,
		}
	}
	return list, nil
}

// ImportedExport is a conversation that was recreated from an export.
type ImportedExport struct {
	Ref                   ConversationRef
	Format, Vendor, Model string
	Window                int
	Messages              int64
	// Rows counts the rows by table. Runs maps the ids of the runs in the export to those in this store, which differ
	// if the store already has a run of the id.
	Rows map[string]int
	Runs map[string]string
	// Pruned counts the texts of which the export has only the hashes, Notes the agent's notes, which no seal covers.
	Pruned, Notes int
}

// NotCoveredInExport lists what the verification of an import says nothing about.
func NotCoveredInExport() []wire.AuditUncovered { return audit.Uncovered(seals.NotCoveredInExport()) }

// IsExport reports whether a file that begins with head is an export.
func IsExport(head []byte) bool { return audit.IsExport(head) }

// ImportExport stores an export, verified and as a whole, or nothing of it. id is the conversation's new id, "" for the
// one in the export. open returns the file from its beginning and is called more than once. The error has CodeInvalid
// if the file is damaged, and CodeConflict if there is a conversation with this id.
func (s *Service) ImportExport(ctx context.Context, tenant, id string,
	open func() (io.Reader, error),
) (ImportedExport, error) {
	im, err := audit.Import(ctx, s.Store, exports.Target{Tenant: tenant, ID: id}, open)
	if err != nil {
		return ImportedExport{}, refused(err)
	}
	c := im.Conversation
	return ImportedExport{
		Ref: c.Ref, Format: c.Format, Vendor: c.Vendor, Model: c.Model, Window: c.Window, Messages: c.HeadSeq,
		Rows: im.Rows, Runs: im.Runs, Pruned: im.Pruned, Notes: im.Notes,
	}, nil
}

// DeleteContent deletes the content of a conversation. The records of its runs are kept, without texts.
func (s *Service) DeleteContent(ctx context.Context, ref store.ConversationRef) error {
	return refused(s.Store.Retention.DeleteContent(ctx, ref))
}
