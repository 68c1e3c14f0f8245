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
	// retention is how long a namespace that we create keeps closed runs.
	retention = 7 * 24 * time.Hour
	// namespaceTimeout covers the refreshes of caches until a new namespace can be used everywhere.
	namespaceTimeout = 30 * time.Second
)

// EnsureNamespace creates a namespace with the search attributes of precis, or adds the missing ones to a namespace
// that exists, in a Temporal without TLS or keys. It returns when runs can be found by the attributes.
func EnsureNamespace(ctx context.Context, address, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, namespaceTimeout)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reach Temporal at %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	frontend := workflowservice.NewWorkflowServiceClient(conn)

	// Checking first whether it exists would cost a quarter of a second or more: the server caches that it does not.
	_, err = frontend.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        namespace,
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create the namespace %q at %s: %w", namespace, address, err)
	}
	described, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("describe the namespace %q at %s: %w", namespace, address, err)
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

// missingAttributes returns the search attributes that a namespace lacks. aliases are its columns with their names.
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

// usable counts runs by every attribute, which fails until the server knows the namespace and all of them.
func usable(ctx context.Context, frontend workflowservice.WorkflowServiceClient, namespace string) error {
	_, err := frontend.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace,
		Query:     strings.Join(searchAttributes, " = '' OR ") + " = ''",
	})
	return err
}

// retry calls try until it succeeds or ctx ends, and returns the last error.
func retry(ctx context.Context, try func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
