package workflows_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// replay replays a run, waits until the replay has ended, and returns it with its comparison.
func replay(t *testing.T, s *scenario.System, run runs.Run,
	q launch.ReplayRequest,
) (runs.Run, wire.RunComparison) {
	t.Helper()
	asked, attached, err := launch.AskReplay(t.Context(), s.Store, s.Config, run.Ref, q)
	if err != nil || attached {
		t.Fatalf("attached %t, %v", attached, err)
	}
	got := s.Wait(asked)
	c, err := runreport.LoadComparison(t.Context(), s.Store, got)
	if err != nil || c == nil {
		t.Fatalf("%s %s %s: no comparison, %v\n%s", got.Outcome, got.ErrorKind, got.Reason, err, s.Attempts(got))
	}
	return got, *c
}

// wantIdenticalReplay checks that a replay from the record reproduces a run byte for byte, calls no model, and does not
// change the conversation.
func wantIdenticalReplay(t *testing.T, s *scenario.System, run runs.Run) {
	t.Helper()
	ref := store.ConversationRef{Tenant: scenario.Tenant, ID: run.Conversation}
	requests, events, before := len(s.Vendor.Requests()), len(eventsOf(t, s, ref)), strings.Join(s.Context(ref), "\n")

	got, c := replay(t, s, run, launch.ReplayRequest{})

	if got.Outcome != precis.OutcomeReplayed || got.Replay.Identical == nil || !*got.Replay.Identical || !c.Identical ||
		c.First != nil {
		t.Errorf("%s %s: identical %t, first difference %+v of %d\n%s\nthe original:\n%s", got.Outcome, got.Reason,
			c.Identical, c.First, c.Differences, s.Attempts(got), s.Attempts(run))
	}
	if (run.Facts.Context != "") != (c.Context != nil) || c.Context != nil &&
		(!c.Context.Identical || c.Context.SHA256 != run.Facts.Context) {
		t.Errorf("the context is %+v, that of the run %q", c.Context, run.Facts.Context)
	}
	if was, is := walked(run), walked(got); was != is {
		t.Errorf("the original's attempts were\n%s\nthose of the replay are\n%s", was, is)
	}
	if n := len(s.Vendor.Requests()); n != requests {
		t.Errorf("%d model calls", n-requests)
	}
	if got.Usage != (runs.Usage{}) || got.Marker != "" || got.ReplayOf != run.Ref.ID {
		t.Errorf("usage %+v, marker %q, replay of %q", got.Usage, got.Marker, got.ReplayOf)
	}
	if n := len(eventsOf(t, s, ref)); n != events {
		t.Errorf("%d events of the replay are in the timeline", n-events)
	}
	if after := strings.Join(s.Context(ref), "\n"); after != before {
		t.Error("the replay changed the context")
	}
	// A second replay is identical too.
	if _, again := replay(t, s, run, launch.ReplayRequest{}); !again.Identical {
		t.Errorf("the second time: %+v", again.First)
	}
}

