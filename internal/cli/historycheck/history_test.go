package historycheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"precis"
	"precis/internal/cli/historycheck"
)

const kept = "../../../workflows/testdata/histories"

// Every kept history of every release replays: a build that would break a run under way fails here.
func TestKeptHistoriesReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(kept, "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept histories: %v", err)
	}
	for _, file := range files {
		h, err := historycheck.ReadFile(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if r, err := historycheck.Replay(h); err != nil || !r.OK || r.Events != len(h.Events) {
			t.Errorf("%s: %+v %v", file, r, err)
		}
	}
}

// The check can fail: for workflows that were changed without a version, the report names the event.
func TestAChangedWorkflowIsFound(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(kept, "*", "ladder.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no kept histories: %v", err)
	}
	h, err := historycheck.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	type in = precis.Input
	type out = precis.Result
	for name, tt := range map[string]struct {
		changed func(workflow.Context, in) (out, error)
		says    string
		event   bool
	}{
		"another activity first": {func(ctx workflow.Context, in in) (out, error) {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
			return out{}, workflow.ExecuteActivity(ctx, "Slim").Get(ctx, nil)
		}, "is ActivityTaskScheduled Trigger, and this build would not ask for it there", true},
		"a timer first": {func(ctx workflow.Context, in in) (out, error) {
			return out{}, workflow.Sleep(ctx, time.Minute)
		}, "is ActivityTaskScheduled Trigger, and this build would not ask for it there", true},
		"nothing at all": {
			func(workflow.Context, in) (out, error) { return out{}, nil },
			"breaks runs that are under way", true,
		},
	} {
		with := historycheck.Workflows()
		with["CompactionWorkflow"] = tt.changed
		r, err := historycheck.ReplayWith(h, with)
		if err != nil || r.OK || !strings.Contains(r.Detail, tt.says) || tt.event && r.Event == 0 {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

func TestWhatIsNoHistory(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"{}": "no events", "not JSON": "not a workflow history",
		`{"events":[{"eventId":"1"}]}`: "does not begin",
	} {
		h, err := historycheck.Read(strings.NewReader(text))
		if err == nil {
			_, err = historycheck.Replay(h)
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := historycheck.ReadFile(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
