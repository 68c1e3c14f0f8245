package workflows_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"precis"
	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/temporalclient"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
	"precis/internal/worker"
)

// workerVariable makes this test binary a worker process, which a test can kill.
const workerVariable = "PRECIS_TEST_WORKER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerVariable); spec != "" {
		if err := runWorker(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(stacktest.Main{M: m}.Run())
}

// workerSpec is the configuration of a worker process.
type workerSpec struct {
	Config config.Config `json:"config"`
	// Activity is where it stops for ever: before its work, or after it and before Temporal hears of it.
	Activity string `json:"activity"`
	After    bool   `json:"after"`
}

// pausedLine is what the process prints when it has stopped.
const pausedLine = "paused"

func runWorker(raw string) error {
	var spec workerSpec
	if err := json.Unmarshal([]byte(raw), &spec); err != nil {
		return err
	}
	ctx := context.Background()
	st, err := store.Open(ctx, spec.Config.DatabaseURL, store.Options{})
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	client, err := temporalclient.Dial(ctx, spec.Config.Temporal, log)
	if err != nil {
		return err
	}
	return worker.Run(ctx, worker.Options{
		Store: st, Client: client, Config: spec.Config, Log: log,
		Interceptors: []interceptor.WorkerInterceptor{&pauser{spec: spec}},
	})
}

type pauser struct {
	interceptor.WorkerInterceptorBase
	spec workerSpec
}

func (p *pauser) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	in := &pauserInbound{spec: p.spec}
	in.Next = next
	return in
}

type pauserInbound struct {
	interceptor.ActivityInboundInterceptorBase
	spec workerSpec
}

func (p *pauserInbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	here := activity.GetInfo(ctx).ActivityType.Name == p.spec.Activity
	if here && !p.spec.After {
		pause()
	}
	result, err := p.Next.ExecuteActivity(ctx, in)
	if here && p.spec.After {
		pause()
	}
	return result, err
}

func pause() {
	fmt.Println(pausedLine)
	select {}
}

// startProcess runs a worker process until it has stopped at the point of its spec.
func startProcess(t *testing.T, spec workerSpec) *exec.Cmd {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(raw))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	paused := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == pausedLine {
				paused <- true
				return
			}
		}
		paused <- false
	}()
	select {
	case ok := <-paused:
		if !ok {
			_ = cmd.Wait()
			t.Fatalf("the worker ended before it came to %s: %s", spec.Activity, stderr.String())
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("the worker did not come to %s", spec.Activity)
	}
	return cmd
}

// A worker that is killed in any stage, before its work or between the work and the word to Temporal, costs
// time and nothing else: another worker continues, one marker, and an answer that was complete is not asked for
// again.
func TestKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"Trigger", "Summarizer", "Partition", "Slim", "Summarise", "Reassemble"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%t", stage, after), func(t *testing.T) {
				t.Parallel()
				s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good}}})
				talk := scenario.Turns(6, 2000)
				ref := s.Create(scenario.Conversation{Window: 16000, Messages: talk, Settings: untrimmed()})
				run := s.Request(ref, runs.Request{})
				worker := startProcess(t, workerSpec{Config: s.Config, Activity: stage, After: after})
				if applied := stage == "Reassemble" && after; !applied && s.Context(ref)[0] != talk[0] {
					t.Error("the context has changed before the run has ended")
				}
				if err := worker.Process.Kill(); err != nil { // SIGKILL
					t.Fatal(err)
				}

				s.StartWorker()
				run = s.Wait(run)

				if run.Outcome != precis.OutcomeApplied {
					t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
				}
				markers, err := s.Store.Markers.List(t.Context(), ref)
				if err != nil || len(markers) != 1 || markers[0].Status != runs.MarkerApplied {
					t.Errorf("markers %+v, %v", markers, err)
				}
				if n := len(s.Vendor.Requests()); n != 1 {
					t.Errorf("%d model calls\n%s", n, s.Attempts(run))
				}
				if usage := run.Usage; usage.Calls != 1 || usage.Lost != 0 {
					t.Errorf("booked %+v", usage)
				}
				context := s.Context(ref)
				if !strings.Contains(context[0], goodMark) || context[len(context)-1] != talk[len(talk)-1] {
					t.Errorf("context %.300q", context)
				}
			})
		}
	}
}

// Killed while the model writes: that answer is lost, and the ledger says that it was perhaps paid for.
func TestKilledWorkerInMidCall(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Hang: true}, {Text: good}}})
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	run := s.Request(ref, runs.Request{})
	raw, err := json.Marshal(workerSpec{Config: s.Config})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(raw))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.StartWorker()
	if run = s.Wait(run); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	if run.Usage.Calls != 2 || run.Usage.Lost != 1 {
		t.Errorf("booked %+v", run.Usage)
	}
}

// A deploy during a model call is not a cancellation: the run continues with the next worker.
func TestStoppedWorkerHandsItsRunOn(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Hang: true}, {Text: good}}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 16000, Messages: scenario.Turns(6, 2000)})
	run := s.Request(ref, runs.Request{})
	if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.StopWorker()
	s.StartWorker()
	if run = s.Wait(run); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
}