func eventsOf(t *testing.T, s *scenario.System, ref store.ConversationRef) []timeline.Event {
	t.Helper()
	list, err := s.Store.Timeline.After(t.Context(), ref, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// walked lists a run's way down the ladder: each call once, without the finish stage.
func walked(run runs.Run) string {
	var b strings.Builder
	for i, s := range run.Attempts {
		last := i+1 == len(run.Attempts) || run.Attempts[i+1].Call != s.Call
		if last && s.Stage != "finish" {
			b.WriteString(string(s.Stage) + " " + string(s.Rung) + " " + s.Summarizer + " → " + string(s.Next) + "\n")
		}
	}
	return b.String()
}

// sql executes a statement on the database of a scenario, past the store.
func sql(t *testing.T, s *scenario.System, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.Config.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// putArtifact stores an artifact of the run's conversation and returns its hash.
func putArtifact(t *testing.T, s *scenario.System, run runs.Run, kind contract.ArtifactKind, text string) string {
	t.Helper()
	a, err := s.Store.Artifacts.Put(t.Context(), store.ConversationRef{Tenant: scenario.Tenant, ID: run.Conversation},
		kind, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a.SHA256
}

// tamperings are changes to the record of a run, with the first difference that its replay reports.
var tamperings = []struct {
	name   string
	change func(t *testing.T, s *scenario.System, run runs.Run)
	want   wire.RunDifference // without its call
}{
	{
		name: "another answer", change: func(t *testing.T, s *scenario.System, run runs.Run) {
			data, err := s.Store.ModelCalls.Answer(t.Context(), run.Ref, 5)
			if err != nil {
				t.Fatal(err)
			}
			other := putArtifact(t, s, run, "answer",
				strings.ReplaceAll(string(data), "The parts were read", "The parts were lost"))
			sql(t, s, `UPDATE usage_ledger SET answer_sha256 = decode($1, 'hex') WHERE run = $2`, other, run.Ref.ID)
		},
		want: wire.RunDifference{
			Stage: "summarise", Summarizer: "anthropic/alpha", What: "answer",
			Recorded: "The parts were read", Replayed: "The parts were lost",
		},
	},
	{
		name: "other settings", change: func(t *testing.T, s *scenario.System, run runs.Run) {
			settings := s.View(store.ConversationRef{Tenant: scenario.Tenant, ID: run.Conversation}).Settings
			settings.Trigger.Fraction = 0.5
			raw, err := json.Marshal(settings)
			if err != nil {
				t.Fatal(err)
			}
			sql(t, s, `UPDATE runs SET settings = $1 WHERE id = $2`, raw, run.Ref.ID)
		},
		want: wire.RunDifference{
			Stage: "trigger", What: "result.decision.limit", Recorded: "9900",
			Replayed: "5500",
		},
	},
	{
		name: "another plan", change: func(t *testing.T, s *scenario.System, run runs.Run) {
			for _, step := range run.Attempts {
				if sha := step.Artifacts[contract.ArtifactPlan]; sha != "" {
					plan, err := s.Store.Artifacts.Get(t.Context(), scenario.Tenant, sha)
					if err != nil {
						t.Fatal(err)
					}
					other := putArtifact(t, s, run, "plan",
						strings.Replace(string(plan), `"covered_messages":`, `"covered_messages":1`, 1))
					sql(t, s, `UPDATE stage_results SET result = convert_to(replace(convert_from(result, `+
						`'UTF8'), $1, $2), 'UTF8') WHERE run = $3 AND stage = 'partition'`, sha, other, run.Ref.ID)
				}
			}
		},
		want: wire.RunDifference{
			Stage: "partition", What: "plan", Recorded: `"covered_messages":1`,
			Replayed: `"covered_messages":`,
		},
	},
	{
		name: "another context", change: func(t *testing.T, s *scenario.System, run runs.Run) {
			context, err := s.Store.Artifacts.Get(t.Context(), scenario.Tenant, run.Facts.Context)
			if err != nil {
				t.Fatal(err)
			}
			other := putArtifact(t, s, run, "context",
				strings.Replace(string(context), "The parts were read", "The parts were lost", 1))
			sql(t, s, `UPDATE runs SET context_sha256 = decode($1, 'hex') WHERE id = $2`, other, run.Ref.ID)
			sql(t, s, `UPDATE stage_results SET result = convert_to(replace(convert_from(result, 'UTF8'), $1, `+
				`$2), 'UTF8') WHERE run = $3 AND stage = 'reassemble'`, run.Facts.Context, other, run.Ref.ID)
		},
		want: wire.RunDifference{
			Stage: "reassemble", Summarizer: "anthropic/alpha", What: "context", Message: 1,
			Recorded: "The parts were lost", Replayed: "The parts were read",
		},
	},
	{
		name: "another outcome", change: func(t *testing.T, s *scenario.System, run runs.Run) {
			sql(t, s, `UPDATE stage_results SET result = convert_to(replace(convert_from(result, 'UTF8'), `+
				`'"limit":9900', '"limit":9901'), 'UTF8') WHERE run = $1 AND stage = 'reassemble'`, run.Ref.ID)
		},
		want: wire.RunDifference{
			Stage: "reassemble", Summarizer: "anthropic/alpha", What: "result.limit",
			Recorded: "9901", Replayed: "9900",
		},
	},
	{
		name: "a missing stage", change: func(t *testing.T, s *scenario.System, run runs.Run) {
			sql(t, s, `DELETE FROM stage_results WHERE run = $1 AND stage = 'slim'`, run.Ref.ID)
			sql(t, s, `DELETE FROM run_attempts WHERE run = $1 AND stage = 'slim'`, run.Ref.ID)
		},
		want: wire.RunDifference{Stage: "slim", What: "step", Recorded: "nothing", Replayed: "slim"},
	},
}

// A replay reports a change in the record at the stage that was changed, not at the stages that follow from it.
func TestReplayFindsTheFirstDifference(t *testing.T) {
	t.Parallel()
	for _, tt := range tamperings {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{"alpha": {text(good)}}})
			s.StartWorker()
			ref := s.Create(scenario.Conversation{
				Window: 11000, Settings: map[string]any{"summarizers": []any{alpha}},
				Messages: scenario.Turns(6, 2000),
			})
			run := s.Compact(ref, runs.Request{})
			tt.change(t, s, run)

			got, c := replay(t, s, run, launch.ReplayRequest{})

			if got.Outcome != precis.OutcomeReplayed || c.Identical || got.Replay.Identical == nil ||
				*got.Replay.Identical || c.First == nil {
				t.Fatalf("%s %s %+v\n%s", got.Outcome, got.Reason, c, s.Attempts(got))
			}
			d := *c.First
			if d.Stage != tt.want.Stage || d.Summarizer != tt.want.Summarizer || d.What != tt.want.What ||
				d.Message != tt.want.Message || !strings.Contains(d.Recorded, tt.want.Recorded) ||
				!strings.Contains(d.Replayed, tt.want.Replayed) {
				t.Errorf("the first difference is %+v\nwant %+v", d, tt.want)
			}
		})
	}
}

