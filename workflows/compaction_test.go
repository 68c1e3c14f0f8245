package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"precis"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

func TestCompactsWithAnExternalModel(t *testing.T) {
	t.Parallel()
	s := scenario.New(
		t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: "<summary>The parts were read; the last " +
			"question is " +
			"open.</summary>"}}})
	s.StartWorker()
	talk := scenario.Turns(6, 2000)
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: talk})

	run := s.Compact(ref, runs.Request{})

	if run.Outcome != precis.OutcomeApplied {
		t.Fatalf("outcome %s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	context := s.Context(ref)
	if !strings.Contains(context[0], "The parts were read") {
		t.Errorf("the context begins with %s", context[0])
	}
	if last := context[len(context)-1]; last != talk[len(talk)-1] {
		t.Errorf("the last message is %s, want %s", last, talk[len(talk)-1])
	}
	events, err := s.Store.Timeline.After(t.Context(), ref, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	reported := slices.ContainsFunc(events, func(e timeline.Event) bool {
		return e.Kind == timeline.Stage && strings.Contains(string(e.Data), "not_self")
	})
	if !reported {
		t.Error("nothing says that another than the agent's own model was asked")
	}
}
