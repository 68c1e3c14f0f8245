package audit_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/audit"
	"precis/internal/conversation"
	"precis/internal/store"
	storecontexts "precis/internal/store/contexts"
	storeruns "precis/internal/store/runs"
	"precis/internal/testkit/scenario"
)

// everything prunes all kinds of content of any age.
func everything(apply bool) audit.Prune {
	return audit.Prune{
		Before: time.Now().Add(time.Hour), Apply: apply,
		Kinds: []audit.PruneKind{"answers", "contexts", "inputs", "prompts", "reports", audit.PruneToolResults},
	}
}

// worked returns a conversation with tool results in every part that was compacted three times.
func worked(t testing.TB, s *scenario.System) (store.ConversationRef, []storeruns.Run) {
	t.Helper()
	ref := s.Create(scenario.Conversation{Window: 11000})
	var runs []storeruns.Run
	for _, id := range []string{"a", "b", "c"} {
		s.Append(ref, scenario.User("look at "+id), scenario.Call(id, "I look."),
			scenario.Result(id, scenario.Distinct("line "+id, 1500)), scenario.Assistant("I have looked."))
		s.Append(ref, scenario.Turns(4, 1000)...)
		run := s.Compact(ref, storeruns.Request{})
		if run.Outcome != precis.OutcomeApplied {
			t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
		}
		runs = append(runs, run)
	}
	return ref, runs
}

func TestPruneKeepsWhatALiveContextNeeds(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := worked(t, s)
	whole := contexts(t, s, ref, runs)

	would, err := everything(false).Run(t.Context(), s.Store)
	if err != nil || would.Applied {
		t.Fatalf("%+v %v", would, err)
	}
	for _, run := range runs {
		if r := verified(t, s, run); !r.OK || r.Pruned {
			t.Fatalf("the dry run pruned something:\n%s", report(r))
		}
	}
	did, err := everything(true).Run(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	if !did.Applied || did.Busy != 0 || did.Kinds["tool-results"].Count == 0 || did.Kinds["answer"].Count == 0 ||
		did.Kinds["context"].Count == 0 {
		t.Errorf("%+v", did)
	}
	for kind, sum := range would.Kinds {
		if did.Kinds[kind] != sum {
			t.Errorf("%s: the dry run reported %+v, and %+v were pruned", kind, sum, did.Kinds[kind])
		}
	}
	again, err := everything(true).Run(t.Context(), s.Store)
	if err != nil || len(again.Kinds) != 0 {
		t.Errorf("the second time: %+v %v", again, err)
	}

	// Runs still verify, and pruned content is reported as pruned.
	for i, run := range runs {
		r := verified(t, s, run)
		if !r.OK || !r.Pruned {
			t.Errorf("run %d:\n%s", i, report(r))
		}
		for _, c := range r.Checks {
			if wantPruned := c.Name == audit.CheckMessages || c.Name == audit.CheckArtifacts; wantPruned &&
				c.State != audit.Pruned {
				t.Errorf("run %d: %s is %s: %s", i, c.Name, c.State, c.Detail)
			}
			if c.Name == audit.CheckContext && i == len(runs)-1 && c.State != audit.OK {
				t.Errorf("the live context: %s %s", c.State, c.Detail)
			}
		}
	}
	// The live context and the one after an undo are unchanged; earlier ones have placeholders.
	now := contexts(t, s, ref, runs)
	for undone := range whole {
		switch {
		case undone < 2 && !slices.Equal(now[undone], whole[undone]):
			t.Errorf("after %d undos the context is a different one", undone)
		case undone == len(whole)-1 && !strings.Contains(strings.Join(now[undone], "\n"), "[tool result pruned on "):
			t.Errorf("after %d undos there is no placeholder:\n%s", undone, strings.Join(now[undone], "\n"))
		}
	}
	checkTampering(t, s, runs[2])
}

// checkTampering checks that changes to what the pruning left, placeholders and records, are found.
func checkTampering(t *testing.T, s *scenario.System, run storeruns.Run) {
	t.Helper()
	db := database(t, s)
	for name, sql := range map[string]string{
		"placeholder": `UPDATE messages SET native = native || '\x20' WHERE pruned_at IS NOT NULL`,
		"who said it": `UPDATE messages SET role = 'user' WHERE pruned_at IS NOT NULL`,
		"another day": `UPDATE messages SET pruned_at = '2020-01-01' WHERE pruned_at IS NOT NULL`,
		"no day":      `UPDATE messages SET pruned_at = NULL WHERE pruned_at IS NOT NULL`,
		"the ledger": `UPDATE seals SET record = convert_to(replace(convert_from(record, 'UTF8'), '"native":"', ` +
			`'"native":"00'), 'UTF8') WHERE kind = 'prune'`,
	} {
		aside(t, db, func() {
			behind(t, db, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, sql)
				return err
			})
			if r := verified(t, s, run); r.OK {
				t.Errorf("%s: not found\n%s", name, report(r))
			}
		})
	}
}

// contexts returns the contexts of a conversation now, and with one, two… of its markers undone.
func contexts(t testing.TB, s *scenario.System, ref store.ConversationRef, runs []storeruns.Run) [][]string {
	t.Helper()
	var list [][]string
	from := make([]string, 0, len(runs)+1)
	for _, run := range slices.Backward(runs) {
		from = append(from, run.Marker)
	}
	for _, marker := range append(from, "") {
		list = append(list, contextFrom(t, s, ref, marker))
	}
	return list
}

func contextFrom(t testing.TB, s *scenario.System, ref store.ConversationRef, marker string) []string {
	t.Helper()
	live, err := s.Store.Contexts.Read(t.Context(), ref, storecontexts.Options{From: &marker})
	if err != nil {
		t.Fatal(err)
	}
	v, err := conversation.NewView(live, conversation.InstallationOf(s.Config))
	if err != nil {
		t.Fatal(err)
	}
	v.Settings.ToolResultKeepTurns = 0 // whole
	current, err := v.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written, err := conversation.EncodeContext(v, current)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(written), "\n")
}

// Conversations with an active run and recent ones are not pruned.
func TestPruneSkipsBusyAndRecent(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := worked(t, s)
	young := everything(true)
	young.Before = time.Now().Add(-time.Hour)
	got, err := young.Run(t.Context(), s.Store)
	if err != nil || len(got.Kinds) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	s.StopWorker()
	s.Append(ref, scenario.User("once more"))
	s.Request(ref, storeruns.Request{Focus: "again"})
	got, err = everything(true).Run(t.Context(), s.Store)
	if err != nil || got.Busy != 1 || len(got.Kinds) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	if r := verified(t, s, runs[0]); !r.OK || r.Pruned {
		t.Errorf("%s", report(r))
	}
}
