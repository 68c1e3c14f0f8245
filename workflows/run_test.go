package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"precis"
	"precis/internal/store"
	storeruns "precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// untrimmed are settings under which reading a context trims nothing, so that it can be compared with what was
// appended.
func untrimmed() map[string]any { return map[string]any{"tool_result_keep_turns": 0} }

// The agent's own model is asked with the agent's own last request and one instruction behind it, so that the
// provider's prompt cache is hit.
func TestSelfSummaryIsTheAgentsRequestAndOneInstruction(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good}}})
	s.StartWorker()
	system := json.RawMessage(`"You are a  careful agent. <rules> é"`)
	tools := json.RawMessage(`[ {"name":"read","description":"reads","input_schema":{"type":"object",` +
		`"properties":{"path":{"type":"string"}}}} ]`)
	talk := scenario.Turns(6, 2000)
	ref := s.Create(scenario.Conversation{Window: 20000, System: system, Tools: tools, Messages: talk})
	agents := s.Context(ref) // what the agent sends, old tool results trimmed

	run := s.Compact(ref, storeruns.Request{})

	if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != "self" {
		t.Fatalf("%s by %s %s\n%s", run.Outcome, run.Facts.Summarizer, run.Reason, s.Attempts(run))
	}
	body := s.Vendor.Requests()[0].Body
	messages := []byte(`"messages":[` + strings.Join(agents, ",") + `,{"role":"user","content":`)
	for _, part := range [][]byte{system, tools, messages} {
		if !strings.Contains(string(body), string(part)) {
			t.Fatalf("the request does not hold %.300s\nbut is %.600s", part, body)
		}
	}
	rest := string(body)[strings.Index(string(body), string(messages))+len(messages):]
	if n := strings.Count(rest, `"role"`); n != 0 {
		t.Errorf("%d more messages stand behind the instruction: %.300s", n, rest)
	}
	if err := vendorserver.ValidateAnthropic(body); err != nil {
		t.Errorf("the request is not valid: %v", err)
	}
}

func TestSelfOverflowGoesToExternalAtOnce(t *testing.T) {
	t.Parallel()
	for _, refusal := range []vendorserver.Answer{
		tooLong,
		refuse(413, "request_too_large", "", "Request exceeds the maximum size"),
	} {
		s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
			"test-agent": {refusal},
			"beta":       {text(good)},
		}})
		s.StartWorker()
		ref := s.Create(scenario.Conversation{
			Window: 16000, System: json.RawMessage(`"s"`), Tools: json.RawMessage(`[]`),
			Messages: scenario.Turns(6, 2000), Settings: map[string]any{"summarizers": []any{"self", beta}},
		})
		run := s.Compact(ref, storeruns.Request{})
		if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != "openai/beta" {
			t.Errorf("%s by %s\n%s", run.Outcome, run.Facts.Summarizer, s.Attempts(run))
		}
		if path := s.Fallbacks(run); len(path) != 1 || !strings.HasSuffix(path[0], "→next_summarizer") {
			t.Errorf("path %q", path)
		}
	}
}

// Where no other model is listed the agent's own is asked with the rendering, and not with as much as it has just
// refused.
func TestSelfOverflowAsksTheSameModelForLess(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{"test-agent": {
		tooLong,
		text(good),
	}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Window: 16000, System: json.RawMessage(`"s"`), Tools: json.RawMessage(`[]`), Messages: scenario.Turns(6, 2000),
	})
	run := s.Compact(ref, storeruns.Request{})
	requests := s.Vendor.Requests()
	if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != "anthropic/test-agent" || len(requests) != 2 {
		t.Fatalf("%s by %s, %d requests\n%s", run.Outcome, run.Facts.Summarizer, len(requests), s.Attempts(run))
	}
	if requests[1].Tokens > requests[0].Tokens*2/3 {
		t.Errorf("%d tokens were refused, and then %d were sent", requests[0].Tokens, requests[1].Tokens)
	}
}

// A request that would not fit is not sent.
func TestSelfThatCannotFitIsNotAsked(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{"beta": {text(good)}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Window: 12000, System: json.RawMessage(`"s"`), Tools: json.RawMessage(`[]`), Messages: scenario.Turns(6, 2000),
		Settings: map[string]any{"summarizers": []any{"self", beta}},
	})
	run := s.Compact(ref, storeruns.Request{})
	if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != "openai/beta" {
		t.Fatalf("%s by %s\n%s", run.Outcome, run.Facts.Summarizer, s.Attempts(run))
	}
	if path := s.Fallbacks(run); !slices.Equal(path, []string{"self:input_tokens_exceeded→next_summarizer"}) {
		t.Errorf("path %q", path)
	}
	for _, r := range s.Vendor.Requests() {
		if r.Model == "test-agent" {
			t.Error("the agent's model was asked")
		}
	}
}

