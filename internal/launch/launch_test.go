package launch_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"precis"
	"precis/internal/config"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

const summary = "<summary>\nEach part was explained.\n</summary>"

// held is a script whose answers wait for the gate.
func held() (vendorserver.Script, *vendorserver.Gate) {
	gate := vendorserver.NewGate()
	return vendorserver.Script{Default: &vendorserver.Answer{Text: summary, Gate: gate}}, gate
}

func talk(s *scenario.System) store.ConversationRef {
	return s.Create(scenario.Conversation{Window: 8000, Messages: scenario.Turns(6, 1000)})
}

func launcher(s *scenario.System) launch.Launcher {
	return launch.Launcher{Store: s.Store, Client: s.Client, Config: s.Config}
}

func ask(t *testing.T, l launch.Launcher, ref store.ConversationRef, req runs.Request) runs.Run {
	t.Helper()
	run, attached, err := launch.Ask(t.Context(), l.Store, l.Config, ref, req)
	if err != nil {
		t.Fatal(err)
	}
	if attached {
		t.Fatalf("the request attached to run %s", run.Ref.ID)
	}
	return run
}

func TestAskAndWait(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: summary}})
	s.StartWorker()
	l, ref := launcher(s), talk(s)
	l.Config.Settings.SummaryMaxTokens = 4321

	run := ask(t, l, ref, runs.Request{Focus: "part 3"})
	if run.Kind != pipeline.TriggerManual {
		t.Errorf("the trigger is %q", run.Kind)
	}
	var settings config.Settings
	if err := json.Unmarshal(run.Settings, &settings); err != nil || settings.SummaryMaxTokens != 4321 {
		t.Errorf("the run does not hold the settings of its moment: %s, %v", run.Settings, err)
	}
	var versions map[string]string
	if err := json.Unmarshal(run.Versions, &versions); err != nil || versions["code"] == "" ||
		versions["config"] == "" {
		t.Errorf("versions %s, %v", run.Versions, err)
	}
	again, attached, err := launch.Ask(t.Context(), l.Store, l.Config, ref, runs.Request{})
	if err != nil || !attached || again.Ref != run.Ref {
		t.Errorf("asked while a run is unfinished: %v, attached %v, %v", again.Ref, attached, err)
	}

	// Two callers wait for the same run.
	type end struct {
		run runs.Run
		err error
	}
	ends := make(chan end, 2)
	for range 2 {
		go func() {
			got, err := l.Wait(t.Context(), run)
			ends <- end{got, err}
		}()
	}
	for range 2 {
		if e := <-ends; e.err != nil || e.run.Outcome != precis.OutcomeApplied || e.run.Ref != run.Ref {
			t.Errorf("waited: %+v, %v", e.run, e.err)
		}
	}

	// At once again: the workflow of the first may still be closing.
	second := ask(t, l, ref, runs.Request{Focus: "part 4"})
	if got, err := l.Wait(t.Context(), second); err != nil || got.Outcome != precis.OutcomeApplied {
		t.Errorf("the second run: %s %s, %v", got.Outcome, got.Reason, err)
	}
}

func TestWaitBehindAnEarlierRun(t *testing.T) {
	t.Parallel()
	script, gate := held()
	s := scenario.New(t, script)
	s.StartWorker()
	l, ref := launcher(s), talk(s)

	// The first run's row is closed while its workflow still waits for the model.
	first := ask(t, l, ref, runs.Request{})
	go func() { _, _ = precis.Wait(t.Context(), s.Client, s.Launch(first)) }()
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Runs.Finish(t.Context(), first.Ref, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
		t.Fatal(err)
	}
	second := ask(t, l, ref, runs.Request{})
	ended := make(chan runs.Run, 1)
	go func() {
		got, err := l.Wait(t.Context(), second)
		if err != nil {
			t.Error(err)
		}
		ended <- got
	}()
	select {
	case got := <-ended:
		t.Fatalf("the second run ended %s before the first one's workflow", got.Outcome)
	case <-time.After(500 * time.Millisecond):
	}
	gate.Open()
	if got := <-ended; got.Outcome != precis.OutcomeApplied {
		t.Errorf("the second run ended %s: %s", got.Outcome, got.Reason)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	script, _ := held()
	s := scenario.New(t, script)
	l := launcher(s)

	// No worker: it has not begun.
	run := ask(t, l, talk(s), runs.Request{})
	got, err := l.Cancel(t.Context(), run)
	if err != nil || got.Outcome != precis.OutcomeCancelled {
		t.Errorf("before it began: %s, %v", got.Outcome, err)
	}

	// In the middle of a model call, with somebody waiting.
	s.StartWorker()
	run = ask(t, l, talk(s), runs.Request{})
	waited := make(chan error, 1)
	go func() {
		got, err := l.Wait(t.Context(), run)
		if err == nil && got.Outcome != precis.OutcomeCancelled {
			err = errors.New("the waiting caller got " + string(got.Outcome))
		}
		waited <- err
	}()
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got, err = l.Cancel(t.Context(), run); err != nil || got.Outcome != precis.OutcomeCancelled {
		t.Errorf("in a model call: %s, %v", got.Outcome, err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if again, err := l.Cancel(t.Context(), run); err != nil || again.Outcome != precis.OutcomeCancelled {
		t.Errorf("once more: %s, %v", again.Outcome, err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{})
	l := launcher(s)
	run := ask(t, l, talk(s), runs.Request{}) // and no worker
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := l.Wait(ctx, run); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waited: %v", err)
	}
	if now := s.Run(run); now.Outcome != "" {
		t.Errorf("the run ended %s", now.Outcome)
	}
}
