package service

import (
	"context"
	"time"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/replays"
	"precis/pipeline"
)

// Batch is a batch of replays with its progress.
type Batch struct {
	ID      string       `json:"id"`
	Request BatchRequest `json:"request"`
	// Total is the number of runs that matched, Replays the number that have a replay, Done how many of those have
	// ended.
	Total   int `json:"total"`
	Replays int `json:"replays"`
	Done    int `json:"done"`
	// Running, Refused (runs that cannot be replayed) and Paused are reported by the workflow of the batch.
	Running   int  `json:"running"`
	Refused   int  `json:"refused"`
	Paused    bool `json:"paused"`
	Cancelled bool `json:"cancelled"`
	Finished  bool `json:"finished"`
	// Failed counts replays that failed, Different those whose result differs from the record.
	Failed       int                  `json:"failed"`
	Different    int                  `json:"different"`
	Counts       []BatchCount         `json:"counts"`
	DifferentIDs []string             `json:"different_runs,omitempty"`
	Models       []wire.RunModelUsage `json:"models"`
	Cost         *wire.RunCost        `json:"cost"`
}

// BatchCount counts the replays of a batch with the same end.
type BatchCount struct {
	// Outcome is "" while the replay is running.
	Outcome   precis.Outcome     `json:"outcome"`
	ErrorKind pipeline.ErrorKind `json:"error_kind"`
	// Identical reports whether the result is that of the record, nil if it was not compared.
	Identical *bool `json:"identical,omitempty"`
	Runs      int   `json:"runs"`
}

// ReplayableRun is a run that a batch would replay.
type ReplayableRun struct {
	Run          string             `json:"run"`
	Conversation string             `json:"conversation"`
	Outcome      precis.Outcome     `json:"outcome"`
	ErrorKind    pipeline.ErrorKind `json:"error_kind"`
	Digest       bool               `json:"digest"`
	Created      time.Time          `json:"created"`
}

// Replayable counts the runs that a batch with this filter would replay, and lists the oldest of them, at most limit.
func (s *Service) Replayable(ctx context.Context, tenant string, f ReplayFilter,
	limit int,
) (list []ReplayableRun, total int, err error) {
	if total, err = s.Store.Replays.Count(ctx, tenant, f); err != nil {
		return nil, 0, refused(err)
	}
	found, _, err := s.Store.Replays.List(ctx, tenant, f, "", limit)
	if err != nil {
		return nil, 0, refused(err)
	}
	list = make([]ReplayableRun, len(found))
	for i, r := range found {
		list[i] = ReplayableRun{r.Run.ID, r.Conversation, r.Outcome, r.ErrorKind, r.Digest, r.Created.UTC()}
	}
	return list, total, nil
}

// StartBatch starts a batch that replays all runs that match its filter. It does not wait for its end. The options of
// the replays are validated as by Replay.
func (s *Service) StartBatch(ctx context.Context, tenant string, req BatchRequest) (Batch, error) {
	if err := s.checkReplay(req.Replay); err != nil {
		return Batch{}, err
	}
	started, err := s.launcher().StartBatch(ctx, tenant, req)
	if err != nil {
		return Batch{}, refused(err)
	}
	return s.GetBatch(ctx, started.Ref)
}

// GetBatch returns a batch with its progress.
func (s *Service) GetBatch(ctx context.Context, ref store.BatchRef) (Batch, error) {
	b, err := s.launcher().Batch(ctx, ref)
	if err != nil {
		return Batch{}, refused(err)
	}
	return s.batchOf(b), nil
}

func (s *Service) batchOf(b launch.Batch) Batch {
	out := Batch{
		ID: b.Ref.ID, Request: b.Request, Total: b.Total, Cancelled: b.Cancelled, Finished: !b.Finished.IsZero(),
		DifferentIDs: b.Totals.Different, Models: runreport.ModelsOf(b.Totals.Models),
	}
	out.Replays, out.Done = b.Totals.Runs()
	if p := b.Progress; p != nil {
		out.Running, out.Refused, out.Paused = p.Running, p.Refused, p.Paused
	} else if out.Finished && !out.Cancelled {
		out.Refused = max(out.Total-out.Replays, 0)
	}
	for _, c := range b.Totals.Counts {
		out.Counts = append(out.Counts, BatchCount(c))
		if c.Outcome == precis.OutcomeFailed {
			out.Failed += c.Runs
		}
		if c.Identical != nil && !*c.Identical {
			out.Different += c.Runs
		}
	}
	out.Cost = runreport.CostOf(out.Models, s.Config.Prices)
	return out
}

// ContinueBatch starts the workflow of a batch again if neither the batch has ended nor its workflow is running.
func (s *Service) ContinueBatch(ctx context.Context, ref store.BatchRef) error {
	return s.onBatch(ctx, ref, s.launcher().ContinueBatch)
}

// PauseBatch pauses a batch: running replays finish, no new ones start. done and running count its replays then.
func (s *Service) PauseBatch(ctx context.Context, ref store.BatchRef) (done, running int, err error) {
	err = s.onBatch(ctx, ref, func(ctx context.Context, b replays.Batch) error {
		p, err := s.launcher().PauseBatch(ctx, b, true)
		done, running = p.Done, p.Running
		return err
	})
	return done, running, err
}

// ResumeBatch resumes a paused batch.
func (s *Service) ResumeBatch(ctx context.Context, ref store.BatchRef) error {
	return s.onBatch(ctx, ref, func(ctx context.Context, b replays.Batch) error {
		_, err := s.launcher().PauseBatch(ctx, b, false)
		return err
	})
}

// CancelBatch cancels a batch and its running replays.
func (s *Service) CancelBatch(ctx context.Context, ref store.BatchRef) error {
	return s.onBatch(ctx, ref, s.launcher().CancelBatch)
}

func (s *Service) onBatch(ctx context.Context, ref store.BatchRef,
	do func(context.Context, replays.Batch) error,
) error {
	b, err := s.Store.Batches.Get(ctx, ref)
	if err == nil {
		err = do(ctx, b)
	}
	return refused(err)
}
