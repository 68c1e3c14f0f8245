package service

import (
	"context"

	"precis/internal/audit"
	"precis/internal/store"
)

// Verify proves that a run was not changed since it ended.
func (s *Service) Verify(ctx context.Context, ref store.RunRef) (audit.Report, error) {
	r, err := audit.VerifyRun(ctx, s.Store, ref)
	if err != nil {
		return r, refused(err)
	}
	return r, nil
}
