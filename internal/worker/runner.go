// Package runner is the inside of a worker process: it serves both task queues and starts the workflows that
// wait in the outbox. bin/worker runs it alone; the local stack runs it beside everything else.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/activities"
	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/memory"
	"precis/internal/store"
	"precis/internal/telemetry"
	"precis/workflows"
)

// stickyTimeout is how long Temporal waits for the worker that has a workflow in its cache before it gives the
// workflow to another: the SDK's five seconds are most of a recovery after a crash.
const stickyTimeout = 2 * time.Second

// Options are what a worker needs.
type Options struct {
	Store  *store.Store
	Client client.Client
	Config config.Config
	Log    *slog.Logger
	// Telemetry measures and traces, nil: nothing does.
	Telemetry *telemetry.Telemetry
	// Interceptors are around every activity: tests stop a worker with them.
	Interceptors []interceptor.WorkerInterceptor
	// Ready, if set, is called once the worker polls.
	Ready func()
	// NoOutbox leaves the outbox to others: for a process that serves runs which it starts itself, and is gone
	// after them.
	NoOutbox bool
}

// Run serves until the context ends. It then drains: what is under way has worker.drain_seconds to finish,
// and what does not is taken up by another worker.
func Run(ctx context.Context, o Options) error {
	identity := identity()
	acts, err := activities.New(o.Store, o.Config, o.Log, identity, o.Telemetry)
	if err != nil {
		return err
	}
	drain := time.Duration(o.Config.Worker.DrainSeconds) * time.Second
	common := worker.Options{
		Identity:                     identity,
		Interceptors:                 o.Interceptors,
		WorkerStopTimeout:            drain,
		ActivityTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		MaxHeartbeatThrottleInterval: 2 * time.Second,
		DisableRegistrationAliasing:  true,
	}

	main := common
	main.MaxConcurrentActivityExecutionSize = o.Config.Worker.Concurrency
	main.WorkflowTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	main.StickyScheduleToStartTimeout = stickyTimeout
	stages := worker.New(o.Client, o.Config.Worker.TaskQueue, main)
	stages.RegisterWorkflowWithOptions(workflows.CompactionWorkflow,
		workflow.RegisterOptions{Name: precis.WorkflowType})
	stages.RegisterWorkflowWithOptions(workflows.BatchReplayWorkflow,
		workflow.RegisterOptions{Name: contract.BatchWorkflowType})
	registerStages(stages, acts)

	models := common
	models.MaxConcurrentActivityExecutionSize = o.Config.Worker.LLMConcurrency
	models.DisableWorkflowWorker = true
	calls := worker.New(o.Client, o.Config.Worker.LLMTaskQueue, models)
	calls.RegisterActivityWithOptions(acts.Summarize,
		activity.RegisterOptions{Name: contract.StageSummarize.Activity()})

	if err := stages.Start(); err != nil {
		return fmt.Errorf("start the worker on queue %s: %w", o.Config.Worker.TaskQueue, err)
	}
	if err := calls.Start(); err != nil {
		stages.Stop()
		return fmt.Errorf("start the worker on queue %s: %w", o.Config.Worker.LLMTaskQueue, err)
	}
	defer stopAll(stages, calls)
	if o.Ready != nil {
		o.Ready()
	}
	if o.NoOutbox {
		<-ctx.Done()
	} else {
		var beside sync.WaitGroup
		beside.Go(func() { folderKeeper{memory.Memory{Store: o.Store}, o.Config.Memory.Folder, o.Log}.run(ctx) })
		d := dispatcher{store: o.Store, client: o.Client, queue: o.Config.Worker.TaskQueue, log: o.Log}
		d.run(ctx)
		beside.Wait()
	}
	o.Log.Info("the worker drains", "at most", drain)
	return nil
}

// stopAll drains workers side by side, so that the drain takes as long as the slowest of them.
func stopAll(workers ...worker.Worker) {
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(w.Stop)
	}
	wg.Wait()
}

// registerStages registers every stage on the stages' queue, and what agents' workflows call. Summarize is there for
// the digest, which calls no model.
func registerStages(w worker.Worker, a *activities.Activities) {
	for stage, work := range map[contract.Stage]any{
		contract.StageTrigger: a.Trigger, contract.StageSummarizer: a.Summarizer, contract.StagePartition: a.Partition,
		contract.StageSlim: a.Slim, contract.StageSummarize: a.Summarize, contract.StageReassemble: a.Reassemble,
		contract.StageFinish: a.Finish,
	} {
		w.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: stage.Activity()})
	}
	for name, work := range map[string]any{
		precis.AskForRunActivity: a.AskForRun, precis.AwaitRunActivity: a.AwaitRun,
		contract.NextReplaysActivity: a.NextReplays, contract.FinishReplaysActivity: a.FinishReplays,
	} {
		w.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: name})
	}
}

func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s", os.Getpid(), host)
}
