package service

import (
	"context"
	"io"

	"precis/internal/audit"
	"precis/internal/store/evidence"
)

// HeadsRequest selects the heads to publish.
type HeadsRequest struct {
	// Tenant and Conversation limit the selection, "" to all.
	Tenant, Conversation string
	// Sign also signs the last seal of each conversation in the database. It needs audit.signing_key.
	Sign bool
}

// Heads calls put with the head of the seals of every selected conversation, signed if the configuration has
// audit.signing_key.
func (s *Service) Heads(ctx context.Context, req HeadsRequest, put func(Head) error) error {
	key, err := s.Config.Audit.Signer()
	if err != nil {
		return invalid("audit.signing_key", "%s", err)
	}
	if req.Sign && key == nil {
		return invalid("sign", "heads are signed with a key: configure audit.signing_key")
	}
	filter := evidence.Filter{Tenant: req.Tenant, Conversation: req.Conversation}
	return refused(audit.Publish{Filter: filter, Key: key, SignSeals: req.Sign}.Heads(ctx, s.Store, put))
}

// VerifyHeads compares the store with heads that were published earlier. With audit.verify_key or audit.signing_key,
// heads without a valid signature fail too. The error has CodeInvalid, with the line, if the file cannot be read.
func (s *Service) VerifyHeads(ctx context.Context, r io.Reader) (HeadsReport, error) {
	key, err := s.Config.Audit.Verifier()
	if err != nil {
		return HeadsReport{}, invalid("audit.verify_key", "%s", err)
	}
	report, err := audit.VerifyHeads(ctx, s.Store, key, r)
	return report, refused(err)
}
