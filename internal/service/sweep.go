package service

import (
	"context"
	"slices"
	"time"

	"precis/internal/audit"
	"precis/internal/store/evidence"
)

// SweepRequest selects the conversations of a call that works through many. The next call continues where an
// interrupted one stopped.
type SweepRequest struct {
	// Tenant and Conversation limit the selection, "" to all.
	Tenant, Conversation string
	// Restart starts from the beginning, even if an earlier call was interrupted.
	Restart bool
}

func (r SweepRequest) sweep() audit.Sweep {
	return audit.Sweep{
		Filter:  evidence.Filter{Tenant: r.Tenant, Conversation: r.Conversation},
		Restart: r.Restart,
	}
}

// VerifyAll verifies the selected conversations with all their runs. progress, if not nil, is called after each one.
// After an error the result has what was done.
func (s *Service) VerifyAll(ctx context.Context, req SweepRequest, progress func(Swept)) (Swept, error) {
	w := req.sweep()
	w.Progress = progress
	swept, err := audit.VerifyAll(ctx, s.Store, w)
	return swept, refused(err)
}

// PruneRequest says which content to remove.
type PruneRequest struct {
	SweepRequest
	// Before bounds the age: content that was written or used since is kept.
	Before time.Time
	// Kinds are names of PruneKinds.
	Kinds []string
	// Apply removes the content. Without it nothing changes, and the result has what would be removed.
	Apply bool
}

// PruneKinds returns the kinds of content that can be pruned, sorted.
func PruneKinds() []string { return audit.PruneKinds() }

// Prune removes old content in small transactions, or finds it. progress, if not nil, is called after each
// conversation. After an error the result has what was done.
func (s *Service) Prune(ctx context.Context, req PruneRequest, progress func(PruneTotals)) (PruneTotals, error) {
	p := audit.Prune{Sweep: req.sweep(), Before: req.Before, Apply: req.Apply, Progress: progress}
	for _, kind := range req.Kinds {
		p.Kinds = append(p.Kinds, audit.PruneKind(kind))
	}
	slices.Sort(p.Kinds)
	p.Kinds = slices.Compact(p.Kinds)
	totals, err := p.Run(ctx, s.Store)
	return totals, refused(err)
}
