package service_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// The run is written in the transaction of the messages that fired it: both carry its one timestamp.
func TestRunIsAskedForWithItsMessages(t *testing.T) {
	t.Parallel()
	s := newService(t)
	sameMoment := func(ref storeRef, seq int64, run string) {
		t.Helper()
		list, err := s.Store.Messages.At(t.Context(), ref, []int64{seq})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Store.Runs.Get(t.Context(), store.RunRef{Tenant: tenant, ID: run})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Created.Equal(list[0].Created) {
			t.Errorf("the message is of %s and the run of %s", list[0].Created, r.Created)
		}
	}
	ref := create(t, s, window(10000), "")
	got := appendTo(t, s, ref, user("u1"), assistant(abc(9500)), user("u2"))
	if got.Run == nil {
		t.Fatalf("%+v", got.Trigger)
	}
	sameMoment(ref, got.LastSeq, got.Run.ID)

	ref = create(t, s, window(10000), "")
	appendTo(t, s, ref, user("u1"))
	reply, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := s.EndReply(t.Context(), ref, reply.ID,
		service.ReplyEnd{Messages: []json.RawMessage{assistant(abc(9500))}})
	if err != nil || end.Run == nil {
		t.Fatalf("%+v, %v", end, err)
	}
	sameMoment(ref, end.LastSeq, end.Run.ID)
	due, err := s.Store.Outbox.Claim(t.Context(), 10, time.Minute)
	if err != nil || len(due) != 2 {
		t.Errorf("%d workflows are to be started, %v", len(due), err)
	}
}

