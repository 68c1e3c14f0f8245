package workflows_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"precis"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/workflows"
)

var (
	update = flag.Bool("update", false,
		"record histories of this build in testdata/histories, in the folder of -release")
	release = flag.String("release", "next", "with -update: the `folder` for the histories, the release's name")
)

// The bounds of a history, whatever the conversation's size.
const (
	maxUsualEvents   = 60
	maxLongestEvents = 200
	maxHistoryBytes  = 64 << 10
)

// secretWord is in every message of the conversations here: it must never reach a history.
const secretWord = "xyzzy-only-in-the-conversation"

func TestHistoryOfATenMegabyteConversationStaysSmall(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: "<summary>" + secretWord +
		"</summary>"}}})
	s.StartWorker()
	piece := scenario.User(secretWord + " " + strings.Repeat("It was the same log line again. ", 3000))
	var talk []string
	for len(talk)*len(piece) < 10<<20 {
		talk = append(talk, piece, scenario.Assistant("noted "+secretWord))
	}
	ref := s.Create(scenario.Conversation{Window: 200000, Messages: append(talk, scenario.User("go on "+secretWord))})

	run := s.Compact(ref, runs.Request{})

	if run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	checkHistory(t, s.History(run), maxUsualEvents)
}

// The longest way: a list of models that all fail in the way that takes the most steps.
func TestHistoryOfTheLongestLadderStaysSmall(t *testing.T) {
	t.Parallel()
	answers := map[string][]vendorserver.Answer{}
	var list []any
	for _, name := range []string{"m1", "m2", "m3", "m4", "m5", "m6"} {
		list = append(list, map[string]any{"model": "openai/" + name, "context_window": 30000, "max_output": 4000})
		answers[name] = []vendorserver.Answer{
			tooLong, tooLong, tooLong,
			{Text: "<summary>" + secretWord, Finish: "length"},
			{Text: "half", Finish: "length"},
			{Text: " "},
			refuse(400, "invalid_request_error", "", "An assistant message with 'tool_calls' must be followed by "+
				"tool messages responding to each 'tool_call_id'."),
			{Finish: "content_filter", Forever: true},
		}
	}
	s := scenario.New(t, vendorserver.Script{Models: answers})
	s.StartWorker()
	talk := append(scenario.Turns(3, 400)[:12], scenario.User("check "+secretWord), scenario.Call("big", "I look."),
		scenario.Result("big", secretWord+" "+scenario.Distinct("line", 8000)))
	ref := s.Create(scenario.Conversation{Window: 12000, Messages: talk, Settings: map[string]any{"summarizers": list}})

	run := s.Compact(ref, runs.Request{})

	if run.Outcome != precis.OutcomeApplied || !run.Facts.Digest {
		t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	if n := len(s.Vendor.Requests()); n != workflows.MaxModelCalls {
		t.Errorf("%d model calls, the bound is %d", n, workflows.MaxModelCalls)
	}
	checkHistory(t, s.History(run), maxLongestEvents)
}

func checkHistory(t *testing.T, h *history.History, maxEvents int) {
	t.Helper()
	if n := len(h.Events); n >= maxEvents {
		t.Errorf("%d events, the bound is %d", n, maxEvents)
	}
	if n := proto.Size(h); n >= maxHistoryBytes {
		t.Errorf("%d bytes, the bound is %d", n, maxHistoryBytes)
	}
	text := protojson.Format(h)
	raw, err := proto.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{text, string(raw)} {
		if strings.Contains(s, secretWord) {
			t.Error("text of the conversation is in the history")
		}
	}
	t.Logf("%d events, %d bytes", len(h.Events), proto.Size(h))
}

// Histories are recorded by scenarios (-update -release v1.2), a folder for each release, and replayed against today's
// code: a change that would break a running workflow fails here. docs/versioning.md says what to do then.
func TestRecordedHistoriesReplay(t *testing.T) {
	t.Parallel()
	if *update {
		recordHistories(t)
	}
	files, err := filepath.Glob("testdata/histories/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories: %v (run with -update)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
				t.Errorf("today's code does not replay it: %v", err)
			}
		})
	}
}

// What the tests' own runs leave replays too.
func TestFreshHistoryReplays(t *testing.T) {
	t.Parallel()
	for name, record := range recordings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := replayer().ReplayWorkflowHistory(nil, record(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(workflows.CompactionWorkflow, workflow.RegisterOptions{Name: "CompactionWorkflow"})
	return r
}

// recordings are the ways of a run whose histories are kept.
var recordings = map[string]func(t *testing.T) *history.History{
	"applied": func(t *testing.T) *history.History {
		return recorded(t, vendorserver.Script{Answers: []vendorserver.Answer{{Text: good}}}, nil,
			precis.OutcomeApplied)
	},
	"ladder": func(t *testing.T) *history.History {
		script := vendorserver.Script{Models: map[string][]vendorserver.Answer{
			"alpha": forever(tooLong),
			"beta":  {{Text: " "}, text(good)},
		}}
		return recorded(t, script, map[string]any{"summarizers": []any{alpha, beta}}, precis.OutcomeApplied)
	},
	"failed": func(t *testing.T) *history.History {
		return recorded(t, vendorserver.Script{Default: &vendorserver.Answer{Finish: "refusal"}},
			map[string]any{"digest": "never"}, precis.OutcomeFailed)
	},
	"digest": func(t *testing.T) *history.History {
		return recorded(t, vendorserver.Script{Default: &vendorserver.Answer{Finish: "refusal"}}, nil,
			precis.OutcomeApplied)
	},
}

func recorded(t *testing.T, script vendorserver.Script, settings map[string]any, want precis.Outcome) *history.History {
	t.Helper()
	s := scenario.New(t, script)
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 11000, Settings: settings, Messages: scenario.Turns(6, 2000)})
	run := s.Compact(ref, runs.Request{})
	if run.Outcome != want {
		t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
	}
	return s.History(run)
}

var identity = regexp.MustCompile(`"identity": ?"[^"]*"`)

func recordHistories(t *testing.T) {
	t.Helper()
	folder := filepath.Join("testdata/histories", *release)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, record := range recordings {
		data, err := protojson.Marshal(record(t))
		if err != nil {
			t.Fatal(err)
		}
		data = identity.ReplaceAll(data, []byte(`"identity":"worker"`)) // which machine it was is nobody's business
		if err := os.WriteFile(filepath.Join(folder, name+".json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