// What must stay is itself over the limit: the tail is squeezed step by step, and the last user message never.
func TestNoShrinkGoesDownToTheTail(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
	s.StartWorker()
	last := scenario.User("check the log")
	talk := append(scenario.Turns(3, 400)[:12], last, scenario.Call("big", "I look."),
		scenario.Result("big", scenario.Distinct("line", 8000)))
	ref := s.Create(scenario.Conversation{Window: 12000, Messages: talk})

	run := s.Compact(ref, storeruns.Request{})

	if run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	path := s.Fallbacks(run)
	if len(path) == 0 || !strings.Contains(strings.Join(path, " "), "tail_head_and_tail") {
		t.Errorf("path %q\n%s", path, s.Attempts(run))
	}
	if run.Facts.TokensAfter >= 10800 {
		t.Errorf("%d tokens after, the limit is 10800", run.Facts.TokensAfter)
	}
	context := s.Context(ref)
	if !slices.Contains(context, last) {
		t.Errorf("the user's last message is not there: %.400q", context)
	}
	if n := len(s.Vendor.Requests()); n > 2 {
		t.Errorf("%d model calls for the same history", n)
	}
}

// A history that cannot shrink is not compacted for ever.
func TestIneffectiveCompactionIsSaidAndNotApplied(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "SUM"}})
	s.StartWorker()
	big := scenario.User(scenario.Words(3900))
	ref := s.Create(scenario.Conversation{
		Window:   4000,
		Messages: []string{scenario.User("small"), scenario.Assistant("ok"), big},
	})

	run := s.Compact(ref, storeruns.Request{Kind: pipeline.TriggerTokens})

	if run.Outcome == precis.OutcomeFailed {
		t.Errorf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	if run.ErrorKind != pipeline.NoShrink || run.Reason == "" {
		t.Errorf("kind %q, reason %q", run.ErrorKind, run.Reason)
	}
	if n := len(s.Vendor.Requests()); n > 2 {
		t.Errorf("%d model calls", n)
	}
	if context := s.Context(ref); context[len(context)-1] != big {
		t.Errorf("the user's message changed")
	}
}

// Temporal's and Postgres' single flight together: however many ask, one run and one model call.
func TestManyCallersShareOneRun(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good, Gate: gate}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})

	const callers = 60
	runs := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			run, _, err := s.Store.Runs.Request(t.Context(), ref, storeruns.Request{Kind: pipeline.TriggerManual})
			if err != nil {
				t.Error(err)
				return
			}
			runs[i] = run.Ref.ID
			if _, err := precis.Wait(t.Context(), s.Client, s.Launch(run)); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	wg.Wait()
	slices.Sort(runs)
	if n := len(slices.Compact(runs)); n != 1 {
		t.Errorf("%d runs", n)
	}
	if n := len(s.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}
}

// What arrives while the summary is written is in the tail, verbatim.
func TestMessagesInMidFlightStay(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good, Gate: gate}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	run := s.Request(ref, storeruns.Request{})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	late := []string{scenario.Assistant("an answer"), scenario.User("MID-FLIGHT")}
	s.Append(ref, late...)
	gate.Open()
	if run = s.Wait(run); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	context := s.Context(ref)
	if got := context[len(context)-2:]; !slices.Equal(got, late) {
		t.Errorf("the context ends in %q", got)
	}
}

// An undo during a run and the run end in one of the two serial orders.
func TestUndoDuringARunSupersedesIt(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{
		{Text: good},
		{Text: "<summary>second</summary>", Gate: gate},
	}})
	s.StartWorker()
	talk := scenario.Turns(6, 2000)
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: talk})
	if run := s.Compact(ref, storeruns.Request{}); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s", run.Outcome, run.Reason)
	}
	s.Append(ref, append([]string{scenario.Assistant("answered")}, scenario.Turns(3, 2000)...)...)
	run := s.Request(ref, storeruns.Request{})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	if run = s.Wait(run); run.Outcome != precis.OutcomeSuperseded {
		t.Errorf("%s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	if context := s.Context(ref); context[0] != talk[0] {
		t.Errorf("the context begins with %.200s", context[0])
	}
}