// Where nothing fires the trigger is looked at by sums alone. A message that cannot be read tells when the context is
// built: the log says so.
func TestTriggerIsLookedAtInConstantTime(t *testing.T) {
	t.Parallel()
	s := newService(t)
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	poison := func(ref storeRef) {
		t.Helper()
		_, err := s.Store.Changes.Append(t.Context(), ref,
			[]conversations.NewMessage{{Role: pipeline.RoleAssistant, Native: []byte(`no JSON`)}},
			changes.AppendOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	built := func() bool {
		defer log.Reset()
		return strings.Contains(log.String(), "could not be measured")
	}

	ref := create(t, s, window(20000), "")
	appendTo(t, s, ref, user("u1"))
	poison(ref)
	if got := appendTo(t, s, ref, assistant(abc(9000)), user("u2")); got.Trigger.Fired || built() {
		t.Errorf("the context was built below the limit: %+v", got.Trigger)
	}
	if got := appendTo(t, s, ref, assistant(abc(9500))); !got.Trigger.Fired || !built() {
		t.Errorf("at the limit it was not: %+v", got.Trigger)
	}

	// By the sums it is over the limit for good, and trimmed it is far below: it is measured once and not again.
	ref = create(t, s, window(20000), "")
	for i := range 12 {
		id := fmt.Sprintf("c%d", i)
		appendTo(t, s, ref, user("u"), toolCall(id), toolResult(id, abc(1800)), assistant("a"))
	}
	if n := len(runsOf(t, s, ref)); n != 0 {
		t.Fatalf("%d runs: trimming does not count", n)
	}
	c, err := s.Store.Conversations.Get(t.Context(), ref)
	if err != nil || c.Measured == nil || c.Sums.Tokens < 18000 {
		t.Fatalf("%+v %d, %v", c.Measured, c.Sums.Tokens, err)
	}
	poison(ref)
	if got := appendTo(t, s, ref, user("u")); got.Trigger.Fired || built() {
		t.Errorf("it was measured again: %+v", got.Trigger)
	}

	// A reply measures what the sums do not see, before they ever reach the limit.
	ref = create(t, s, window(200000), "")
	for i := range 12 {
		id := fmt.Sprintf("c%d", i)
		appendTo(t, s, ref, user("u"), toolCall(id), toolResult(id, abc(1800)), assistant("a"))
	}
	if _, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Store.Conversations.Get(t.Context(), ref); err != nil || c.Measured == nil ||
		c.Measured.Tokens > 15000 {
		t.Errorf("%+v, %v", c.Measured, err)
	}
}

// Whatever appends, compactions, undos, replies, changes of model and of state do to each other: every message is
// there once and in order, nothing is compacted twice at a time, no lease is broken, and the context is one that an
// API takes.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(12000),
		`{"trigger":{"start":{"unused_percent":0.6},"apply":{"unused_percent":0.3}},"breaker":{"failures":1000}}`)
	const rounds = 25
	var mu sync.Mutex
	said := map[string]bool{}
	allowed := map[service.Code]bool{
		service.CodeReplyOpen: true, service.CodeNothingToUndo: true, service.CodeReplyEnded: true,
		service.CodeStale: true,
	}
	check := func(err error) bool {
		if err != nil && !allowed[codeOf(err)] {
			t.Error(err)
		}
		return err == nil
	}
	word := func(who string, i int) (string, json.RawMessage) {
		mark := fmt.Sprintf("%s-%d.", who, i)
		return mark, user(mark + " " + abc(150))
	}
	say := func(mark string) {
		mu.Lock()
		defer mu.Unlock()
		said[mark] = true
	}
	workers := map[string]func(i int){
		"append": func(i int) {
			mark, m := word("append", i)
			if _, err := s.Append(t.Context(), ref, service.AppendRequest{Messages: []json.RawMessage{m}}); check(err) {
				say(mark)
			}
		},
		"reply": func(i int) {
			reply, err := s.OpenReply(t.Context(), ref, time.Minute, service.ContextRequest{})
			if !check(err) {
				return
			}
			version := reply.Context.Stats.Version
			if now, err := s.Context(t.Context(), ref, service.ContextRequest{}); check(err) &&
				now.Stats.Version != version && !undone(t, s, ref) {
				t.Errorf("a compaction took effect while a reply was open: version %d became %d", version,
					now.Stats.Version)
			}
			mark := fmt.Sprintf("reply-%d.", i)
			_, err = s.EndReply(t.Context(), ref, reply.ID,
				service.ReplyEnd{
					Messages: []json.RawMessage{assistant(mark + " " + abc(100))},
					Usage:    usage(reply.Context.Stats.Tokens, 100),
				})
			if check(err) {
				say(mark)
			}
		},
		"compact": func(int) {
			_, _, err := s.Compact(t.Context(), ref, service.CompactRequest{Wait: 2 * time.Second})
			check(err)
		},
		"undo": func(i int) {
			if i%3 == 0 {
				_, err := s.Undo(t.Context(), ref)
				check(err)
			}
		},
		"patch": func(i int) {
			tokens := 9000 + rand.IntN(6000)
			_, err := s.PatchConversation(t.Context(), ref,
				service.ConversationPatch{Model: &service.ModelPatch{ContextWindow: &tokens}})
			check(err)
		},
		"state": func(i int) {
			text := fmt.Sprintf("todo %d", i)
			_, err := s.PutState(t.Context(), ref, "todo", wire.StateValue{Text: &text})
			check(err)
		},
		"read": func(int) {
			c, err := s.Context(t.Context(), ref, service.ContextRequest{})
			if check(err) && strings.Count(sent(c), "<conversation_summary>") > 1 {
				t.Error("two summaries in one context")
			}
		},
	}
	var wg sync.WaitGroup
	for _, work := range workers {
		wg.Go(func() {
			for i := range rounds {
				work(i)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	idle(t, sys, ref)

	list, _, err := s.Messages(t.Context(), ref, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		if m.Seq != int64(i+1) {
			t.Fatalf("message %d has number %d", i+1, m.Seq)
		}
		for mark := range said {
			if strings.Contains(string(m.Native), mark) {
				delete(said, mark)
			}
		}
	}
	if len(said) > 0 {
		t.Errorf("lost: %v", said)
	}
	if _, err := s.Store.Evidence.CheckChain(t.Context(), ref, 0); err != nil {
		t.Error(err)
	}
	overlap(t, runsOf(t, s, ref))
	// What the user said last is there as it came: at the end, or before the answer to it.
	lastUser := ""
	for _, m := range list {
		if m.Genuine {
			lastUser = string(m.Native)
		}
	}
	if text := sent(contextOf(t, s, ref)); strings.Count(text, lastUser) != 1 {
		t.Errorf("the user's last message, %.60s, is not in %.300s", lastUser, text)
	}
}

// undone says whether an undo came in between: that may change a context under a reply.
func undone(t testing.TB, s *service.Service, ref storeRef) bool {
	t.Helper()
	markers, err := s.Store.Markers.List(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range markers {
		if m.Status == runs.MarkerUndone {
			return true
		}
	}
	return false
}

// overlap makes sure that no run was asked for while another one was unfinished.
func overlap(t testing.TB, list []runs.Run) {
	t.Helper()
	for i := 1; i < len(list); i++ {
		if newer, older := list[i-1], list[i]; older.Finished.IsZero() || newer.Created.Before(older.Finished) &&
			newer.Started.Before(older.Finished) {
			t.Errorf("run %s began before run %s had ended", newer.Ref.ID, older.Ref.ID)
		}
	}
}

// codeOf returns the code of an error of a Service.
func codeOf(err error) service.Code {
	var e *service.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return service.CodeInternal
}
