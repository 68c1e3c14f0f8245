package temporalclient

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// pollerFresh is how recently a worker must have polled to count: a poll lasts up to a minute.
const pollerFresh = 75 * time.Second

// Pollers counts the workers that have polled a queue for activities in the last minute or so.
func Pollers(ctx context.Context, c client.Client, namespace, queue string) (int, error) {
	d, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY,
	})
	if err != nil {
		return 0, fmt.Errorf("describe task queue %s: %w", queue, err)
	}
	n := 0
	for _, p := range d.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < pollerFresh {
			n++
		}
	}
	return n, nil
}
