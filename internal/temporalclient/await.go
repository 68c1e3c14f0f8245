package temporalclient

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"precis/internal/config"
)

const (
	// awaitRetry is how long Await waits at first before it asks Temporal again, and awaitRetryMost at most.
	awaitRetry     = 500 * time.Millisecond
	awaitRetryMost = 15 * time.Second
	// awaitTimeout is how long Temporal has to answer.
	awaitTimeout = 5 * time.Second
)

// Await waits until Temporal answers and knows the namespace, and logs that it waits. It returns nil when the context
// ends, and the error that no waiting mends, such as refused credentials.
func Await(ctx context.Context, cl client.Client, c config.Temporal, log *slog.Logger) error {
	wait := awaitRetry
	for tries := 0; ; tries++ {
		err := answers(ctx, cl, c.Namespace)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if tries > 0 {
				log.Info("Temporal answers", "address", c.Address, "namespace", c.Namespace)
			}
			return nil
		case errors.As(err, new(*serviceerror.PermissionDenied)), errors.As(err, new(*serviceerror.InvalidArgument)):
			return err
		}
		log.Warn("Temporal is not reachable (temporal.address) or does not know the namespace (temporal.namespace): "+
			"trying again", "address", c.Address, "namespace", c.Namespace, "in", wait, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		wait = min(2*wait, awaitRetryMost)
	}
}

func answers(ctx context.Context, cl client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	_, err := cl.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return err
}