// A replay uses the conversation as it was at the time of the run. Later messages, state, settings, models and
// compactions do not change the result.
func TestReplayAfterEverythingHasChanged(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Window: 16000, System: json.RawMessage(`"You are careful."`), Tools: json.RawMessage(`[]`),
		Messages: scenario.Turns(6, 1700),
	})
	if _, err := s.Store.LiveState.Set(t.Context(), ref, "todo", []byte("- read part 7")); err != nil {
		t.Fatal(err)
	}
	s.Append(ref, scenario.Assistant("Yes."), scenario.User("Then go on with the list."))
	first := s.Compact(ref, runs.Request{Focus: "part 1"})
	if first.Outcome != precis.OutcomeApplied || first.Facts.Summarizer != "self" {
		t.Fatalf("%s by %s\n%s", first.Outcome, first.Facts.Summarizer, s.Attempts(first))
	}

	vendor, model, window := "openai", "other", 900_000
	settings := json.RawMessage(`{"tool_result_keep_turns":1,"summary_max_tokens":300}`)
	system := json.RawMessage(`"You are another one."`)
	if _, err := s.Store.Changes.Update(t.Context(), ref,
		conversations.Patch{
			Vendor: &vendor, Model: &model, Window: &window, Settings: &settings,
			System: &system,
		}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.LiveState.Set(t.Context(), ref, "todo", []byte("- nothing")); err != nil {
		t.Fatal(err)
	}
	s.Append(ref, append([]string{scenario.Assistant("done")}, scenario.Turns(3, 1500)...)...)
	second := s.Compact(ref, runs.Request{})
	if second.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s %s\n%s", second.Outcome, second.Reason, s.Attempts(second))
	}
	wantIdenticalReplay(t, s, first)
	wantIdenticalReplay(t, s, second)
	for range 2 {
		if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
			t.Fatal(err)
		}
	}
	wantIdenticalReplay(t, s, first)
	wantIdenticalReplay(t, s, second)
}

