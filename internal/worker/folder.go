package worker

import (
	"context"
	"log/slog"
	"time"

	"precis/internal/memory"
	"precis/internal/store/segments"
)

const (
	// folderInterval is how often conversations are looked for whose memory has changed.
	folderInterval = time.Second
	// folderBatch bounds a claim; after folderLease another worker writes what this one claimed and did not.
	folderBatch = 20
	folderLease = 5 * time.Minute
	// folderCheckInterval is how often the files of a conversation in use are checked for missing ones.
	folderCheckInterval = time.Hour
	// folderRetryInterval is the wait after a folder could not be written, for instance because its disk is full.
	folderRetryInterval = time.Minute
)

// folderKeeper writes the memory of conversations to memory.folder. The database lists the conversations that are due,
// written in the transaction of the change: a crash loses nothing, and a worker without a folder leaves them to one
// that has it.
type folderKeeper struct {
	memory memory.Memory
	folder string
	log    *slog.Logger
}

func (k folderKeeper) run(ctx context.Context) {
	if k.folder == "" {
		return
	}
	tick := time.NewTicker(folderInterval)
	defer tick.Stop()
	for {
		for k.batch(ctx) == folderBatch {
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// batch writes the conversations that are due and gives their number.
func (k folderKeeper) batch(ctx context.Context) int {
	due, err := k.memory.Store.Segments.Claim(ctx, folderBatch, folderLease)
	if err != nil {
		if ctx.Err() == nil {
			k.log.Warn("conversations with a changed memory could not be looked for: trying again", "error", err)
		}
		return 0
	}
	for _, w := range due {
		if ctx.Err() != nil {
			break // another worker writes them after the lease
		}
		if err := k.keep(ctx, w); err != nil && ctx.Err() == nil {
			k.log.Warn("the memory of a conversation could not be written to memory.folder: trying again",
				"conversation", w.Ref.String(), "error", err)
		}
	}
	return len(due)
}

func (k folderKeeper) keep(ctx context.Context, w segments.Claim) error {
	if _, err := k.memory.WriteFolder(ctx, k.folder, w.Ref); err != nil {
		if later := k.memory.Store.Segments.Later(ctx, w, folderRetryInterval); later != nil {
			k.log.Warn("a claim of memory could not be postponed", "error", later)
		}
		return err
	}
	return k.memory.Store.Segments.Done(ctx, w, folderCheckInterval)
}
