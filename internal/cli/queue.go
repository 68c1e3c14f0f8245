package cli

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"precis/internal/cli/connect"
	"precis/internal/cli/fail"
)

// pollerFresh is how recently a worker must have polled to count: a poll lasts up to a minute.
const pollerFresh = 75 * time.Second

// workerTimeout limits the wait for a worker that has just started to poll.
const workerTimeout = 5 * time.Second

// queueStatus is the state of a task queue of Temporal.
type queueStatus struct {
	Name string `json:"name"`
	// Workers counts the workers that polled it for activities lately.
	Workers int `json:"workers"`
	// Backlog is the number of waiting workflow tasks and activities, as the server estimates it.
	Backlog int64 `json:"backlog"`
}

// queue returns the state of a task queue. It asks Temporal directly: queues and pollers are not in the store, and the
// service does not know them.
func (s *session) queue(ctx context.Context, name string) (queueStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.DialTimeout)
	defer cancel()
	q := queueStatus{Name: name}
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		d, err := s.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: s.Config.Temporal.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name},
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

// requireWorker returns an error if no worker serves the configured Temporal, where a run would wait forever. It
// waits a few seconds for a worker that has just started.
func (s *session) requireWorker(ctx context.Context) error {
	for _, name := range []string{s.Config.Worker.TaskQueue, s.Config.Worker.LLMTaskQueue} {
		if err := s.awaitWorker(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) awaitWorker(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, connect.DialTimeout)
	defer cancel()
	timeout := time.NewTimer(workerTimeout)
	defer timeout.Stop()
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for {
		q, err := s.queue(ctx, name)
		if err != nil {
			return fail.Unreachablef("Temporal at %s, namespace %s: %w", s.Config.Temporal.Address,
				s.Config.Temporal.Namespace, err)
		}
		if q.Workers > 0 {
			return nil
		}
		select {
		case <-poll.C:
		case <-timeout.C:
			return fail.Unreachablef("no worker serves queue %q of namespace %q at %s: start one with bin/worker", name,
				s.Config.Temporal.Namespace, s.Config.Temporal.Address)
		}
	}
}