// outcomes are runs with the outcome that each of them has.
var outcomes = []struct {
	name string
	run  func(t *testing.T, s *scenario.System, gate *vendorserver.Gate) runs.Run
	want precis.Outcome
}{
	{"skipped, not due", func(_ *testing.T, s *scenario.System, _ *vendorserver.Gate) runs.Run {
		ref := s.Create(scenario.Conversation{Window: 100_000, Messages: scenario.Turns(3, 500)})
		return s.Compact(ref, runs.Request{Kind: pipeline.TriggerTokens})
	}, precis.OutcomeSkipped},
	{"skipped, empty", func(_ *testing.T, s *scenario.System, _ *vendorserver.Gate) runs.Run {
		ref := s.Create(scenario.Conversation{Window: 100_000})
		run := s.Compact(ref, runs.Request{})
		s.Append(ref, scenario.Turns(6, 2000)...) // what came later is not seen
		return run
	}, precis.OutcomeSkipped},
	{"prepared", func(t *testing.T, s *scenario.System, gate *vendorserver.Gate) runs.Run {
		gate.Open()
		ref := s.Create(scenario.Conversation{Window: 11_000, Messages: scenario.Turns(6, 2000)})
		if _, err := s.Store.Replies.Open(t.Context(), ref, time.Minute); err != nil {
			t.Fatal(err)
		}
		return s.Compact(ref, runs.Request{Kind: pipeline.TriggerTokens})
	}, precis.OutcomePrepared},
	{"superseded", func(t *testing.T, s *scenario.System, gate *vendorserver.Gate) runs.Run {
		ref := s.Create(scenario.Conversation{Window: 11_000, Messages: scenario.Turns(6, 2000)})
		run := s.Request(ref, runs.Request{})
		if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Store.Markers.Report(t.Context(), ref,
			markers.Reported{
				Origin: markers.OriginAgent, CoversTo: 4, Summary: []byte("the agent's own"),
				SummaryTokens: 5,
			}); err != nil {
			t.Fatal(err)
		}
		gate.Open()
		return s.Wait(run)
	}, precis.OutcomeSuperseded},
	{"cancelled", func(t *testing.T, s *scenario.System, _ *vendorserver.Gate) runs.Run {
		ref := s.Create(scenario.Conversation{Window: 11_000, Messages: scenario.Turns(6, 2000)})
		run := s.Request(ref, runs.Request{})
		if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.CancelWorkflow(t.Context(), run.WorkflowID, ""); err != nil {
			t.Fatal(err)
		}
		return s.Wait(run)
	}, precis.OutcomeCancelled},
	{"the agent continues", func(t *testing.T, s *scenario.System, gate *vendorserver.Gate) runs.Run {
		ref := s.Create(scenario.Conversation{Window: 11_000, Messages: scenario.Turns(6, 2000)})
		run := s.Request(ref, runs.Request{})
		if _, err := s.Vendor.WaitForRequest(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		s.Append(ref, scenario.Assistant("I go on."), scenario.User("And part 9?"))
		gate.Open()
		return s.Wait(run)
	}, precis.OutcomeApplied},
	{"the tail alone", func(_ *testing.T, s *scenario.System, _ *vendorserver.Gate) runs.Run {
		ref := s.Create(scenario.Conversation{Window: 12_000, Messages: []string{
			scenario.User("check the log"), scenario.Call("big", "I look."),
			scenario.Result("big", scenario.Distinct("line", 8000)),
		}})
		return s.Compact(ref, runs.Request{Kind: pipeline.TriggerTokens})
	}, precis.OutcomeApplied},
	{"down to the tail", func(_ *testing.T, s *scenario.System, gate *vendorserver.Gate) runs.Run {
		gate.Open()
		talk := append(scenario.Turns(3, 400)[:12], scenario.User("check the log"), scenario.Call("big", "I look."),
			scenario.Result("big", scenario.Distinct("line", 8000)))
		return s.Compact(s.Create(scenario.Conversation{Window: 12_000, Messages: talk}), runs.Request{})
	}, precis.OutcomeApplied},
}

// A replay from the record reproduces a run, whatever its outcome.
func TestReplayOfEveryOutcome(t *testing.T) {
	t.Parallel()
	for _, tt := range outcomes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			gate := vendorserver.NewGate()
			s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good, Gate: gate}})
			s.StartWorker()
			run := tt.run(t, s, gate)
			if run.Outcome != tt.want {
				t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
			}
			wantIdenticalReplay(t, s, run)
		})
	}
}

