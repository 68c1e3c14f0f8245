package activities_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"precis"
	"precis/activities"
	"precis/internal/contract"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

const summary = `<summary>
## Task
The user asked what each part of the file does. Parts were read one after another with the read tool.

## State
Every part up to the last one has been described. The last question has not been answered.
</summary>`

// bench runs single stages of a run, as Temporal would, on a real database and a scripted vendor.
type bench struct {
	*scenario.System
	env *testsuite.TestActivityEnvironment
	run runs.Run
}

func newBench(t *testing.T, answers ...vendorserver.Answer) *bench {
	t.Helper()
	b := &bench{System: scenario.New(t, vendorserver.Script{Answers: answers})}
	acts, err := activities.New(b.Store, b.Config, slog.New(slog.DiscardHandler), "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var suite testsuite.WorkflowTestSuite
	b.env = suite.NewTestActivityEnvironment()
	for stage, work := range map[contract.Stage]any{
		contract.StageTrigger: acts.Trigger, contract.StageSummarizer: acts.Summarizer,
		contract.StagePartition: acts.Partition, contract.StageSlim: acts.Slim, contract.StageSummarize: acts.Summarize,
		contract.StageReassemble: acts.Reassemble, contract.StageFinish: acts.Finish,
	} {
		b.env.RegisterActivityWithOptions(work, activity.RegisterOptions{Name: stage.Activity()})
	}
	ref := b.Create(scenario.Conversation{Window: 20_000, Messages: scenario.Turns(8, 1500)})
	b.run = b.Request(ref, runs.Request{})
	return b
}

// ref names an activity of the run by its number.
func (b *bench) ref(call int) contract.Ref {
	return contract.Ref{
		Tenant: b.run.Ref.Tenant, Conversation: b.run.Conversation, Run: b.run.Ref.ID, Call: call,
		Rung: contract.RungFirst,
	}
}

// do runs a stage.
func do[Result any](t *testing.T, b *bench, stage contract.Stage, request any) (Result, error) {
	t.Helper()
	var result Result
	value, err := b.env.ExecuteActivity(stage.Activity(), request)
	if err != nil {
		return result, err
	}
	if err := value.Get(&result); err != nil {
		t.Fatal(err)
	}
	return result, nil
}

// must is do for a stage that has to succeed.
func must[Result any](t *testing.T, b *bench, stage contract.Stage, request any) Result {
	t.Helper()
	result, err := do[Result](t, b, stage, request)
	if err != nil {
		t.Fatalf("stage %s: %v", stage, err)
	}
	return result
}

// prepared runs the stages up to the input of the first summarizer.
func (b *bench) prepared(t *testing.T) contract.SummarizeRequest {
	t.Helper()
	trigger := must[contract.TriggerResult](t, b, contract.StageTrigger, contract.TriggerRequest{Ref: b.ref(1)})
	list := must[contract.SummarizerResult](t, b, contract.StageSummarizer,
		contract.SummarizerRequest{Ref: b.ref(2), Head: trigger.Head})
	plan := must[contract.PartitionResult](t, b, contract.StagePartition,
		contract.PartitionRequest{Ref: b.ref(3), Head: trigger.Head, ModelAsked: true})
	input := must[contract.SlimResult](t, b, contract.StageSlim,
		contract.SlimRequest{Ref: b.ref(4), Plan: plan.Plan, Summarizer: list.Ladder[0], Factor: 1})
	return contract.SummarizeRequest{
		Ref: b.ref(5), Plan: plan.Plan, Input: input.Input, MaxOutput: input.MaxOutput, Summarizer: list.Ladder[0],
	}
}

type recordedAttempt struct {
	Stage     contract.Stage
	Call      int
	Outcome   contract.AttemptOutcome
	ErrorKind pipeline.ErrorKind
}

func (b *bench) attempts() []recordedAttempt {
	var list []recordedAttempt
	for _, a := range b.Run(b.run).Attempts {
		list = append(list, recordedAttempt{Stage: a.Stage, Call: a.Call, Outcome: a.Outcome, ErrorKind: a.ErrorKind})
	}
	return list
}

func TestStagesRecordTheirAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t, vendorserver.Answer{Text: summary})
	request := b.prepared(t)
	written := must[contract.SummarizeResult](t, b, contract.StageSummarize, request)
	ended := must[contract.ReassembleResult](t, b, contract.StageReassemble, contract.ReassembleRequest{
		Ref: b.ref(6), Plan: request.Plan, Summary: written.Summary, Summarizer: request.Summarizer, Manual: true,
	})

	if ended.Outcome != precis.OutcomeApplied || ended.TokensAfter >= ended.TokensBefore {
		t.Errorf("the run ended %s with %d tokens of %d", ended.Outcome, ended.TokensAfter, ended.TokensBefore)
	}
	want := []recordedAttempt{
		{Stage: contract.StageTrigger, Call: 1, Outcome: contract.AttemptOK},
		{Stage: contract.StageSummarizer, Call: 2, Outcome: contract.AttemptOK},
		{Stage: contract.StagePartition, Call: 3, Outcome: contract.AttemptOK},
		{Stage: contract.StageSlim, Call: 4, Outcome: contract.AttemptOK},
		{Stage: contract.StageSummarize, Call: 5, Outcome: contract.AttemptOK},
		{Stage: contract.StageReassemble, Call: 6, Outcome: contract.AttemptOK},
	}
	if diff := cmp.Diff(want, b.attempts()); diff != "" {
		t.Errorf("the recorded attempts differ (-want +got):\n%s", diff)
	}
}

