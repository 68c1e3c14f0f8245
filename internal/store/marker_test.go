package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"precis"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	storemarkers "precis/internal/store/markers"
	"precis/internal/store/replies"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

func TestApplyMarker(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 5)
	r := request(t, s, ref)
	n := plan(t, s, ref, 6, "SUM 1")
	n.Carried, n.Valve, n.ValveUpTo, n.Digest = []int64{1, 5}, "previews", 8, true
	m, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{Summarizer: "digest", PromptName: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, m.NewMarker); diff != "" || m.Status != runs.MarkerApplied ||
		m.Origin != storemarkers.OriginOurs || m.Run != r.Ref.ID || m.Epoch != 1 || m.Applied.IsZero() {
		t.Errorf("%+v: %s", m, diff)
	}

	v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Marker == nil || v.Marker.ID != m.ID || string(v.Summary) != "SUM 1" || v.Conversation.ActiveMarker != m.ID ||
		v.Conversation.Epoch != 1 || v.TurnStart != 9 || v.Head() != 10 {
		t.Errorf("%+v", v)
	}
	var seqs []int64
	for _, m := range append(v.Carried, v.Tail...) {
		seqs = append(seqs, m.Seq)
	}
	if diff := cmp.Diff([]int64{1, 5, 7, 8, 9, 10}, seqs); diff != "" {
		t.Error(diff)
	}
	if v.Covered.Turns != 3 || v.Conversation.Sums.Minus(v.Covered).Turns != 2 {
		t.Errorf("covered %+v of %+v", v.Covered, v.Conversation.Sums)
	}
	sums, err := s.Contexts.Sizes(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	tokens := int64(v.Marker.SummaryTokens)
	for _, m := range append(v.Carried, v.Tail...) {
		tokens += int64(m.Tokens)
	}
	if sums.Tokens() != tokens || sums.Tail.Turns != 2 {
		t.Errorf("%+v: %d tokens, want %d", sums, sums.Tokens(), tokens)
	}
	old, err := s.Contexts.Read(t.Context(), ref, contexts.Options{UpTo: 8})
	if err != nil || old.Head() != 8 || old.TurnStart != 7 {
		t.Errorf("head %d, turn %d, %v", old.Head(), old.TurnStart, err)
	}

	run, err := s.Runs.Get(t.Context(), r.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if run.Outcome != precis.OutcomeApplied || run.Marker != m.ID || run.Facts.CoversTo != 6 ||
		run.Facts.CoveredChain != n.CoveredChain ||
		!run.Facts.Digest || run.Facts.TokensBefore != 1000 || run.Facts.TokensAfter != 100 ||
		run.Facts.Summarizer != "digest" {
		t.Errorf("%+v", run)
	}

	t.Run("Again", func(t *testing.T) {
		// The caller repeats the call since the first answer was lost. It gets the same marker.
		other := plan(t, s, ref, 8, "SUM 2")
		again, err := s.Markers.Apply(t.Context(), r.Ref, other, runs.Facts{})
		if diff := cmp.Diff(m, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if list, err := s.Markers.List(t.Context(), ref); err != nil || len(list) != 1 {
			t.Errorf("%d markers, %v", len(list), err)
		}
	})
	t.Run("GetMarker", func(t *testing.T) {
		got, err := s.Markers.Get(t.Context(), ref, m.ID)
		if diff := cmp.Diff(m, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// toApply makes a conversation with an unfinished run, and the marker that the run is about to apply.
func toApply(t *testing.T, s *store.Store) (store.ConversationRef, runs.Run, storemarkers.NewMarker) {
	t.Helper()
	ref := newConversation(t, s, t.Name())
	appendTurns(t, s, ref, 5)
	return ref, request(t, s, ref), plan(t, s, ref, 6, "SUM")
}

// wantRefused checks that a marker was refused for the reason, and that its run is still unfinished and has none.
func wantRefused(t *testing.T, s *store.Store, r runs.Run, err error, reason store.ConflictReason) {
	t.Helper()
	if store.ConflictReasonOf(err) != reason || !errors.Is(err, store.ErrConflict) ||
		pipeline.KindOf(err) != pipeline.Conflict {
		t.Errorf("error %v, want %s", err, reason)
	}
	if run, err := s.Runs.Get(t.Context(), r.Ref); err != nil || run.Outcome != "" || run.Marker != "" {
		t.Errorf("run %+v, %v", run, err)
	}
}

func TestApplyMarkerRefuses(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)

	t.Run("ReplyOpen", func(t *testing.T) {
		t.Parallel()
		ref, r, n := toApply(t, s)
		p, err := s.Replies.Open(t.Context(), ref, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{})
		wantRefused(t, s, r, err, store.ConflictReplyOpen)
		if !errors.Is(err, store.ErrReplyOpen) {
			t.Errorf("error %v", err)
		}
		if _, err := s.Replies.Close(t.Context(), ref, p.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{}); err != nil {
			t.Errorf("after the reply: %v", err)
		}
	})
	t.Run("BaseChanged", func(t *testing.T) {
		t.Parallel()
		ref, r, n := toApply(t, s)
		if _, err := s.Markers.Report(t.Context(), ref,
			storemarkers.Reported{
				Origin: storemarkers.OriginAgent, CoversTo: 4,
				Summary: []byte("AGENT"),
			}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{})
		wantRefused(t, s, r, err, store.ConflictBaseChanged)
		if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); err != nil || string(v.Summary) != "AGENT" {
			t.Errorf("%q, %v", v.Summary, err)
		}
	})
	t.Run("CoveredChanged", func(t *testing.T) {
		t.Parallel()
		_, r, n := toApply(t, s)
		n.CoveredChain[3] ^= 1
		_, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{})
		wantRefused(t, s, r, err, store.ConflictCoveredChanged)
	})
	t.Run("RunFinished", func(t *testing.T) {
		t.Parallel()
		ref, r, n := toApply(t, s)
		if _, err := s.Runs.Finish(t.Context(), r.Ref, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{})
		if store.ConflictReasonOf(err) != store.ConflictRunFinished {
			t.Errorf("error %v", err)
		}
		if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); err != nil || v.Marker != nil {
			t.Errorf("%+v, %v", v.Marker, err)
		}
	})
}

// Neither an expired reply nor messages that were appended meanwhile prevent a marker.
func TestApplyMarkerAllows(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)

	t.Run("ReplyExpired", func(t *testing.T) {
		t.Parallel()
		ref, r, n := toApply(t, s)
		if _, err := s.Replies.Open(t.Context(), ref, time.Microsecond); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("Appends", func(t *testing.T) {
		t.Parallel()
		ref, r, n := toApply(t, s)
		appendTurns(t, s, ref, 2) // stays in the tail
		if _, err := s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{}); err != nil {
			t.Fatal(err)
		}
		if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); err != nil || len(v.Tail) != 8 {
			t.Errorf("%d in the tail, %v", len(v.Tail), err)
		}
	})
}

func TestApplyMarkerInvalid(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)

	t.Run("Invalid", func(t *testing.T) {
		t.Parallel()
		_, r, good := toApply(t, s)
		for name, test := range map[string]struct {
			change func(*storemarkers.NewMarker)
			want   error
		}{
			"covers nothing":  {func(n *storemarkers.NewMarker) { n.CoversFrom, n.CoversTo = 0, 0 }, store.ErrInvalid},
			"covers too much": {func(n *storemarkers.NewMarker) { n.CoversTo = 11 }, store.ErrInvalid},
			"backwards":       {func(n *storemarkers.NewMarker) { n.CoversFrom = 7 }, store.ErrInvalid},
			"carried tail":    {func(n *storemarkers.NewMarker) { n.Carried = []int64{7} }, store.ErrInvalid},
			"no summary": {
				func(n *storemarkers.NewMarker) { n.Summary = strings.Repeat("0", 64) },
				store.ErrNotFound,
			},
			"summary no hash": {func(n *storemarkers.NewMarker) { n.Summary = "x" }, store.ErrNotFound},
		} {
			bad := good
			test.change(&bad)
			if _, err := s.Markers.Apply(t.Context(), r.Ref, bad, runs.Facts{}); !errors.Is(err, test.want) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	})
	t.Run("LessThanBase", func(t *testing.T) {
		t.Parallel()
		ref := newConversation(t, s, t.Name())
		appendTurns(t, s, ref, 5)
		first := compact(t, s, ref, 6, "SUM")
		n := plan(t, s, ref, 8, "SUM 2")
		n.CoversFrom, n.CoversTo = 1, 4
		if _, err := s.Markers.Apply(t.Context(), request(t, s, ref).Ref, n, runs.Facts{}); !errors.Is(err,
			store.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		if c, err := s.Conversations.Get(t.Context(), ref); err != nil || c.ActiveMarker != first.ID {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// The messages of the base can be summarized again, for example with another focus, without new messages.
func TestApplyMarkerOverTheSame(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 5)
	first := compact(t, s, ref, 6, "SUM")
	n := plan(t, s, ref, 6, "SUM WITH FOCUS")
	n.CoversFrom, n.CoversTo, n.CoveredMessages = 0, 0, 0
	m, err := s.Markers.Apply(t.Context(), request(t, s, ref).Ref, n, runs.Facts{})
	if err != nil || m.CoversFrom != first.CoversFrom || m.CoversTo != 6 || m.Base != first.ID {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	if _, err := s.Markers.Undo(t.Context(), ref, ""); !errors.Is(err, store.ErrNothingToUndo) {
		t.Errorf("error %v", err)
	}
	appendTurns(t, s, ref, 5)
	contexts := []string{contextOf(t, s, ref)}
	var markers []storemarkers.Marker
	for i := range 3 {
		markers = append(markers, compact(t, s, ref, int64(4+2*i), fmt.Sprint("SUM ", i)))
		contexts = append(contexts, contextOf(t, s, ref))
	}
	for i := 2; i >= 0; i-- {
		u, err := s.Markers.Undo(t.Context(), ref, markers[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		if u.Marker.ID != markers[i].ID || u.Marker.Status != runs.MarkerUndone || u.Marker.Ended.IsZero() {
			t.Errorf("undone %+v", u.Marker)
		}
		if (u.Active == nil) != (i == 0) || (i > 0 && u.Active.ID != markers[i-1].ID) {
			t.Errorf("active %+v", u.Active)
		}
		if diff := cmp.Diff(contexts[i], contextOf(t, s, ref)); diff != "" {
			t.Errorf("after undo %d: %s", i, diff)
		}
		// The caller repeats the call since its answer was lost: it does not undo another marker.
		if _, err := s.Markers.Undo(t.Context(), ref,
			markers[i].ID); store.ConflictReasonOf(err) != store.ConflictBaseChanged {
			t.Errorf("error %v", err)
		}
	}
	if _, err := s.Markers.Undo(t.Context(), ref, ""); !errors.Is(err, store.ErrNothingToUndo) {
		t.Errorf("error %v", err)
	}

	// No automatic run may start until the next user message.
	held := func() bool {
		t.Helper()
		c, err := s.Conversations.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return c.AutoHeld
	}
	if !held() {
		t.Error("not held after an undo")
	}
	res, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{message(pipeline.RoleAssistant, "a")},
		changes.AppendOptions{})
	if err != nil || !res.Conversation.AutoHeld || !held() {
		t.Errorf("not held after an assistant message, %v", err)
	}
	res, err = s.Changes.Append(t.Context(), ref, []conversations.NewMessage{message(pipeline.RoleUser, "u")},
		changes.AppendOptions{})
	if err != nil || res.Conversation.AutoHeld || held() {
		t.Errorf("held after a user message, %v", err)
	}
	// A run whose marker was undone still gives its first result.
	again, err := s.Markers.Apply(t.Context(), store.RunRef{Tenant: store.DefaultTenant, ID: markers[0].Run},
		storemarkers.NewMarker{}, runs.Facts{})
	if err != nil || again.ID != markers[0].ID || again.Status != runs.MarkerUndone {
		t.Errorf("%+v, %v", again, err)
	}
}

// A concurrent run and undo have the effect of one of the two serial orders.
func TestApplyUndoRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	var applied, refused int
	for round := range 40 {
		ref := newConversation(t, s, fmt.Sprint("c", round))
		appendTurns(t, s, ref, 5)
		first := compact(t, s, ref, 4, "SUM 1")
		r, n := request(t, s, ref), plan(t, s, ref, 8, "SUM 2")
		var wg sync.WaitGroup
		var applyErr error
		var undo storemarkers.Undone
		var marker storemarkers.Marker
		wg.Go(func() { marker, applyErr = s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{}) })
		wg.Go(func() {
			var err error
			if undo, err = s.Markers.Undo(t.Context(), ref, ""); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { appendTurns(t, s, ref, 1) })
		wg.Wait()
		v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case applyErr == nil: // applied, then undone
			applied++
			if undo.Marker.ID != marker.ID || v.Marker == nil || v.Marker.ID != first.ID || len(v.Tail) != 8 {
				t.Fatalf("undone %s, active %+v, tail %d", undo.Marker.ID, v.Marker, len(v.Tail))
			}
		default: // undone, then the run found another base
			refused++
			if store.ConflictReasonOf(applyErr) != store.ConflictBaseChanged || undo.Marker.ID != first.ID ||
				v.Marker != nil || len(v.Tail) != 12 {
				t.Fatalf("%v, undone %s, active %+v, tail %d", applyErr, undo.Marker.ID, v.Marker, len(v.Tail))
			}
		}
	}
	t.Logf("%d applied first, %d undone first", applied, refused)
}

// The same activity on two workers, and two runs on one base, write one marker, and all callers of a run get the same
// result.
func TestApplyMarkerRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for round := range 20 {
		ref := newConversation(t, s, fmt.Sprint("c", round))
		appendTurns(t, s, ref, 5)
		r, n := request(t, s, ref), plan(t, s, ref, 6, "SUM")
		replay, _, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "manual", ReplayOf: r.Ref.ID})
		if err != nil {
			t.Fatal(err)
		}
		var won [2]atomic.Value
		var conflicts atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				which := i % 2
				m, err := s.Markers.Apply(t.Context(), []store.RunRef{r.Ref, replay.Ref}[which], n, runs.Facts{})
				switch {
				case store.ConflictReasonOf(err) == store.ConflictBaseChanged:
					conflicts.Add(1)
				case err != nil:
					t.Error(err)
				default:
					if !won[which].CompareAndSwap(nil, m.ID) && won[which].Load() != m.ID {
						t.Errorf("markers %v and %s for one run", won[which].Load(), m.ID)
					}
				}
			})
		}
		wg.Wait()
		if (won[0].Load() == nil) == (won[1].Load() == nil) || conflicts.Load() != 4 {
			t.Fatalf("winners %v and %v, %d conflicts", won[0].Load(), won[1].Load(), conflicts.Load())
		}
		if list, err := s.Markers.List(t.Context(), ref); err != nil || len(list) != 1 {
			t.Fatalf("%d markers, %v", len(list), err)
		}
	}
}

