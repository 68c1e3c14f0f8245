package workflows_test

import (
	"strings"
	"testing"

	"precis/internal/llm/llmtest"
	"precis/internal/scenario"
	"precis/internal/store"
)

func TestCompactsWithAnExternalModel(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, llmtest.Script{Answers: []llmtest.Answer{{Text: "<summary>The parts were read; the last question is open.</summary>"}}})
	s.StartWorker()
	talk := scenario.Talk(6, 2000)
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: talk})

	run := s.Compact(ref, store.RunRequest{})

	if run.Outcome != store.OutcomeApplied {
		t.Fatalf("outcome %s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Steps(run))
	}
	context := s.Context(ref)
	if !strings.Contains(context[0], "The parts were read") {
		t.Errorf("the context begins with %s", context[0])
	}
	if last := context[len(context)-1]; last != talk[len(talk)-1] {
		t.Errorf("the last message is %s, want %s", last, talk[len(talk)-1])
	}
	t.Log(s.Steps(run))
}
