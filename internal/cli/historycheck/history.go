// Package historycheck replays recorded workflow histories against this build. It shows whether this build could
// continue a run that another build has started, or would break it.
package historycheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"precis"
	"precis/internal/contract"
	"precis/workflows"
)

// Workflows returns the workflows of this build, by the names under which workers register them.
func Workflows() map[string]any {
	return map[string]any{
		precis.WorkflowType:        workflows.CompactionWorkflow,
		contract.BatchWorkflowType: workflows.BatchReplayWorkflow,
	}
}

// Report is the result of a history check.
type Report struct {
	Workflow string `json:"workflow"`
	Events   int    `json:"events"`
	OK       bool   `json:"ok"`
	// Event is the id of the event at which the build decides differently; 0 if it is unknown or there is none.
	Event int64 `json:"event,omitempty"`
	// Detail is one sentence for a person.
	Detail string `json:"detail"`
}

// Fetch reads the history of a workflow from Temporal. runID is "" for its newest run.
func Fetch(ctx context.Context, c client.Client, workflowID, runID string) (*history.History, error) {
	h := &history.History{}
	it := c.GetWorkflowHistory(ctx, workflowID, runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of workflow %s: %w", workflowID, err)
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}

// ReadFile reads a history from a file of JSON, as `temporal workflow show --output json` and the web UI write it.
func ReadFile(path string) (*history.History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f)
}

// Read reads a history in JSON.
func Read(r io.Reader) (*history.History, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read a history: %w", err)
	}
	h := &history.History{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, h); err != nil {
		return nil, fmt.Errorf("not a workflow history in JSON: %w", err)
	}
	if len(h.Events) == 0 {
		return nil, errors.New("the history has no events")
	}
	return h, nil
}

// Replay replays a history with the workflows of this build, as a worker that continues the run would. A history that
// this build would break is not an error: the report says where the build differs.
func Replay(h *history.History) (Report, error) { return ReplayWith(h, Workflows()) }

// ReplayWith is Replay with other workflows, by name.
func ReplayWith(h *history.History, with map[string]any) (Report, error) {
	if len(h.GetEvents()) == 0 || h.Events[0].GetWorkflowExecutionStartedEventAttributes() == nil {
		return Report{}, errors.New("the history does not begin with the start of a workflow")
	}
	r := Report{
		Workflow: h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName(),
		Events:   len(h.Events),
	}
	if with[r.Workflow] == nil {
		return r, fmt.Errorf("this build has no workflow %q", r.Workflow)
	}
	replayer := worker.NewWorkflowReplayer()
	for name, w := range with {
		replayer.RegisterWorkflowWithOptions(w, workflow.RegisterOptions{Name: name})
	}
	// The log is discarded: what it would say is in the error.
	err := replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
	if err == nil {
		r.OK, r.Detail = true, fmt.Sprintf("this build decides at each of the %d events as the recorded run did",
			r.Events)
		return r, nil
	}
	r.Event, r.Detail = place(h, err)
	return r, nil
}

var (
	mismatch = regexp.MustCompile(`history event is (\w+): \((.*?)\), replay command is (\w+): \((.*)\)`)
	missing  = regexp.MustCompile(`missing replay command for (\w+): \((.*)\)`)
	extra    = regexp.MustCompile(`extra replay command for (\w+): \((.*)\)`)
	unasked  = regexp.MustCompile(`lookup failed for scheduledEventID to activityID: scheduleEventID: (\d+)`)
	activity = regexp.MustCompile(`ActivityId:(\w+)`)
	named    = regexp.MustCompile(`(?:ActivityType|WorkflowType):\(Name:(\w+)`)
)

// place returns the event at which a build differs from a history, and a sentence about it.
func place(h *history.History, err error) (int64, string) {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if m := mismatch.FindStringSubmatch(text); m != nil {
		id := eventOf(h, m[1], m[2])
		return id, fmt.Sprintf("%s is %s, and this build would ask for %s there: it breaks runs that are under way",
			at(id), what(m[1], m[2]), what(m[3], m[4]))
	}
	if m := missing.FindStringSubmatch(text); m != nil {
		id := eventOf(h, m[1], m[2])
		return id, fmt.Sprintf(
			"%s is %s, and this build would ask for nothing there: it breaks runs that are under way", at(id),
			what(m[1], m[2]))
	}
	if m := unasked.FindStringSubmatch(text); m != nil {
		if id, err := strconv.ParseInt(m[1], 10, 64); err == nil && id > 0 && id <= int64(len(h.Events)) {
			e := h.Events[id-1]
			name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
			return id, fmt.Sprintf(
				"event %d is %s %s, and this build would not ask for it there: it breaks runs that are under way", id,
				e.EventType, name)
		}
	}
	if m := extra.FindStringSubmatch(text); m != nil {
		return 0, fmt.Sprintf(
			"this build would ask for %s, which is not in the history: it breaks runs that are under way",
			what(m[1], m[2]))
	}
	return 0, "this build does not replay it: " + text
}

func at(id int64) string {
	if id == 0 {
		return "an event"
	}
	return fmt.Sprintf("event %d", id)
}

// what returns the name of an event or command, with the activity or workflow that it is about.
func what(kind, attributes string) string {
	if m := named.FindStringSubmatch(attributes); m != nil {
		return kind + " " + m[1]
	}
	return kind
}

// eventOf returns the id of the event that an error is about, 0 if it cannot be determined.
func eventOf(h *history.History, kind, attributes string) int64 {
	id := activity.FindStringSubmatch(attributes)
	var only int64
	for _, e := range h.Events {
		if e.EventType.String() != kind {
			continue
		}
		if id != nil && e.GetActivityTaskScheduledEventAttributes().GetActivityId() == id[1] {
			return e.EventId
		}
		if only != 0 {
			only = -1
			continue
		}
		only = e.EventId
	}
	if id == nil && only > 0 {
		return only
	}
	return 0
}
