package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"

	"precis"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Request requests a run. Its trigger kind defaults to manual.
func (s *System) Request(ref store.ConversationRef, req runs.Request) runs.Run {
	s.T.Helper()
	if req.Kind == "" {
		req.Kind = pipeline.TriggerManual
	}
	run, _, err := s.Store.Runs.Request(s.T.Context(), ref, req)
	if err != nil {
		s.T.Fatal(err)
	}
	return run
}

// Wait waits for the end of a run and returns it with its attempts.
func (s *System) Wait(run runs.Run) runs.Run {
	s.T.Helper()
	return s.WaitFor(run, 60*time.Second)
}

// WaitFor is Wait with another timeout.
func (s *System) WaitFor(run runs.Run, limit time.Duration) runs.Run {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), limit)
	defer cancel()
	if _, err := precis.Wait(ctx, s.Client, s.Launch(run)); err != nil {
		s.T.Fatalf("run %s: %v\n%s", run.Ref.ID, err, s.Attempts(run))
	}
	return s.Run(run)
}

// Run returns a run with its attempts.
func (s *System) Run(run runs.Run) runs.Run {
	s.T.Helper()
	got, err := s.Store.Runs.Get(s.T.Context(), run.Ref)
	if err != nil {
		s.T.Fatal(err)
	}
	return got
}

// Launch is how the run's workflow is started.
func (s *System) Launch(run runs.Run) precis.Launch {
	return precis.Launch{Input: run.Input(), TaskQueue: s.Config.Worker.TaskQueue, Trigger: run.Kind}
}

// Compact requests a run and waits for its end.
func (s *System) Compact(ref store.ConversationRef, req runs.Request) runs.Run {
	s.T.Helper()
	return s.Wait(s.Request(ref, req))
}

// Attempts lists the attempts of a run, one a line, for comparisons and the output of a failed test.
func (s *System) Attempts(run runs.Run) string {
	var b strings.Builder
	for _, step := range s.Run(run).Attempts {
		fmt.Fprintf(&b, "%-10s #%d.%d %-16s %-24s %s %s %s → %s\n", step.Stage, step.Call, step.Attempt, step.Rung,
			step.Summarizer, step.Outcome, step.ErrorKind, step.Message, step.Next)
	}
	return b.String()
}

// Fallbacks lists the fallbacks of a run, each as "summarizer:kind→fallback".
func (s *System) Fallbacks(run runs.Run) []string {
	var path []string
	for _, step := range s.Run(run).Attempts {
		if step.Next != "" {
			kind := step.ErrorKind
			if kind == "" { // the stage succeeded, but its result was not usable
				var numbers struct {
					Kind pipeline.ErrorKind `json:"kind"`
				}
				if err := json.Unmarshal(step.Numbers, &numbers); err != nil {
					s.T.Fatal(err)
				}
				kind = numbers.Kind
			}
			path = append(path, fmt.Sprintf("%s:%s→%s", step.Summarizer, kind, step.Next))
		}
	}
	return path
}

// History returns the workflow history of a run.
func (s *System) History(run runs.Run) *history.History {
	s.T.Helper()
	run = s.Run(run)
	return s.historyOf(run.WorkflowID, run.TemporalRunID)
}

// HistoryOf returns the history of a workflow's last execution.
func (s *System) HistoryOf(workflowID string) *history.History {
	s.T.Helper()
	return s.historyOf(workflowID, "")
}

func (s *System) historyOf(workflowID, execution string) *history.History {
	s.T.Helper()
	it := s.Client.GetWorkflowHistory(s.T.Context(), workflowID, execution, false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &history.History{}
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			s.T.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}
