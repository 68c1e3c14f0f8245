package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// heartbeat beats from the first line of an activity to its last, also while it prepares or waits for a
// slow vendor, so that a beat that fails to come means that the worker is dead. The SDK throttles the
// beats it sends to 0.8 of the timeout; cancellation arrives on them.
func heartbeat(ctx context.Context) (stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout <= 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(timeout / 4)
		defer tick.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-tick.C:
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { close(done) }
}
