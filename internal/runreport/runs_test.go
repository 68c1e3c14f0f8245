package runreport_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func at(seconds int) time.Time {
	return time.Date(2026, 11, 30, 9, 0, seconds, 0, time.FixedZone("CET", 3600))
}

// The JSON of a run is a contract: API.md has its names.
func TestJSON(t *testing.T) {
	t.Parallel()
	full := runs.Run{
		Ref: store.RunRef{Tenant: "default", ID: "run-1"}, Conversation: "talk", WorkflowID: "compaction/default/talk",
		TemporalRunID: "temporal-1", Outcome: precis.OutcomeApplied, Kind: pipeline.TriggerTokens,
		Focus: "the <open> question", Full: true, Marker: "marker-1", ReplayOf: "run-0",
		Versions: json.RawMessage(`{"code": "v1"}`), Trigger: json.RawMessage(`{"used": 1}`),
		Facts: runs.Facts{
			Summarizer: "anthropic/claude-sonnet-5-5", Rung: "shorter_output", PromptName: "claude",
			PromptVersion: "1.2", Mode: pipeline.ModeExplicit, CoversFrom: 1, CoversTo: 40, CoveredMessages: 39,
			CoveredChain: store.Hash{1, 2, 3}, TokensBefore: 9000, TokensAfter: 1200,
			Verification: json.RawMessage(`{"constraints_missing": 1}`),
			Numbers: json.RawMessage(
				`{"trigger": {"used": 9000, "limit": 8000, "window": 10000, "estimated": true, "reason": "full"}}`),
		},
		Usage:   runs.Usage{Input: 100, CachedInput: 20, CacheWrite: 3, Output: 45, Calls: 2, Lost: 1},
		Created: at(0), Started: at(1), Finished: at(5),
		Attempts: []runs.Attempt{{
			Stage: "summarise", Call: 5, Attempt: 2, Rung: "shorter_output", Summarizer: "anthropic/claude-sonnet-5-5",
			Outcome: contract.AttemptFailed, ErrorKind: pipeline.OutputTooLong, Message: "cut off", Next: "half_input",
			Worker: "1@host", Started: at(2), Took: 1500 * time.Millisecond,
			Numbers:   json.RawMessage(`{"input_tokens": 100}`),
			Artifacts: map[contract.ArtifactKind]string{"answer": "abc"},
		}},
	}
	begun := runs.Run{
		Ref: store.RunRef{Tenant: "default", ID: "run-2"}, Conversation: "talk", WorkflowID: "compaction/default/talk",
		Kind: pipeline.TriggerManual, Created: at(0),
	}
	got, err := json.MarshalIndent([]wire.Run{runreport.Of(full), runreport.Of(begun)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/runs.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Error(diff)
	}
}

// No figure that the contract names may be missing, whatever else is added.
func TestNamesOfTheContract(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	typ := reflect.TypeFor[wire.Run]()
	for i := range typ.NumField() {
		names[typ.Field(i).Tag.Get("json")] = true
	}
	for _, name := range []string{
		"id", "conversation", "workflow_id", "temporal_run_id", "outcome", "error_kind", "trigger", "summarizer",
		"prompt", "mode", "digest", "focus", "covers", "tokens_before", "tokens_after", "usage", "verification",
		"started", "finished", "replay_of", "reason",
	} {
		if !names[name] {
			t.Errorf("the run has no %q", name)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
		"test-agent": {{Text: " "}, {Text: "<summary>\nEach part was explained.\n</summary>"}},
	}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Window: 40_000, Messages: scenario.Turns(6, 1000), System: json.RawMessage(`"You explain code."`),
		Tools: json.RawMessage(`[{"name":"read","input_schema":{"type":"object"}}]`),
	})
	run := s.Compact(ref, runs.Request{})
	if run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s: %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	all := runreport.Include{Prompts: true, Answers: true, Summary: true, Context: true, Omitted: true}
	texts, err := runreport.Load(t.Context(), s.Store, run, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(texts.Prompts) != 2 || texts.Prompts[0].Body == "" || texts.Prompts[0].Body == texts.Prompts[1].Body {
		t.Errorf("%d requests to the agent's model were found, two different ones were made", len(texts.Prompts))
	}
	if len(texts.Answers) != 2 || texts.Answers[0].ErrorKind != pipeline.EmptyOutput ||
		texts.Answers[1].ErrorKind != "" {
		t.Errorf("answers %+v", texts.Answers)
	}
	if texts.Summary == "" || texts.Context == "" || texts.Deleted != 0 {
		t.Errorf("summary %q, context of %d bytes, %d deleted", texts.Summary, len(texts.Context), texts.Deleted)
	}
	none, err := runreport.Load(t.Context(), s.Store, run, runreport.Include{})
	if err != nil || !reflect.DeepEqual(*none, wire.RunTexts{}) {
		t.Errorf("asked for nothing: %+v, %v", none, err)
	}

	if err := s.Store.Retention.DeleteContent(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	gone, err := runreport.Load(t.Context(), s.Store, run, all)
	if err != nil || gone.Deleted == 0 || gone.Summary != "" || len(gone.Prompts) != 0 {
		t.Errorf("after the content was deleted: %+v, %v", gone, err)
	}
}
