package api

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"precis/internal/config"
)

const (
	// budgetWait is how long a request waits for room in the budget of bodies.
	budgetWait = 2 * time.Second
	// firstPiece is the first buffer of a body. Each further one has twice the size.
	firstPiece = 64 << 10
)

// errBudget: the bodies in progress leave no room for more.
var errBudget = errors.New("the bodies in progress leave no room")

// budget bounds the bytes of all bodies that are in memory at the same time. One tenant can hold half of it, so that
// its slow or large requests do not keep those of the others out.
type budget struct {
	all   *semaphore.Weighted
	share int64
}

func newBudget(c config.HTTP) budget {
	return budget{
		all:   semaphore.NewWeighted(int64(max(c.MaxTotalBodyBytes, c.MaxBodyBytes))),
		share: int64(max(c.MaxTotalBodyBytes/2, c.MaxBodyBytes)),
	}
}

// reservation is the part of the budget that one request holds until it ends.
type reservation struct {
	budget budget
	tenant *semaphore.Weighted
	held   int64
}

// grow reserves n more bytes, or fails with errBudget if there is no room for them within budgetWait.
func (r *reservation) grow(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	if r.tenant.Acquire(ctx, n) != nil {
		return errBudget
	}
	if r.budget.all.Acquire(ctx, n) != nil {
		r.tenant.Release(n)
		return errBudget
	}
	r.held += n
	return nil
}

func (r *reservation) release() {
	if r == nil || r.held == 0 {
		return
	}
	r.budget.all.Release(r.held)
	r.tenant.Release(r.held)
	r.held = 0
}

// read reads a body. Its reservation grows with what has arrived, whatever length the client declared. length is that
// length, -1 if it declared none; from bounds what can be read.
func (r *reservation) read(ctx context.Context, from io.Reader, length int64) ([]byte, error) {
	var body []byte
	for {
		if len(body) == cap(body) {
			size := max(2*int64(cap(body)), firstPiece)
			if length >= 0 && int64(len(body)) < length {
				size = min(size, length)
			} else if length == int64(len(body)) {
				// The next read finds the end. It fits into a small buffer.
				return body, ended(from)
			}
			if err := r.grow(ctx, size-int64(cap(body))); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// ended reads to the end of a body of which the declared length has been read: net/http gives no more than that.
func ended(from io.Reader) error {
	var rest [1]byte
	switch _, err := io.ReadFull(from, rest[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return io.ErrUnexpectedEOF
}
