// Package launch requests runs and starts their workflows: manual runs, replays, and batches of replays. The command
// line, the service and the activities use it. It refers to workflows only by their names in precis and contract.
//
//	ask.go     request a run
//	wait.go    start a run's workflow and wait for its end, cancel a run
//	replay.go  request a replay
//	refused.go end a run whose workflow cannot be started
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
