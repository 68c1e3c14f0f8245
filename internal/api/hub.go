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

// pollInterval is how often a process polls for new events: one query for all conversations that have followers, and
// none while there are no followers. PostgreSQL's NOTIFY would lock the whole database with every commit.
const pollInterval = 250 * time.Millisecond

// hub wakes followers whose conversation has new events.
type hub struct {
	store *store.Store
	log   *slog.Logger
	every time.Duration

	mu     sync.Mutex
	topics map[store.ConversationRef]*topic
	closed bool
	// stop ends the polling loop, nil: it does not run.
	stop context.CancelFunc
}

// topic is a conversation with followers.
type topic struct {
	head      int64
	followers map[*follower]struct{}
}

// follower is one open stream.
type follower struct {
	// news has an entry if there may be events that the follower has not read.
	news chan struct{}
}

func newHub(s *store.Store, log *slog.Logger) *hub {
	return &hub{store: s, log: log, every: pollInterval, topics: map[store.ConversationRef]*topic{}}
}

// follow adds a follower that has read the events up to number after.
func (h *hub) follow(ref store.ConversationRef, after int64) (f *follower, leave func()) {
	f = &follower{news: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[ref]
	if t == nil {
		t = &topic{head: after, followers: map[*follower]struct{}{}}
		h.topics[ref] = t
	}
	// A follower that has read less than the others is woken at the next poll.
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

// run polls until there are no followers.
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
		err := h.poll(ctx)
		if err != nil && reachable && ctx.Err() == nil {
			h.log.Warn("events cannot be read: trying again", "error", err)
		}
		reachable = err == nil
	}
}

// poll reads the last event number of every conversation with followers, and wakes those that have events to read.
func (h *hub) poll(ctx context.Context) error {
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
			default: // it was woken before and has not read yet: it will read these events too
			}
		}
	}
	return nil
}
