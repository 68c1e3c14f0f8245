package fair

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// model is a queue whose requests a test makes and ends itself, so that nothing depends on time.
type model struct {
	q       *Queue
	waiting map[string][]chan struct{}
	held    map[string]int
	// served counts the turns that others had since a tenant waits.
	served map[string]int
}

// settle moves the requests that have their place now, which must be the first ones of their tenants.
func (m *model) settle(t *rapid.T) {
	for tenant, line := range m.waiting {
		n := 0
		for i, ready := range line {
			select {
			case <-ready:
				if i != n {
					t.Fatalf("request %d of %s was served before request %d", i, tenant, n)
				}
				n++
			default:
			}
		}
		m.held[tenant] += n
		if m.waiting[tenant] = line[n:]; n > 0 {
			m.served[tenant] = 0
		}
		for other := range m.waiting {
			if other != tenant && len(m.waiting[other]) > 0 {
				m.served[other] += n
			}
		}
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(1, 4).Draw(t, "cores")
		m := &model{
			q: New(cores), waiting: map[string][]chan struct{}{}, held: map[string]int{}, served: map[string]int{},
		}
		tenants := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			tenant := tenants.Draw(t, "tenant")
			switch rapid.SampledFrom([]string{"ask", "ask", "end", "withdraw"}).Draw(t, "what") {
			case "ask":
				m.waiting[tenant] = append(m.waiting[tenant], m.q.ask(tenant))
			case "end":
				if m.held[tenant] > 0 {
					m.held[tenant]--
					m.q.end(tenant)
				}
			case "withdraw":
				if line := m.waiting[tenant]; len(line) > 0 {
					last := len(line) - 1
					if !m.q.withdraw(tenant, line[last]) {
						t.Fatal("a request that waits could not be withdrawn")
					}
					m.waiting[tenant] = line[:last]
				}
			}
			m.settle(t)
			m.check(t, cores)
		}
	})
}

// check holds what must hold at any time.
func (m *model) check(t *rapid.T, cores int) {
	busy := 0
	for _, n := range m.held {
		busy += n
		if n > cores {
			t.Fatalf("a tenant holds %d places on %d cores", n, cores)
		}
	}
	if busy > cores+1 {
		t.Fatalf("%d places are held on %d cores", busy, cores)
	}
	for tenant, line := range m.waiting {
		switch {
		case len(line) == 0:
			m.served[tenant] = 0
		case busy <= cores && m.held[tenant] < cores:
			t.Fatalf("%s waits while there is a place for it", tenant)
		case m.held[tenant] < cores && m.served[tenant] > 2*(cores+1)*len(m.waiting):
			t.Fatalf("%s waits for its turn while others had %d", tenant, m.served[tenant])
		}
	}
}

// Whatever one tenant asks for, the first request of another begins at once.
func TestOneTenantDelaysNoOther(t *testing.T) {
	t.Parallel()
	for cores := 1; cores <= 4; cores++ {
		q := New(cores)
		for range 100 {
			q.ask("heavy")
		}
		select {
		case <-q.ask("light"):
		default:
			t.Errorf("%d cores: the other tenant waits", cores)
		}
		if got, want := fmt.Sprint(q.held), fmt.Sprintf("map[heavy:%d light:1]", cores); got != want {
			t.Errorf("%s are held, not %s", got, want)
		}
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	q := New(1)
	first, err := q.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Take(ctx, "a"); err == nil {
		t.Error("a second place on one core")
	}
	first.End()
	first.End()
	(*Turn)(nil).End()
	if q.free != 2 || len(q.waiting) != 0 || len(q.held) != 0 || q.turns.Len() != 0 {
		t.Errorf("left: %+v", q)
	}
}
