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

// CheckFailed reports whether a check found something that is not as it was written.
func CheckFailed(c wire.AuditCheck) bool { return audit.State(c.State).Failed() }

// Export writes a conversation with its runs and their evidence to w, and returns the number of rows of each table.
func (s *Service) Export(ctx context.Context, ref store.ConversationRef, w io.Writer) (map[string]int, error) {
	rows, err := audit.Export(ctx, s.Store, ref, version.Code(), w)
	return rows, refused(err)
}
