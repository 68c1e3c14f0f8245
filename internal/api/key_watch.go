package api

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// keyCheckInterval is how often the keys of open requests are looked up, with one query for all of them, so that a
// revoked or expired key ends its streams and waits within a second.
const keyCheckInterval = 500 * time.Millisecond

// errKeyEnded is the cause of the end of a request's context whose key was revoked or has expired.
var errKeyEnded = errors.New("the API key was revoked or has expired")

// keyWatch ends the requests of keys that no longer work. It asks for nothing while there are no requests.
type keyWatch struct {
	// ended returns those of the keys that no longer work.
	ended func(ctx context.Context, ids []string) ([]string, error)
	log   *slog.Logger
	every time.Duration

	mu   sync.Mutex
	open map[string]map[*watchedRequest]struct{}
	// stop ends the loop, nil: it does not run.
	stop context.CancelFunc
}

type watchedRequest struct{ end context.CancelCauseFunc }

// watch returns a context that ends with errKeyEnded when the key stops working. The caller calls leave at its end.
func (k *keyWatch) watch(ctx context.Context, key string) (watched context.Context, leave func()) {
	ctx, end := context.WithCancelCause(ctx)
	if key == "" {
		return ctx, func() { end(nil) }
	}
	w := &watchedRequest{end}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = map[string]map[*watchedRequest]struct{}{}
	}
	if k.open[key] == nil {
		k.open[key] = map[*watchedRequest]struct{}{}
	}
	k.open[key][w] = struct{}{}
	if k.stop == nil {
		loop, cancel := context.WithCancel(context.Background())
		k.stop = cancel
		go k.run(loop)
	}
	return ctx, func() {
		end(nil)
		k.leave(key, w)
	}
}

func (k *keyWatch) leave(key string, w *watchedRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open[key], w)
	if len(k.open[key]) == 0 {
		delete(k.open, key)
	}
	if len(k.open) == 0 && k.stop != nil {
		k.stop()
		k.stop = nil
	}
}

func (k *keyWatch) run(ctx context.Context) {
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	reachable := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := k.check(ctx)
		if err != nil && reachable && ctx.Err() == nil {
			k.log.Warn("revoked API keys cannot be looked for: trying again", "error", err)
		}
		reachable = err == nil
	}
}

// check ends the requests of the keys that no longer work.
func (k *keyWatch) check(ctx context.Context) error {
	k.mu.Lock()
	ids := slices.Collect(maps.Keys(k.open))
	k.mu.Unlock()
	ended, err := k.ended(ctx, ids)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ended {
		for w := range k.open[id] {
			w.end(errKeyEnded)
		}
	}
	return nil
}
