package worker

import (
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/activities"
	"precis/internal/contract"
	"precis/workflows"
)

// stickyTimeout is how long Temporal waits for the worker that has a workflow in its cache before it gives the workflow
// to another one: the SDK's five seconds would be most of a recovery after a crash.
const stickyTimeout = 2 * time.Second

// poll starts to poll both task queues. stop drains them.
func (o Options) poll() (stop func(), err error) {
	identity := identity()
	acts, err := activities.New(o.Store, o.Config, o.Log, identity, o.Telemetry)
	if err != nil {
		return nil, err
	}
	common := worker.Options{
		Identity:                     identity,
		Interceptors:                 o.Interceptors,
		WorkerStopTimeout:            o.drain(),
		ActivityTaskPollerBehavior:   worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		MaxHeartbeatThrottleInterval: 2 * time.Second,
		DisableRegistrationAliasing:  true,
	}

	main := common
	main.MaxConcurrentActivityExecutionSize = o.Config.Worker.Concurrency
	main.WorkflowTaskPollerBehavior = worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	main.StickyScheduleToStartTimeout = stickyTimeout
	stages := worker.New(o.Client, o.Config.Worker.TaskQueue, main)
	registerWorkflows(stages)
	registerActivities(stages, acts)

	models := common
	models.MaxConcurrentActivityExecutionSize = o.Config.Worker.LLMConcurrency
	models.DisableWorkflowWorker = true
	modelCalls := worker.New(o.Client, o.Config.Worker.LLMTaskQueue, models)
	modelCalls.RegisterActivityWithOptions(acts.Summarize,
		activity.RegisterOptions{Name: contract.StageSummarize.Activity()})

	if err := stages.Start(); err != nil {
		return nil, fmt.Errorf("start the worker on queue %s: %w", o.Config.Worker.TaskQueue, err)
	}
	if err := modelCalls.Start(); err != nil {
		stages.Stop()
		return nil, fmt.Errorf("start the worker on queue %s: %w", o.Config.Worker.LLMTaskQueue, err)
	}
	return func() { stopAll(stages, modelCalls) }, nil
}

// stopAll drains workers side by side, so that the drain takes as long as the slowest of them.
func stopAll(workers ...worker.Worker) {
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(w.Stop)
	}
	wg.Wait()
}

func registerWorkflows(w worker.Worker) {
	w.RegisterWorkflowWithOptions(workflows.CompactionWorkflow, workflow.RegisterOptions{Name: precis.WorkflowType})
	w.RegisterWorkflowWithOptions(workflows.BatchReplayWorkflow,
		workflow.RegisterOptions{Name: contract.BatchWorkflowType})
}

// registerActivities registers the activities of the queue that calls no model. Summarize is one of them: the digest
// and recorded replays need no model.
func registerActivities(w worker.Worker, a *activities.Activities) {
	for name, f := range map[string]any{
		contract.StageTrigger.Activity():    a.Trigger,
		contract.StageSummarizer.Activity(): a.Summarizer,
		contract.StagePartition.Activity():  a.Partition,
		contract.StageSlim.Activity():       a.Slim,
		contract.StageSummarize.Activity():  a.Summarize,
		contract.StageReassemble.Activity(): a.Reassemble,
		contract.StageFinish.Activity():     a.Finish,
		precis.AskForRunActivity:            a.AskForRun,
		precis.AwaitRunActivity:             a.AwaitRun,
		contract.NextReplaysActivity:        a.NextReplays,
		contract.FinishReplaysActivity:      a.FinishReplays,
	} {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}