// A reply that opens while a marker is applied reads either the whole old context or the whole new one.
func TestApplyReplyRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for round := range 30 {
		ref := newConversation(t, s, fmt.Sprint("c", round))
		appendTurns(t, s, ref, 3)
		r, n := request(t, s, ref), plan(t, s, ref, 4, "SUM")
		var wg sync.WaitGroup
		var applyErr error
		var reply replies.Reply
		wg.Go(func() { _, applyErr = s.Markers.Apply(t.Context(), r.Ref, n, runs.Facts{}) })
		wg.Go(func() {
			var err error
			if reply, err = s.Replies.Open(t.Context(), ref, time.Hour); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if opened := applyErr != nil; opened != (reply.Epoch == 0) ||
			(opened && !errors.Is(applyErr, store.ErrReplyOpen)) {
			t.Fatalf("the reply reads epoch %d, apply says %v", reply.Epoch, applyErr)
		}
	}
}

// preparedMarker makes a conversation of ten messages with a prepared marker over the first six.
func preparedMarker(t *testing.T, s *store.Store) (store.ConversationRef, storemarkers.Marker) {
	t.Helper()
	ref := newConversation(t, s, t.Name())
	appendTurns(t, s, ref, 5)
	r := prepare(t, s, ref)
	m, err := s.Markers.Prepare(t.Context(), r.Ref, plan(t, s, ref, 6, "PREPARED"), runs.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != runs.MarkerPrepared || m.Epoch != 0 || !m.Applied.IsZero() {
		t.Errorf("%+v", m)
	}
	if again, err := s.Markers.Prepare(t.Context(), r.Ref, storemarkers.NewMarker{}, runs.Facts{}); err != nil ||
		again.ID != m.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	return ref, m
}

// outcomeOf returns the outcome of a marker's run, and the reason for it.
func outcomeOf(t *testing.T, s *store.Store, m storemarkers.Marker) (precis.Outcome, string) {
	t.Helper()
	r, err := s.Runs.Get(t.Context(), store.RunRef{Tenant: store.DefaultTenant, ID: m.Run})
	if err != nil {
		t.Fatal(err)
	}
	return r.Outcome, r.Reason
}

func TestPrepared(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)

	t.Run("Waits", func(t *testing.T) {
		t.Parallel()
		ref, m := preparedMarker(t, s)
		appendTurns(t, s, ref, 1)
		v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
		if err != nil || v.Marker != nil || v.Prepared == nil || v.Prepared.ID != m.ID || len(v.Tail) != 12 {
			t.Errorf("%+v, %v", v, err)
		}
		if o, _ := outcomeOf(t, s, m); o != precis.OutcomePrepared {
			t.Errorf("outcome %s", o)
		}
	})
	t.Run("Applied", func(t *testing.T) {
		t.Parallel()
		ref, m := preparedMarker(t, s)
		appendTurns(t, s, ref, 1)
		p, err := s.Replies.Open(t.Context(), ref, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Markers.ApplyPrepared(t.Context(), ref, m.ID, storemarkers.Application{}); !errors.Is(err,
			store.ErrReplyOpen) {
			t.Errorf("error %v", err)
		}
		if _, err := s.Replies.Close(t.Context(), ref, p.ID); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			got, already, err := s.Markers.ApplyPrepared(t.Context(), ref, m.ID,
				storemarkers.Application{TokensBefore: 2000})
			if err != nil || already != (i == 1) || got.Status != runs.MarkerApplied || got.TokensBefore != 2000 ||
				got.TokensAfter != 100 || got.Epoch != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		}
		v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
		if err != nil || string(v.Summary) != "PREPARED" || v.Prepared != nil || v.Conversation.Epoch != 1 ||
			len(v.Tail) != 6 {
			t.Errorf("%+v, %v", v, err)
		}
		if o, _ := outcomeOf(t, s, m); o != precis.OutcomeApplied {
			t.Errorf("outcome %s", o)
		}
	})
	t.Run("Discarded", func(t *testing.T) {
		t.Parallel()
		ref, m := preparedMarker(t, s)
		for range 2 {
			if err := s.Markers.DiscardPrepared(t.Context(), ref, "the model changed"); err != nil {
				t.Fatal(err)
			}
		}
		if o, why := outcomeOf(t, s, m); o != precis.OutcomeSuperseded || why != "the model changed" {
			t.Errorf("outcome %s, %q", o, why)
		}
		events, err := s.Timeline.After(t.Context(), ref, 0, 0)
		if err != nil || events[len(events)-1].Kind != timeline.Discarded || len(events) != 3 {
			t.Errorf("%+v, %v", events, err)
		}
	})
}

// A marker, an undo or a newer preparation that comes first takes the place of a prepared marker.
func TestPreparedSuperseded(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)

	t.Run("OvertakenByAnother", func(t *testing.T) {
		t.Parallel()
		ref, m := preparedMarker(t, s)
		compact(t, s, ref, 8, "BY HAND")
		if _, _, err := s.Markers.ApplyPrepared(t.Context(), ref, m.ID,
			storemarkers.Application{}); store.ConflictReasonOf(err) != store.ConflictNotPrepared {
			t.Errorf("error %v", err)
		}
		if o, why := outcomeOf(t, s, m); o != precis.OutcomeSuperseded || why == "" {
			t.Errorf("outcome %s, %q", o, why)
		}
		if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); err != nil ||
			string(v.Summary) != "BY HAND" ||
			v.Prepared != nil {
			t.Errorf("%q, %v", v.Summary, err)
		}
	})
	t.Run("Undo", func(t *testing.T) {
		t.Parallel()
		ref := newConversation(t, s, t.Name())
		appendTurns(t, s, ref, 5)
		compact(t, s, ref, 4, "SUM")
		m, err := s.Markers.Prepare(t.Context(), prepare(t, s, ref).Ref, plan(t, s, ref, 8, "PREPARED"), runs.Facts{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Markers.Undo(t.Context(), ref, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Markers.Get(t.Context(), ref, m.ID); err != nil || got.Status != runs.MarkerDiscarded ||
			got.Reason == "" {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("Newer", func(t *testing.T) {
		t.Parallel()
		ref, m := preparedMarker(t, s)
		newer, err := s.Markers.Prepare(t.Context(), prepare(t, s, ref).Ref, plan(t, s, ref, 8, "NEWER"),
			runs.Facts{})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); err != nil || v.Prepared == nil ||
			v.Prepared.ID != newer.ID {
			t.Errorf("%+v, %v", v.Prepared, err)
		}
		if o, _ := outcomeOf(t, s, m); o != precis.OutcomeSuperseded {
			t.Errorf("outcome %s", o)
		}
	})
}

func TestReportMarker(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 5)
	report := storemarkers.Reported{
		Origin: storemarkers.OriginImported, CoversTo: 4, Carried: []int64{1},
		Summary: []byte("THEIR\x00 SUM"), SummaryTokens: 3, TokensBefore: 50, TokensAfter: 9,
	}
	m, err := s.Markers.Report(t.Context(), ref, report)
	if err != nil || m.Status != runs.MarkerApplied || m.Origin != storemarkers.OriginImported || m.CoversFrom != 1 ||
		m.CoversTo != 4 || m.CoveredMessages != 4 || m.Run != "" {
		t.Fatalf("%+v, %v", m, err)
	}
	if again, err := s.Markers.Report(t.Context(), ref, report); err != nil || again.ID != m.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{})
	if err != nil || string(v.Summary) != "THEIR\x00 SUM" || len(v.Carried) != 1 || len(v.Tail) != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	// A run's marker covers the reported one, and the next reported one is based on it.
	ours := compact(t, s, ref, 6, "OURS")
	report.CoversTo, report.Origin, report.Summary = 8, storemarkers.OriginAgent, []byte("AGENT")
	theirs, err := s.Markers.Report(t.Context(), ref, report)
	if err != nil || theirs.Base != ours.ID || theirs.CoversFrom != 7 || theirs.CoveredMessages != 2 {
		t.Errorf("%+v, %v", theirs, err)
	}
	if u, err := s.Markers.Undo(t.Context(), ref, ""); err != nil || u.Active.ID != ours.ID {
		t.Errorf("%+v, %v", u, err)
	}
	for name, bad := range map[string]storemarkers.Reported{
		"origin": {Origin: storemarkers.OriginOurs, CoversTo: 8}, "nothing": {Origin: storemarkers.OriginAgent},
		"future": {Origin: storemarkers.OriginAgent, CoversTo: 11},
		"back":   {Origin: storemarkers.OriginAgent, CoversTo: 2},
	} {
		if _, err := s.Markers.Report(t.Context(), ref, bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A digest is replaced by a summary of the messages that it covers, also by one that covers fewer.
func TestReplaceDigest(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 6)
	summary := compact(t, s, ref, 2, "SUM")
	for i, upTo := range []int64{6, 10} { // a digest on a digest
		n := plan(t, s, ref, upTo, fmt.Sprint("DIGEST ", i))
		n.Digest = true
		if _, err := s.Markers.Apply(t.Context(), request(t, s, ref).Ref, n, runs.Facts{}); err != nil {
			t.Fatal(err)
		}
	}
	beneath, err := s.Contexts.Read(t.Context(), ref, contexts.Options{BeneathDigest: true})
	if err != nil || beneath.Marker == nil || beneath.Marker.ID != summary.ID || string(beneath.Summary) != "SUM" ||
		len(beneath.Tail) != 10 {
		t.Fatalf("%+v, %v", beneath, err)
	}
	digest := beneath.Conversation.ActiveMarker
	n := plan(t, s, ref, 10, "REAL")
	chain, ok := beneath.ChainAt(8)
	if !ok {
		t.Fatal("message 8 is not live beneath the digest")
	}
	n.CoversFrom, n.CoversTo, n.CoveredMessages, n.CoveredChain = 3, 8, 6, chain
	m, err := s.Markers.Apply(t.Context(), request(t, s, ref).Ref, n, runs.Facts{})
	if err != nil || m.Base != digest {
		t.Fatalf("%+v, %v", m, err)
	}
	if v, err := s.Contexts.Read(t.Context(), ref, contexts.Options{BeneathDigest: true}); err != nil ||
		string(v.Summary) != "REAL" || len(v.Tail) != 4 {
		t.Errorf("%q, %d in the tail, %v", v.Summary, len(v.Tail), err)
	}
	if u, err := s.Markers.Undo(t.Context(), ref, ""); err != nil || u.Active == nil || u.Active.ID != digest {
		t.Errorf("%+v, %v", u, err)
	}
}