// A run that exceeds its time budget uses the digest. Its replay takes the same fallbacks without waiting.
func TestReplayOfARunThatRanOutOfTime(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
		"alpha": {{Hang: true}},
		"beta":  {text(good)},
	}})
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 11000, Messages: scenario.Turns(6, 2000), Settings: map[string]any{
		"summarizers": []any{alpha, beta}, "run_time_budget_seconds": 3,
	}})
	run := s.Compact(ref, runs.Request{})
	if run.Outcome != precis.OutcomeApplied || !run.Facts.Digest || len(s.Vendor.Requests()) != 1 {
		t.Fatalf("%s by %s after %d calls\n%s", run.Outcome, run.Facts.Summarizer, len(s.Vendor.Requests()),
			s.Attempts(run))
	}
	wantIdenticalReplay(t, s, run)
}

// A run that cannot be replayed is refused with the reason, or its replay fails where the record is incomplete.
func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Answers: []vendorserver.Answer{text(good), {Hang: true}}})
	s.StartWorker()
	ask := func(run runs.Run, q launch.ReplayRequest) error {
		_, _, err := launch.AskReplay(t.Context(), s.Store, s.Config, run.Ref, q)
		return err
	}
	ref := s.Create(scenario.Conversation{Window: 11000, Messages: scenario.Turns(6, 2000)})
	run := s.Compact(ref, runs.Request{})
	got, _ := replay(t, s, run, launch.ReplayRequest{})
	if err := ask(got, launch.ReplayRequest{}); !errors.Is(err, store.ErrInvalid) ||
		!strings.Contains(err.Error(), "replay itself") {
		t.Errorf("a replay of a replay: %v", err)
	}
	for _, q := range []launch.ReplayRequest{
		{Apply: true},
		{Focus: "x"},
		{Live: true, Prompt: "none"},
		{Live: true, MaxChars: -1},
	} {
		if err := ask(run, q); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	unfinished := s.Request(ref, runs.Request{Focus: "again"})
	if err := ask(unfinished, launch.ReplayRequest{}); !errors.Is(err, store.ErrInvalid) ||
		!strings.Contains(err.Error(), "not ended") {
		t.Errorf("of an unfinished run: %v", err)
	}
	if err := s.Client.CancelWorkflow(t.Context(), unfinished.WorkflowID, ""); err != nil {
		t.Fatal(err)
	}
	s.Wait(unfinished)

	// Without a recorded answer the replay fails.
	sql(t, s, `UPDATE artifacts SET data = NULL, pruned_at = now() WHERE kind = 'answer'`)
	asked, _, err := launch.AskReplay(t.Context(), s.Store, s.Config, run.Ref, launch.ReplayRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Wait(asked); got.Outcome != precis.OutcomeFailed || got.ErrorKind != pipeline.BadRequest ||
		!strings.Contains(got.Reason, "pruned or deleted") {
		t.Errorf("without the answer: %s %s %s", got.Outcome, got.ErrorKind, got.Reason)
	}
	if err := s.Store.Retention.DeleteContent(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if err := ask(run, launch.ReplayRequest{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of a deleted conversation: %v", err)
	}
}

const better = "<summary>\n## Goal\nThe parts are read one after the other, in lib/part_0.go too.\n\n## Open\nThe " +
	"last question is open.\n</summary>"

// A live replay calls other models with the conversation as it was at the time of the run, and changes nothing.
func TestLiveReplayIsComparedAndNotApplied(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
		"alpha": {text(good)},
		"beta":  {text(better)},
	}})
	s.StartWorker()
	talk := append([]string{
		scenario.User("Read lib/part_0.go first. Never change the public API."),
		scenario.Assistant("I read `lib/part_0.go`."),
	}, scenario.Turns(6, 2000)...)
	ref := s.Create(scenario.Conversation{
		Window: 11000, Settings: map[string]any{"summarizers": []any{alpha}},
		Messages: talk,
	})
	run := s.Compact(ref, runs.Request{})
	s.Append(ref, scenario.Assistant("done"), scenario.User("This came later."))
	before, events := s.Context(ref), len(eventsOf(t, s, ref))

	got, c := replay(t, s, run, launch.ReplayRequest{
		Live: true, Summarizer: "openai/beta", Prompt: "general",
		MaxChars: 9000, Focus: "the parts",
	})

	if got.Outcome != precis.OutcomeReplayed || got.Replay.Identical != nil || got.Marker != "" || !c.Live {
		t.Fatalf("%s %s %+v\n%s", got.Outcome, got.Reason, c, s.Attempts(got))
	}
	want := wire.RunChanges{Summarizer: "openai/beta", Prompt: "general", MaxChars: 9000, Focus: "the parts"}
	if c.Changes == nil || *c.Changes != want {
		t.Errorf("changes %+v", c.Changes)
	}
	requests := s.Vendor.Requests()
	last := requests[len(requests)-1]
	if last.Model != "beta" || strings.Contains(string(last.Body), "This came later") || len(last.Body) > 16000 ||
		!strings.Contains(string(last.Body), "the parts") {
		t.Errorf("the last model call was to %s, with %d bytes", last.Model, len(last.Body))
	}
	if c.Original.Summarizer != "anthropic/alpha" || c.Replay.Summarizer != "openai/beta" ||
		c.Replay.Prompt.Name != "general" || c.Original.SummaryTokens == 0 || c.Replay.Usage.Calls != 1 ||
		c.Replay.TokensAfter == 0 {
		t.Errorf("sides %+v\n%+v", c.Original, c.Replay)
	}
	if len(c.Replay.Sections) < 2 || c.Replay.Sections[0].Title != "Goal" || len(c.Original.Sections) == 0 {
		t.Errorf("sections %+v and %+v", c.Original.Sections, c.Replay.Sections)
	}
	if len(c.OnlyReplay) != 1 || c.OnlyReplay[0].Text != "lib/part_0.go" || len(c.OnlyOriginal) != 0 || c.Both == 0 {
		t.Errorf("only in the original %+v, only in the replay %+v, in both %d", c.OnlyOriginal, c.OnlyReplay, c.Both)
	}
	if u := got.Usage; u.Calls != 1 || u.Output == 0 {
		t.Errorf("booked %+v", u)
	}
	if after := s.Context(ref); strings.Join(after, "\n") != strings.Join(before, "\n") ||
		len(eventsOf(t, s, ref)) != events {
		t.Error("the live replay changed the conversation")
	}
}

