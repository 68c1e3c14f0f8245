package api

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"precis/internal/store/access"
)

const (
	// settleTimeout bounds the first recording of how a request ended, which must not delay its answer.
	settleTimeout = 2 * time.Second
	// settleRetry is how long the next tries wait at first, and settleRetryMost at most.
	settleRetry     = 100 * time.Millisecond
	settleRetryMost = time.Second
	// maxPending bounds the ends that wait to be recorded, and their bytes: a process does not fill up with them while
	// the database is away for long. The keys of more than that become free when their claims expire.
	maxPending      = 1000
	maxPendingBytes = 64 << 20
)

// pending counts ends of keyed requests that are recorded in the background.
type pending struct {
	mu           sync.Mutex
	ends, amount int
}

func (p *pending) enter(bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends >= maxPending || p.amount+bytes > maxPendingBytes {
		return false
	}
	p.ends, p.amount = p.ends+1, p.amount+bytes
	return true
}

func (p *pending) leave(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends, p.amount = p.ends-1, p.amount-bytes
}

// settle records how a keyed request ended. If the database is away, the answer is sent all the same, and the end is
// recorded as soon as the database is back: the key must not stay busy for longer.
func (s *Server) settle(ctx context.Context, k access.KeyedRequest, answer access.KeyedAnswer) {
	first, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := s.record(first, k, answer)
	if err == nil {
		return
	}
	if !s.pending.enter(len(answer.Body)) {
		s.log.Warn("the end of a request with an idempotency key was not recorded", "error", err)
		return
	}
	s.log.Warn("the end of a request with an idempotency key was not recorded yet: trying again", "error", err)
	go s.settleLater(context.WithoutCancel(ctx), k, answer)
}

// settleLater records the end of a request. It gives up when the server stops, or when the key would be forgotten.
func (s *Server) settleLater(ctx context.Context, k access.KeyedRequest, answer access.KeyedAnswer) {
	defer s.pending.leave(len(answer.Body))
	ctx, cancel := context.WithTimeout(ctx, access.IdempotencyLife)
	defer cancel()
	for wait := settleRetry; ; wait = min(2*wait, settleRetryMost) {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.stopping.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if s.record(ctx, k, answer) == nil {
			return
		}
	}
}

// record records how a keyed request ended: its answer, or that its key is free again.
func (s *Server) record(ctx context.Context, k access.KeyedRequest, answer access.KeyedAnswer) error {
	keep := answer.Status < http.StatusMultipleChoices
	if !keep {
		effective, err := s.store.Idempotency.Release(ctx, k)
		if err != nil {
			return err
		}
		// It changed something and failed permanently: another try would change it again and fail the same way.
		keep = effective && answer.Status < http.StatusInternalServerError
	}
	if !keep {
		return nil
	}
	return s.store.Idempotency.Answer(ctx, k, answer)
}

// kept returns what is stored of an answer.
func (r *recorder) kept() access.KeyedAnswer {
	headers := map[string]string{}
	for _, name := range []string{"Content-Type", "Location", "Allow"} {
		if v := r.header.Get(name); v != "" {
			headers[name] = v
		}
	}
	return access.KeyedAnswer{Status: r.status, Headers: headers, Body: bytes.Clone(r.body.Bytes())}
}
