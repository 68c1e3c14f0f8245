// Package fair shares the cores of a process among tenants whose work keeps a core busy for long.
//
// There is one place more than there are cores, and no tenant has more places than there are cores. So a tenant that is
// alone uses all of them, and still the next tenant begins at once and shares the cores with it: on one core the work
// of both takes twice as long, and less on more. Tenants that wait for a place take turns, whatever the number of their
// requests; the requests of one tenant are served in order.
package fair

import (
	"container/list"
	"context"
	"sync"
)

// Queue hands out places. Use New.
type Queue struct {
	mu sync.Mutex
	// free counts the places that nobody has, most is what a tenant can have.
	free, most int
	held       map[string]int
	// waiting has the requests of each tenant in order, and turns the tenants that wait, the next one first.
	waiting map[string]*list.List
	turns   *list.List
}

// New returns a queue for a number of cores, at least 1.
func New(cores int) *Queue {
	cores = max(cores, 1)
	return &Queue{
		free: cores + 1, most: cores, held: map[string]int{}, waiting: map[string]*list.List{}, turns: list.New(),
	}
}

// Turn is a place that a tenant has. A nil Turn is none.
type Turn struct {
	queue  *Queue
	tenant string
	once   sync.Once
}

// Take waits for a place. The error is the context's if it ends before.
func (q *Queue) Take(ctx context.Context, tenant string) (*Turn, error) {
	ready := q.ask(tenant)
	select {
	case <-ready:
		return &Turn{queue: q, tenant: tenant}, nil
	case <-ctx.Done():
		if !q.withdraw(tenant, ready) { // it was given just now
			(&Turn{queue: q, tenant: tenant}).End()
		}
		return nil, ctx.Err()
	}
}

// End gives the place back. Called again, or of a nil Turn, it does nothing.
func (t *Turn) End() {
	if t == nil {
		return
	}
	t.once.Do(func() { t.queue.end(t.tenant) })
}

// ask queues a request. The channel is closed when it has its place.
func (q *Queue) ask(tenant string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	ready := make(chan struct{})
	if q.waiting[tenant] == nil {
		q.waiting[tenant] = list.New()
		q.turns.PushBack(tenant)
	}
	q.waiting[tenant].PushBack(ready)
	q.serve()
	return ready
}

// withdraw removes a request that waits. It reports false if the request has its place already.
func (q *Queue) withdraw(tenant string, ready chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.waiting[tenant]; line != nil {
		for e := line.Front(); e != nil; e = e.Next() {
			if e.Value == ready {
				line.Remove(e)
				q.leave(tenant)
				return true
			}
		}
	}
	return false
}

func (q *Queue) end(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	if q.held[tenant]--; q.held[tenant] == 0 {
		delete(q.held, tenant)
	}
	q.serve()
}

// serve gives the free places away: each to the first tenant in turn that may have one more, which then goes to the end
// of the line.
func (q *Queue) serve() {
	for e := q.turns.Front(); e != nil && q.free > 0; {
		tenant := e.Value.(string)
		if q.held[tenant] >= q.most {
			e = e.Next()
			continue
		}
		line := q.waiting[tenant]
		close(line.Remove(line.Front()).(chan struct{}))
		q.free--
		q.held[tenant]++
		q.turns.MoveToBack(e)
		q.leave(tenant)
		e = q.turns.Front()
	}
}

// leave removes a tenant from the line if it has no request that waits.
func (q *Queue) leave(tenant string) {
	if q.waiting[tenant].Len() > 0 {
		return
	}
	delete(q.waiting, tenant)
	for e := q.turns.Front(); e != nil; e = e.Next() {
		if e.Value == tenant {
			q.turns.Remove(e)
			return
		}
	}
}