// A cancelled run leaves nothing, and the next one works.
func TestCancelledRunLeavesTheContextAsItWas(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Hang: true}, {Text: good}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	before := s.Context(ref)
	run := s.Request(ref, storeruns.Request{})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	run = s.Run(run)
	if err := s.Client.CancelWorkflow(t.Context(), run.WorkflowID, ""); err != nil {
		t.Fatal(err)
	}
	result, err := precis.Wait(t.Context(), s.Client, s.Launch(run))
	if err != nil || result.Outcome != precis.OutcomeCancelled {
		t.Errorf("the waiting caller got %+v, %v", result, err)
	}
	if run = s.Run(run); run.Outcome != precis.OutcomeCancelled {
		t.Errorf("%s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	if !slices.Equal(before, s.Context(ref)) {
		t.Error("the context changed")
	}
	if run := s.Compact(ref, storeruns.Request{}); run.Outcome != precis.OutcomeApplied {
		t.Errorf("the next run: %s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
}

// Compacting again what is compacted makes no model call and says why.
func TestNothingToDoMakesNoCall(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	if run := s.Compact(ref, storeruns.Request{}); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s", run.Outcome, run.Reason)
	}
	for range 3 {
		run := s.Compact(ref, storeruns.Request{})
		if run.Outcome != precis.OutcomeSkipped || run.Reason != pipeline.NothingAlreadyCompacted {
			t.Errorf("%s %q", run.Outcome, run.Reason)
		}
	}
	empty := s.Create(scenario.Conversation{Window: 16000})
	if run := s.Compact(empty, storeruns.Request{}); run.Outcome != precis.OutcomeSkipped ||
		run.Reason != pipeline.NothingEmpty {
		t.Errorf("empty: %s %q", run.Outcome, run.Reason)
	}
	one := s.Create(scenario.Conversation{Window: 16000, Messages: []string{scenario.User("hi")}})
	if run := s.Compact(one, storeruns.Request{}); run.Outcome != precis.OutcomeSkipped ||
		run.Reason != pipeline.NothingAllProtected {
		t.Errorf("one message: %s %q", run.Outcome, run.Reason)
	}
	if n := len(s.Vendor.Requests()); n != 1 {
		t.Errorf("%d model calls", n)
	}
}

// A digest is a stopgap: once a model answers again, its summary of the untouched messages replaces it.
func TestModelReplacesADigestFromTheUntouchedMessages(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Finish: "refusal"}, {Text: good}}})
	s.StartWorker()
	talk := scenario.Turns(6, 2000)
	settings := untrimmed()
	settings["summarizers"] = []any{alpha}
	ref := s.Create(scenario.Conversation{Window: 11000, Messages: talk, Settings: settings})
	if run := s.Compact(ref, storeruns.Request{}); run.Outcome != precis.OutcomeApplied || !run.Facts.Digest {
		t.Fatalf("%s digest %t %s\n%s%s", run.Outcome, run.Facts.Digest, run.Reason, s.Attempts(run), run.Facts.Numbers)
	}
	run := s.Compact(ref, storeruns.Request{})
	if run.Outcome != precis.OutcomeApplied || run.Facts.Digest {
		t.Fatalf("%s digest %t %s\n%s", run.Outcome, run.Facts.Digest, run.Reason, s.Attempts(run))
	}
	requests := s.Vendor.Requests()
	if asked := string(requests[len(requests)-1].Body); !strings.Contains(asked, "r2_7 ") {
		t.Errorf("the model did not see the untouched messages: %.500s", asked)
	}
	context := s.Context(ref)
	if !strings.Contains(context[0], goodMark) || context[len(context)-1] != talk[len(talk)-1] {
		t.Errorf("context %.300q", context)
	}
	for range 2 {
		if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(s.Context(ref), talk) {
		t.Error("two undos do not give the full history back")
	}
}

