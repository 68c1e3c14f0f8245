package workflows_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"precis"
	"precis/internal/contract"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/internal/worker"
	"precis/pipeline"
)

// poison makes every attempt at one activity fail by a fault of ours, and counts them.
type poison struct {
	interceptor.WorkerInterceptorBase
	activity string
	work     func(ctx context.Context)
	tries    atomic.Int64
}

func (p *poison) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	in := &poisoned{poison: p}
	in.Next = next
	return in
}

type poisoned struct {
	interceptor.ActivityInboundInterceptorBase
	poison *poison
}

func (p *poisoned) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if activity.GetInfo(ctx).ActivityType.Name == p.poison.activity {
		p.poison.tries.Add(1)
		p.poison.work(ctx)
	}
	return p.Next.ExecuteActivity(ctx, in)
}

// startPoisoned runs a worker with the poison until the test ends.
func startPoisoned(t *testing.T, s *scenario.System, p *poison) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- worker.Run(ctx, worker.Options{
			Store: s.Store, Client: s.Client, Config: s.Config, Log: s.Log,
			Interceptors: []interceptor.WorkerInterceptor{p},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A stage that hangs or panics is tried three times, and then the run ends as an internal error, also where no line of
// the stage is ever reached.
func TestPoisonIsTriedThreeTimes(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) { <-ctx.Done() } // without a heartbeat
	for name, test := range map[string]struct {
		stage contract.Stage
		work  func(context.Context)
	}{
		"a stage hangs":       {contract.StagePartition, hang},
		"the first one hangs": {contract.StageTrigger, hang},
		"the input hangs":     {contract.StageSlim, hang},
		"a stage panics":      {contract.StageSummarizer, func(context.Context) { panic("poison") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: summaryOfTurns}})
			p := &poison{activity: test.stage.Activity(), work: test.work}
			startPoisoned(t, s, p)
			run := s.Request(s.Create(scenario.Conversation{Window: 8000, Messages: scenario.Turns(6, 1000)}),
				runs.Request{})
			run = s.WaitFor(run, 5*time.Minute)
			if run.Outcome != precis.OutcomeFailed || run.ErrorKind != pipeline.Internal ||
				!strings.Contains(run.Reason, "tried 3 times") || p.tries.Load() != contract.MaxTries {
				t.Errorf("%s %s after %d tries: %s", run.Outcome, run.ErrorKind, p.tries.Load(), run.Reason)
			}
		})
	}
}

const summaryOfTurns = "<summary>\nEach part was explained.\n</summary>"

// Parallel runs do not spend more than the tenant's budget together, whatever becomes of their calls: some are
// answered, some fail, and some are cancelled before they are.
func TestParallelRunsKeepTheBudget(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: summaryOfTurns, Gate: gate}})
	const parallel = 24
	budget := 30_000 // four calls or so
	s.Config.Settings.TenantDailyTokenBudget = budget
	s.StartWorker()
	var requested []runs.Run
	for range parallel {
		ref := s.Create(scenario.Conversation{Window: 16_000, Messages: scenario.Turns(8, 1000)})
		requested = append(requested, s.Request(ref, runs.Request{}))
	}
	since := time.Now().Add(-time.Hour)
	used := func() int {
		n, err := s.Store.ModelCalls.TokensUsed(t.Context(), scenario.Tenant, since)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for i, run := range requested {
		if i%3 == 0 {
			if err := s.Client.CancelWorkflow(t.Context(), run.WorkflowID, ""); err != nil {
				t.Log(err) // it has ended
			}
		}
	}
	gate.Open()
	digests := 0
	for _, run := range requested {
		ended := s.WaitFor(run, 5*time.Minute)
		if ended.Facts.Digest {
			digests++
		}
		if n := used(); n > budget {
			t.Fatalf("%d of %d tokens are spent", n, budget)
		}
	}
	if used() == 0 || digests == 0 {
		t.Errorf("%d tokens are used, and %d runs used the digest", used(), digests)
	}
}