func TestAttemptsRecordTheirNumbers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	request := b.prepared(t)
	run := b.Run(b.run)
	var trigger contract.TriggerNumbers
	var list contract.SummarizerNumbers
	var slim contract.SlimNumbers
	for call, numbers := range map[int]any{1: &trigger, 2: &list, 4: &slim} {
		if err := json.Unmarshal(run.Attempts[call-1].Numbers, numbers); err != nil {
			t.Fatalf("the numbers of call %d: %v", call, err)
		}
	}
	if trigger.Notes.Input == nil || trigger.Notes.Input.Window != 20_000 || trigger.Notes.Given.TenantBudget == nil {
		t.Errorf("the trigger noted %+v", trigger.Notes)
	}
	if diff := cmp.Diff([]pipeline.Summarizer{request.Summarizer}, list.Result.Ladder[:1]); diff != "" {
		t.Errorf("the first summarizer differs (-want +got):\n%s", diff)
	}
	if list.Notes.Given.Summarizers == nil || list.Notes.Given.Self == nil || !list.Notes.Given.Self.Allowed {
		t.Errorf("the choice of summarizers rests on %+v", list.Notes.Given)
	}
	if slim.Result.Input != request.Input || slim.Result.Tokens == 0 {
		t.Errorf("the input is %+v, want %s", slim.Result, request.Input)
	}
}

// A worker that dies after its work leaves the result; the retry takes it and pays for nothing twice.
func TestARetryTakesTheResultThatIsThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, vendorserver.Answer{Text: summary})
	request := b.prepared(t)
	first := must[contract.SummarizeResult](t, b, contract.StageSummarize, request)
	second := must[contract.SummarizeResult](t, b, contract.StageSummarize, request)

	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second result differs (-first +second):\n%s", diff)
	}
	if n := len(b.Vendor.Requests()); n != 1 {
		t.Errorf("the model was called %d times", n)
	}
	attempts := b.attempts()
	if got := attempts[len(attempts)-1].Outcome; got != contract.AttemptReused {
		t.Errorf("the second attempt is recorded as %s", got)
	}
}

func TestAFailedAttemptHasItsKind(t *testing.T) {
	t.Parallel()
	b := newBench(t, vendorserver.Answer{Status: 401})
	_, err := do[contract.SummarizeResult](t, b, contract.StageSummarize, b.prepared(t))

	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != string(pipeline.Auth) || !app.NonRetryable() {
		t.Errorf("got %v, want a permanent error of type %s", err, pipeline.Auth)
	}
	attempts := b.attempts()
	want := recordedAttempt{
		Stage: contract.StageSummarize, Call: 5, Outcome: contract.AttemptFailed, ErrorKind: pipeline.Auth,
	}
	if diff := cmp.Diff(want, attempts[len(attempts)-1]); diff != "" {
		t.Errorf("the recorded attempt differs (-want +got):\n%s", diff)
	}
}

// A workflow that is started again for a run that has ended goes through no stage.
func TestARunThatHasEndedIsSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	must[contract.FinishResult](t, b, contract.StageFinish,
		contract.FinishRequest{Ref: b.ref(1), Outcome: precis.OutcomeSkipped, Reason: "for a test"})
	got := must[contract.TriggerResult](t, b, contract.StageTrigger, contract.TriggerRequest{Ref: b.ref(2)})
	if want := "the run has ended skipped already"; got.Skip != want {
		t.Errorf("the trigger says %q, want %q", got.Skip, want)
	}
}
