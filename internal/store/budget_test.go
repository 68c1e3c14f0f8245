package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// spending is a model call as a test makes it.
type spending struct {
	run      runs.Run
	call     modelcalls.Call
	estimate int64
	// end is how it ends: 0 lost, 1 failed, 2 cancelled, 3 answered.
	end  int
	used int64
}

// spend books the call and ends it. It returns what it counts against the budget.
func (c spending) spend(ctx context.Context, s *store.Store) (int64, error) {
	if _, err := s.ModelCalls.Begin(ctx, c.run.Ref, c.call); err != nil {
		if errors.As(err, new(*modelcalls.BudgetError)) {
			return 0, nil
		}
		return 0, err
	}
	var res modelcalls.Result
	switch c.end {
	case 0:
		return c.estimate, nil
	case 1:
		res.ErrorKind = pipeline.ServerError
	case 2:
		res.ErrorKind = pipeline.Cancelled
	default:
		res.Answer, res.Input = []byte("answer"), c.used
		_, err := s.ModelCalls.Finish(ctx, c.run.Ref, c.call, res)
		return c.used, err
	}
	_, err := s.ModelCalls.Finish(ctx, c.run.Ref, c.call, res)
	return c.estimate, err
}

// No interleaving of calls spends more than the budget, and every call counts: with what it used, or with its estimate
// when it failed, was cancelled or was lost.
func TestBudgetIsReserved(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		tenant := fmt.Sprintf("tenant-%d", round)
		if _, err := s.Tenants.Ensure(t.Context(), tenant, ""); err != nil {
			rt.Fatal(err)
		}
		budget := rapid.Int64Range(1, 2000).Draw(rt, "budget")
		calls := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) spending {
			c := spending{
				estimate: rapid.Int64Range(1, 500).Draw(rt, "estimate"), end: rapid.IntRange(0, 3).Draw(rt, "end"),
			}
			c.used = rapid.Int64Range(1, c.estimate).Draw(rt, "used")
			return c
		}), 1, 12).Draw(rt, "calls")
		var wg sync.WaitGroup
		var mu sync.Mutex
		var spent int64
		for i, c := range calls {
			c.run = requestOf(rt, s, tenant, fmt.Sprint(i))
			c.call = modelcalls.Call{
				Call: 1, Attempt: 1, Vendor: "v", Model: "m", Request: []byte("r"), Estimate: c.estimate,
				Budgets: modelcalls.Budgets{Tenant: budget, Since: time.Now().Add(-time.Hour)},
			}
			wg.Go(func() {
				n, err := c.spend(t.Context(), s)
				mu.Lock()
				defer mu.Unlock()
				if spent += n; err != nil {
					rt.Error(err)
				}
			})
		}
		wg.Wait()
		counted, err := s.ModelCalls.TokensUsed(t.Context(), tenant, time.Now().Add(-time.Hour))
		if err != nil || counted != spent || spent > budget {
			rt.Errorf("spent %d of %d, counted %d, %v", spent, budget, counted, err)
		}
	})
}

// requestOf requests a run of a new conversation.
func requestOf(t interface{ Fatal(...any) }, s *store.Store, tenant, id string) runs.Run {
	ctx := context.Background()
	c, _, err := s.Conversations.Create(ctx, tenant,
		conversations.NewConversation{ID: id, Format: "anthropic", Vendor: "anthropic", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Runs.Request(ctx, c.Ref, runs.Request{Kind: "manual"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A call that has an answer is neither booked nor reserved again, and the same bytes in another call have it too. What
// was sent under the same number before counts all the same.
func TestBudgetOfOneRun(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	run := request(t, s, newConversation(t, s, "c"))
	used := func(want int64) {
		t.Helper()
		n, err := s.ModelCalls.TokensUsed(t.Context(), store.DefaultTenant, time.Now().Add(-time.Hour))
		if err != nil || n != want {
			t.Errorf("%d tokens count, not %d; %v", n, want, err)
		}
	}
	call := func(n, attempt int, request string) modelcalls.Call {
		return modelcalls.Call{
			Call: n, Attempt: attempt, Vendor: "v", Model: "m", Request: []byte(request), Estimate: 100,
			Budgets: modelcalls.Budgets{Run: 350},
		}
	}
	begin := func(c modelcalls.Call) string {
		t.Helper()
		answer, err := s.ModelCalls.Begin(t.Context(), run.Ref, c)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	begin(call(1, 1, "one")) // its worker dies
	used(100)
	begin(call(1, 1, "one")) // by a workflow that was started once more
	used(200)
	if _, err := s.ModelCalls.Finish(t.Context(), run.Ref, call(1, 1, "one"),
		modelcalls.Result{Input: 30, Output: 10, Answer: []byte("yes")}); err != nil {
		t.Fatal(err)
	}
	used(140)
	if answer := begin(call(1, 2, "one")); answer != "yes" {
		t.Errorf("the next attempt has answer %q", answer)
	}
	other := call(8, 1, "one")
	other.Model = "another"
	if a, err := s.ModelCalls.AnswerTo(t.Context(), run.Ref, call(7, 1, "one")); err != nil || string(a) != "yes" {
		t.Errorf("the same bytes in another call have answer %q, %v", a, err)
	}
	if a, err := s.ModelCalls.AnswerTo(t.Context(), run.Ref, other); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another model has answer %q, %v", a, err)
	}
	begin(other)
	used(240)
	begin(call(9, 1, "two"))
	used(340)
	_, err := s.ModelCalls.Begin(t.Context(), run.Ref, call(10, 1, "three"))
	var over *modelcalls.BudgetError
	if !errors.As(err, &over) || over.Used != 340 || over.Limit != 350 || over.OfTenant {
		t.Errorf("%v", err)
	}
	used(340)
	if answer := begin(call(1, 3, "one")); answer != "yes" {
		t.Error("an answer that is there costs nothing, whatever is left")
	}
}
