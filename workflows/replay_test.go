package workflows_test

import (
	"strings"
	"testing"

	"precis/internal/conversation"
	"precis/internal/runs"
	"precis/internal/scenario"
	"precis/internal/store"
)

// replay repeats a run and waits for the end.
func replay(t *testing.T, s *scenario.System, run store.Run, q conversation.ReplayRequest) (store.Run, runs.Comparison) {
	t.Helper()
	asked, attached, err := conversation.AskReplay(t.Context(), s.Store, s.Config, run.Ref, q)
	if err != nil || attached {
		t.Fatalf("attached %t, %v", attached, err)
	}
	got := s.Wait(asked)
	c, err := runs.LoadComparison(t.Context(), s.Store, got)
	if err != nil || c == nil {
		t.Fatalf("%s %s %s: no comparison, %v\n%s", got.Outcome, got.ErrorKind, got.Reason, err, s.Steps(got))
	}
	return got, *c
}

// repeats checks that a run comes out of its record byte for byte, that no model is asked for it, and that nothing else
// hears of it.
func repeats(t *testing.T, s *scenario.System, run store.Run) {
	t.Helper()
	ref := store.ConversationRef{Tenant: scenario.Tenant, ID: run.Conversation}
	requests, events, before := len(s.Vendor.Requests()), len(eventsOf(t, s, ref)), strings.Join(s.Context(ref), "\n")

	got, c := replay(t, s, run, conversation.ReplayRequest{})

	if got.Outcome != store.OutcomeReplayed || got.Replay.Identical == nil || !*got.Replay.Identical || !c.Identical || c.First != nil {
		t.Errorf("%s %s: identical %t, first difference %+v of %d\n%s\nthe original:\n%s", got.Outcome, got.Reason, c.Identical, c.First, c.Differences, s.Steps(got), s.Steps(run))
	}
	if (run.Facts.Context != "") != (c.Context != nil) || c.Context != nil && (!c.Context.Identical || c.Context.SHA256 != run.Facts.Context) {
		t.Errorf("the context is %+v, that of the run %q", c.Context, run.Facts.Context)
	}
	if was, is := walked(run), walked(got); was != is {
		t.Errorf("the way was\n%s\nand is\n%s", was, is)
	}
	if n := len(s.Vendor.Requests()); n != requests {
		t.Errorf("%d model calls", n-requests)
	}
	if got.Usage != (store.RunUsage{}) || got.Marker != "" || got.ReplayOf != run.Ref.ID {
		t.Errorf("usage %+v, marker %q, replay of %q", got.Usage, got.Marker, got.ReplayOf)
	}
	if n := len(eventsOf(t, s, ref)); n != events {
		t.Errorf("%d events of the replay are in the timeline", n-events)
	}
	if after := strings.Join(s.Context(ref), "\n"); after != before {
		t.Error("the replay changed the context")
	}
	// However often: the same.
	if _, again := replay(t, s, run, conversation.ReplayRequest{}); !again.Identical {
		t.Errorf("the second time: %+v", again.First)
	}
}

func eventsOf(t *testing.T, s *scenario.System, ref store.ConversationRef) []store.Event {
	t.Helper()
	list, err := s.Store.Events(t.Context(), ref, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// walked is the way of a run down the ladder: each call once, without what closes it.
func walked(run store.Run) string {
	var b strings.Builder
	for i, s := range run.Steps {
		last := i+1 == len(run.Steps) || run.Steps[i+1].Call != s.Call
		if last && s.Stage != "finish" {
			b.WriteString(s.Stage + " " + s.Rung + " " + s.Summarizer + " → " + s.Next + "\n")
		}
	}
	return b.String()
}