// By hand a run is refused while a reply is being generated; an automatic one parks its summary.
func TestOpenReplyIsNeverCompactedUnder(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 11000, Messages: scenario.Turns(6, 2000)})
	if _, err := s.Store.Replies.Open(t.Context(), ref, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Store.Runs.Request(t.Context(), ref,
		storeruns.Request{Kind: pipeline.TriggerManual}); store.ConflictReasonOf(err) != store.ConflictReplyOpen {
		t.Errorf("by hand: %v", err)
	}
	before := s.Context(ref)
	run := s.Compact(ref, storeruns.Request{Kind: pipeline.TriggerTokens})
	if run.Outcome != precis.OutcomePrepared {
		t.Errorf("automatic: %s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	if !slices.Equal(before, s.Context(ref)) {
		t.Error("the context changed under the reply")
	}
}

// Appending the past again and again must not make a run of its own start twice; the same run asked for twice is one.
func TestStartIsRefusedWhileTheWorkflowRuns(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good, Gate: gate}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	run := s.Request(ref, storeruns.Request{})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := precis.Start(t.Context(), s.Client,
		s.Launch(run)); !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		t.Errorf("a second start: %v", err)
	}
	other := s.Launch(run)
	other.Input.Run = "another"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := precis.Wait(ctx, s.Client, other); err == nil {
		t.Error("waiting for a run that this workflow does not execute was accepted")
	}
	gate.Open()
	s.Wait(run)
}

// Chained compactions fold the summary before in, and every one can be taken back.
func TestCompactionsChainAndUndo(t *testing.T) {
	t.Parallel()
	var answers []vendorserver.Answer
	for i := range 3 {
		answers = append(answers, vendorserver.Answer{Text: fmt.Sprintf("<summary>SUMMARY-%d of it all</summary>",
			i+1)})
	}
	s := scenario.New(t, vendorserver.Script{Answers: answers})
	s.StartWorker()
	all := scenario.Turns(4, 1600)
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: all, Settings: untrimmed()})
	var before [][]string
	for i := range 3 {
		before = append(before, s.Context(ref))
		if run := s.Compact(ref, storeruns.Request{}); run.Outcome != precis.OutcomeApplied {
			t.Fatalf("round %d: %s %s\n%s", i, run.Outcome, run.Reason, s.Attempts(run))
		}
		context := strings.Join(s.Context(ref), "\n")
		for j := range 3 {
			if got, want := strings.Count(context, fmt.Sprintf("SUMMARY-%d", j+1)),
				map[bool]int{true: 1}[i == j]; got != want {
				t.Errorf("round %d: SUMMARY-%d is there %d times", i+1, j+1, got)
			}
		}
		if i > 0 {
			requests := s.Vendor.Requests()
			if asked := string(requests[len(requests)-1].Body); strings.Count(asked,
				fmt.Sprintf("SUMMARY-%d", i)) != 1 {
				t.Errorf("round %d: the summary before is not in the request once", i+1)
			}
		}
		if i < 2 {
			more := append([]string{scenario.Assistant("done with it")}, scenario.Turns(3, 1600)...)
			s.Append(ref, more...)
			all = append(all, more...)
		}
	}
	for i := 2; i >= 0; i-- {
		if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
			t.Fatal(err)
		}
		got := s.Context(ref)
		if want := before[i]; !slices.Equal(got[:len(want)], want) {
			t.Errorf("undo %d does not give back what was before: %.200q\nwant %.200q", i+1, got, want)
		}
	}
	if !slices.Equal(s.Context(ref), all) {
		t.Error("the full history is not back byte for byte")
	}
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err == nil {
		t.Error("a fourth undo was accepted")
	}
}

// What overflows is the step that the model has not read. There is nothing to summarize, and the tail
// is squeezed without a model.
func TestOverflowInTheLastStepSqueezesTheTailWithoutAModel(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
	s.StartWorker()
	ask := scenario.User("check the log")
	ref := s.Create(scenario.Conversation{Window: 12000, Messages: []string{
		ask, scenario.Call("big", "I look."), scenario.Result("big", scenario.Distinct("line", 8000)),
	}})
	run := s.Compact(ref, storeruns.Request{Kind: pipeline.TriggerTokens})
	if run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	context := s.Context(ref)
	if len(context) != 3 || context[0] != ask || !strings.Contains(context[2], "chars omitted") ||
		!strings.Contains(context[2], `"tool_use_id":"big"`) {
		t.Errorf("context %.300q", context)
	}
	if run.Facts.TokensAfter >= 10800 || len(s.Vendor.Requests()) != 0 {
		t.Errorf("%d tokens after, %d model calls", run.Facts.TokensAfter, len(s.Vendor.Requests()))
	}
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	if full := s.Context(ref); strings.Contains(full[2], "chars omitted") {
		t.Error("the undo does not give the whole result back")
	}
}