// refused is the answer of a model that refuses to write a summary.
var refused = vendorserver.Answer{Finish: "refusal"}

// application is a run whose live replay is to be applied.
type application struct {
	name    string
	digest  string
	first   vendorserver.Answer
	was     precis.Outcome
	between func(t *testing.T, s *scenario.System, ref store.ConversationRef)
	want    precis.Outcome
}

var applications = []application{
	{name: "a failed run", digest: "never", first: refused, was: precis.OutcomeFailed, want: precis.OutcomeApplied},
	{name: "a digest", first: refused, was: precis.OutcomeApplied, want: precis.OutcomeApplied},
	{name: "a model's summary", first: text(good), was: precis.OutcomeApplied, want: precis.OutcomeApplied},
	{
		name: "the agent has continued", first: refused, was: precis.OutcomeApplied, want: precis.OutcomeApplied,
		between: func(_ *testing.T, s *scenario.System, ref store.ConversationRef) {
			s.Append(ref, scenario.Assistant("done"), scenario.User("This came later."))
		},
	},
	{
		name: "undone since", first: refused, was: precis.OutcomeApplied, want: precis.OutcomeApplied,
		between: func(t *testing.T, s *scenario.System, ref store.ConversationRef) {
			if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
				t.Fatal(err)
			}
		},
	},
	{
		name: "another compaction since", first: refused, was: precis.OutcomeApplied,
		want: precis.OutcomeSuperseded,
		between: func(t *testing.T, s *scenario.System, ref store.ConversationRef) {
			if _, err := s.Store.Markers.Report(t.Context(), ref,
				markers.Reported{
					Origin: markers.OriginAgent, CoversTo: 20, Summary: []byte("the agent's own"),
					SummaryTokens: 5,
				}); err != nil {
				t.Fatal(err)
			}
		},
	},
	{
		name: "a reply is open", first: refused, was: precis.OutcomeApplied, want: precis.OutcomePrepared,
		between: func(t *testing.T, s *scenario.System, ref store.ConversationRef) {
			if _, err := s.Store.Replies.Open(t.Context(), ref, time.Minute); err != nil {
				t.Fatal(err)
			}
		},
	},
}

