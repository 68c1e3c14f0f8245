// Package launch asks for runs and starts their workflows: by hand, for a replay, and for a batch of replays. The
// command line, the service and the activities share it. It knows workflows by their names in precis and contract
// alone.
//
//	ask.go     ask for a run
//	wait.go    start a run's workflow and wait for its end, cancel a run
//	replay.go  ask for a replay
//	batch.go   start, follow, pause and cancel a batch of replays
package launch

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"precis/internal/config"
	"precis/internal/store"
)

// Launcher starts runs and batches, and follows them.
type Launcher struct {
	Store  *store.Store
	Client client.Client
	Config config.Config
}

// sleep waits for d, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
