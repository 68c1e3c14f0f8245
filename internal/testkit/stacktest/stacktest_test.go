package stacktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main{M: m}) }

func TestDatabase(t *testing.T) {
	t.Parallel()

	t.Run("IsEmptyAndApart", func(t *testing.T) {
		t.Parallel()
		one, other := Database(t), Database(t)
		for _, pool := range []interface {
			QueryRow(context.Context, string, ...any) pgx.Row
		}{one, other} {
			var schema string
			var count int
			err := pool.QueryRow(t.Context(),
				"SELECT current_schema(), count(*) FROM pg_tables WHERE schemaname = current_schema()").Scan(&schema,
				&count)
			if err != nil || count != 0 || !strings.HasPrefix(schema, "test_") {
				t.Errorf("%s has %d tables, %v", schema, count, err)
			}
		}
		if _, err := one.Exec(t.Context(), "CREATE TABLE mine ()"); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Exec(t.Context(), "SELECT FROM mine"); err == nil {
			t.Error("the other test sees it")
		}
	})

	t.Run("IsDroppedWithTheTest", func(t *testing.T) {
		t.Parallel()
		var schema string
		t.Run("inner", func(t *testing.T) {
			if err := Database(t).QueryRow(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
				t.Fatal(err)
			}
		})
		var exists bool
		err := Database(t).QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
			schema).Scan(&exists)
		if err != nil || exists {
			t.Errorf("%s is still there, %v", schema, err)
		}
	})
}

var tenant = temporal.NewSearchAttributeKeyKeyword("PrecisTenant")

// attributed is a workflow that can be found by what it says of itself, and that calls an activity.
func attributed(ctx workflow.Context, name string) (string, error) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, tenant.ValueSet(name)); err != nil {
		return "", err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var answer string
	err := workflow.ExecuteActivity(ctx, shout, name).Get(ctx, &answer)
	return answer, err
}

func shout(_ context.Context, name string) (string, error) { return strings.ToUpper(name), nil }

func TestTemporal(t *testing.T) {
	t.Parallel()
	address, namespace := Temporal(t)
	if _, other := Temporal(t); other == namespace {
		t.Errorf("two tests share %s", namespace)
	}
	c, err := client.Dial(client.Options{HostPort: address, Namespace: namespace, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := worker.New(c, "queue", worker.Options{})
	w.RegisterWorkflow(attributed)
	w.RegisterActivity(shout)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	begun := time.Now()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "queue"}, attributed, "acme")
	if err != nil {
		t.Fatal(err)
	}
	var answer string
	if err := run.Get(t.Context(), &answer); err != nil || answer != "ACME" {
		t.Fatalf("%q, %v", answer, err)
	}
	t.Logf("a workflow took %s", time.Since(begun))

	// Visibility is written a moment after the run has ended.
	for {
		found, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: "PrecisTenant = 'acme' AND ExecutionStatus = 'Completed'",
		})
		if err != nil {
			t.Fatal(err)
		}
		if found.Count == 1 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the run cannot be found")
		case <-time.After(time.Millisecond):
		}
	}
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

var _ log.Logger = quiet{}