// A live replay with apply replaces what the original run left. It is not applied if another compaction has taken
// effect, and stays prepared while a reply is open.
func TestLiveReplayIsApplied(t *testing.T) {
	t.Parallel()
	for _, tt := range applications {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := scenario.New(t, vendorserver.Script{Models: map[string][]vendorserver.Answer{
				"alpha": {tt.first},
				"beta":  {text(better)},
			}})
			s.StartWorker()
			settings := map[string]any{"summarizers": []any{alpha}, "tool_result_keep_turns": 0}
			if tt.digest != "" {
				settings["digest"] = tt.digest
			}
			ref := s.Create(scenario.Conversation{Window: 11000, Settings: settings, Messages: scenario.Turns(6, 2000)})
			full := s.Context(ref)
			run := s.Compact(ref, runs.Request{})
			if run.Outcome != tt.was {
				t.Fatalf("the run: %s %s", run.Outcome, run.Reason)
			}
			if tt.between != nil {
				tt.between(t, s, ref)
			}
			before := s.Context(ref)

			got, c := replay(t, s, run, launch.ReplayRequest{Live: true, Apply: true, Summarizer: "openai/beta"})

			if got.Outcome != tt.want {
				t.Fatalf("%s %s %s\n%s", got.Outcome, got.ErrorKind, got.Reason, s.Attempts(got))
			}
			for _, step := range got.Attempts {
				if step.Stage == contract.StageFinish && (step.Attempt > 1 || step.ErrorKind != "") {
					t.Errorf("to close it took attempt %d: %s", step.Attempt, step.ErrorKind)
				}
			}
			after := s.Context(ref)
			asked := 0
			for _, r := range s.Vendor.Requests() {
				if r.Model == "beta" {
					asked++
				}
			}
			switch tt.want {
			case precis.OutcomeSuperseded:
				if asked != 0 || !slices.Equal(after, before) {
					t.Errorf("%d model calls for a replay that cannot be applied", asked)
				}
			case precis.OutcomePrepared:
				if !slices.Equal(after, before) {
					t.Error("the context changed while a reply was open")
				}
			default:
				if asked != 1 || !strings.Contains(after[0], "The parts are read one after the other") ||
					after[len(after)-1] != before[len(before)-1] {
					t.Errorf("%d model calls; the context is %.300q", asked, after)
				}
				if c.Replay == nil || c.Replay.Outcome != precis.OutcomeApplied || c.Original.Outcome != tt.was {
					t.Errorf("sides %+v and %+v", c.Original, c.Replay)
				}
				tt.undo(t, s, ref, full, before)
			}
		})
	}
}

// undo checks that an undo restores the context that the replay replaced, and undoing the original run, if it was
// applied, the history.
func (a application) undo(t *testing.T, s *scenario.System, ref store.ConversationRef, full, before []string) {
	t.Helper()
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	if undone := s.Context(ref); !slices.Equal(undone, before) {
		t.Errorf("after the undo the context is %.300q, want %.300q", undone, before)
	}
	if a.was == precis.OutcomeApplied && a.name != "undone since" {
		if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
			t.Fatal(err)
		}
	}
	if all := s.Context(ref); !slices.Equal(all[:len(full)], full) {
		t.Error("the undo did not restore the history")
	}
}

// A live replay is bound by the tenant's token budget. A replay from the record is not.
func TestBudgetHoldsForLiveReplays(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
	s.Config.Settings.TenantDailyTokenBudget = 100
	s.StartWorker()
	ref := s.Create(scenario.Conversation{Window: 11000, Messages: scenario.Turns(6, 2000)})
	run := s.Compact(ref, runs.Request{Settings: nil})
	wantIdenticalReplay(t, s, run)
	sql(t, s, `INSERT INTO usage_ledger (cid, tenant, run, call, attempt, vendor, model, state, `+
		`input_tokens, booked_under) `+
		`SELECT cid, tenant, id, 99, 1, 'x', 'y', 'failed', 5000, '/compact' FROM runs WHERE id = $1`, run.Ref.ID)
	requests := len(s.Vendor.Requests())
	got, _ := replay(t, s, run, launch.ReplayRequest{Live: true})
	if n := len(s.Vendor.Requests()); n != requests || !got.Facts.Digest {
		t.Errorf("%d calls beyond the budget, summary by %s", n-requests, got.Facts.Summarizer)
	}
}
