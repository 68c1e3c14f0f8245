package worker

import (
	"context"
	"log/slog"
	"time"

	"precis/internal/memory"
	"precis/internal/store/segments"
)

const (
	// keepEvery is how often conversations are looked for whose memory has changed.
	keepEvery = time.Second
	// keepBatch bounds one claim, keepLease is after how long another worker takes over what this one did not finish.
	keepBatch = 20
	keepLease = 5 * time.Minute
	// keepAgain is after how long the files of a conversation in use are looked at again, for those that are missing.
	keepAgain = time.Hour
	// keepAfterFault is the wait after a folder could not be written, as when its disk is full.
	keepAfterFault = time.Minute
)

// folderKeeper writes the memory of conversations into memory.folder. What is due stands in the database, written in
// the transaction of what changed it: a crash loses nothing, and a worker that has no folder leaves it to one that
// has.
type folderKeeper struct {
	memory memory.Memory
	folder string
	log    *slog.Logger
}

func (k folderKeeper) run(ctx context.Context) {
	if k.folder == "" {
		return
	}
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		for k.batch(ctx) == keepBatch {
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// batch writes what is due and gives how many conversations that were.
func (k folderKeeper) batch(ctx context.Context) int {
	due, err := k.memory.Store.Segments.Claim(ctx, keepBatch, keepLease)
	if err != nil {
		if ctx.Err() == nil {
			k.log.Warn("it could not be found out whose memory has changed: trying again", "error", err)
		}
		return 0
	}
	for _, w := range due {
		if ctx.Err() != nil {
			break // another one takes it when the claim has ended
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
		if later := k.memory.Store.Segments.Later(ctx, w, keepAfterFault); later != nil {
			k.log.Warn("a claim of memory could not be put off", "error", later)
		}
		return err
	}
	return k.memory.Store.Segments.Done(ctx, w, keepAgain)
}
