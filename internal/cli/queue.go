package cli

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"precis/internal/cli/fail"
)

// pollerFresh is how recently a worker must have polled to count: a poll lasts up to a minute.
const pollerFresh = 75 * time.Second

// workerPatience is how long a worker has to be seen.
const workerPatience = 5 * time.Second

// queueStatus is one of Temporal's queues.
type queueStatus struct {
	Name string `json:"name"`
	// Workers counts who asked it for activities lately.
	Workers int `json:"workers"`
	// Backlog is what waits in it, workflow tasks and activities, by the server's own estimate.
	Backlog int64 `json:"backlog"`
}

// queue asks Temporal what waits in a queue and who serves it.
func (s *session) queue(ctx context.Context, name string) (queueStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	q := queueStatus{Name: name}
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		d, err := s.client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.config.Temporal.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name},
			TaskQueueType: kind, ReportStats: true,
		})
		if err != nil {
			return q, err
		}
		q.Backlog += d.GetStats().GetApproximateBacklogCount()
		if kind != enumspb.TASK_QUEUE_TYPE_ACTIVITY {
			continue
		}
		for _, p := range d.GetPollers() {
			if time.Since(p.GetLastAccessTime().AsTime()) < pollerFresh {
				q.Workers++
			}
		}
	}
	return q, nil
}

// requireWorker makes sure that somebody serves the configured Temporal: a run would wait for ever. A worker that has
// just started is seen a moment later.
func (s *session) requireWorker(ctx context.Context) error {
	for _, name := range []string{s.config.Worker.TaskQueue, s.config.Worker.LLMTaskQueue} {
		if err := s.awaitWorker(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) awaitWorker(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	give := time.NewTimer(workerPatience)
	defer give.Stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		q, err := s.queue(ctx, name)
		if err != nil {
			return fail.Unreachablef("Temporal at %s, namespace %s: %w", s.config.Temporal.Address,
				s.config.Temporal.Namespace, err)
		}
		if q.Workers > 0 {
			return nil
		}
		select {
		case <-again.C:
		case <-give.C:
			return fail.Unreachablef("no worker serves queue %q of namespace %q at %s: start one with bin/worker", name,
				s.config.Temporal.Namespace, s.config.Temporal.Address)
		}
	}
}
