package devstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// retention is how long a closed run can be looked at in a namespace that we make.
	retention = 7 * 24 * time.Hour
	// A server may take a cache refresh or two until a new namespace can be used everywhere.
	namespaceTimeout = 30 * time.Second
)

// EnsureNamespace makes a namespace with the search attributes of precis in a Temporal that is reached without
// TLS or keys, adds what is missing to one that exists, and returns when runs in it can be found by them.
func EnsureNamespace(ctx context.Context, address, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reach Temporal at %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	frontend := workflowservice.NewWorkflowServiceClient(conn)

	// Asking whether it exists first would cost a quarter of a second and more: the server remembers that there
	// is no such namespace.
	_, err = frontend.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        namespace,
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("make the namespace %q at %s: %w", namespace, address, err)
	}
	described, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("look at the namespace %q at %s: %w", namespace, address, err)
	}
	missing := missingAttributes(described.GetConfig().GetCustomSearchAttributeAliases())
	return retry(ctx, func() error {
		if len(missing) > 0 {
			_, err := operatorservice.NewOperatorServiceClient(conn).AddSearchAttributes(ctx,
				&operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
			if err != nil {
				return fmt.Errorf("add the search attributes to the namespace %q at %s: %w", namespace, address, err)
			}
			missing = nil
		}
		if err := usable(ctx, frontend, namespace); err != nil {
			return fmt.Errorf("the namespace %q at %s cannot be used: %w", namespace, address, err)
		}
		return nil
	})
}

// missingAttributes takes what a namespace has, as columns and the names they go by.
func missingAttributes(aliases map[string]string) map[string]enumspb.IndexedValueType {
	present := slices.Collect(maps.Values(aliases))
	missing := map[string]enumspb.IndexedValueType{}
	for _, name := range searchAttributes {
		if !slices.Contains(present, name) {
			missing[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	return missing
}

// usable looks for a run by every attribute. It is refused until the server knows the namespace and all of them.
func usable(ctx context.Context, frontend workflowservice.WorkflowServiceClient, namespace string) error {
	_, err := frontend.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace,
		Query:     strings.Join(searchAttributes, " = '' OR ") + " = ''",
	})
	return err
}

// retry tries until it works or ctx ends, and returns the last error.
func retry(ctx context.Context, try func() error) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}
