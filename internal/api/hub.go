package api

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"precis/internal/store"
)

// lookEvery is how often a process asks for new events: one query for all conversations that anybody follows, none
// while nobody does. PostgreSQL could tell by NOTIFY, but that takes a lock of the whole database with every commit.
const lookEvery = 250 * time.Millisecond

// hub tells followers that their conversation has new events.
type hub struct {
	store *store.Store
	log   *slog.Logger
	every time.Duration

	mu     sync.Mutex
	topics map[store.ConversationRef]*topic
	closed bool
	// stop ends the loop that looks, nil: none runs.
	stop context.CancelFunc
}

// topic is a conversation that somebody follows.
type topic struct {
	head      int64
	followers map[*follower]struct{}
}

// follower is one open stream.
type follower struct {
	// news has an entry when there may be events that the follower has not read.
	news chan struct{}
}

func newHub(s *store.Store, log *slog.Logger) *hub {
	return &hub{store: s, log: log, every: lookEvery, topics: map[store.ConversationRef]*topic{}}
}

// follow adds a follower that has read up to event after.
func (h *hub) follow(ref store.ConversationRef, after int64) (f *follower, leave func()) {
	f = &follower{news: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[ref]
	if t == nil {
		t = &topic{head: after, followers: map[*follower]struct{}{}}
		h.topics[ref] = t
	}
	// One that has read less than the others is due at the next look.
	t.head = min(t.head, after)
	t.followers[f] = struct{}{}
	if h.stop == nil && !h.closed {
		ctx, cancel := context.WithCancel(context.Background())
		h.stop = cancel
		go h.run(ctx)
	}
	return f, func() { h.leave(ref, f) }
}

func (h *hub) leave(ref store.ConversationRef, f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[ref]
	delete(t.followers, f)
	if len(t.followers) == 0 {
		delete(h.topics, ref)
	}
	if len(h.topics) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// run looks until nobody follows any more.
func (h *hub) run(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	reachable := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := h.look(ctx)
		if err != nil && reachable && ctx.Err() == nil {
			h.log.Warn("events cannot be read: trying again", "error", err)
		}
		reachable = err == nil
	}
}

// look asks for the last event of every conversation that is followed, and tells those who have something to read.
func (h *hub) look(ctx context.Context) error {
	h.mu.Lock()
	refs := slices.Collect(maps.Keys(h.topics))
	h.mu.Unlock()
	heads, err := h.store.Timeline.Heads(ctx, refs)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ref, head := range heads {
		t := h.topics[ref]
		if t == nil || head <= t.head {
			continue
		}
		t.head = head
		for f := range t.followers {
			select {
			case f.news <- struct{}{}:
			default: // it has not read the last ones yet, and will find these with them
			}
		}
	}
	return nil
}
