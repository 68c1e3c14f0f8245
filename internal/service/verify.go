package service

import (
	"context"
	"io"

	"precis/internal/api/wire"
	"precis/internal/audit"
	"precis/internal/store"
	"precis/internal/version"
)

// Verify checks that the records of a run were not changed since it ended.
func (s *Service) Verify(ctx context.Context, ref store.RunRef) (wire.AuditReport, error) {
	r, err := audit.VerifyRun(ctx, s.Store, ref)
	if err != nil {
		return wire.AuditReport{}, refused(err)
	}
	return r.Wire(), nil
}

// Export writes a conversation with its runs and their evidence to w.
func (s *Service) Export(ctx context.Context, ref store.ConversationRef, w io.Writer) error {
	if _, err := audit.Export(ctx, s.Store, ref, version.Code(), w); err != nil {
		return refused(err)
	}
	return nil
}
