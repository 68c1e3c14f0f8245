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

// A run is stored in the transaction of the messages that fired the trigger, so that both have the same timestamp.
func TestRunIsRequestedWithItsMessages(t *testing.T) {
	t.Parallel()
	s := newService(t)
	sameTime := func(ref storeRef, seq int64, run string) {
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
			t.Errorf("the message was created at %s and the run at %s", list[0].Created, r.Created)
		}
	}
	ref := create(t, s, window(10000), "")
	got := appendTo(t, s, ref, user("u1"), assistant(abc(9500)), user("u2"))
	if got.Run == nil {
		t.Fatalf("%+v", got.Trigger)
	}
	sameTime(ref, got.LastSeq, got.Run.ID)

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
	sameTime(ref, end.LastSeq, end.Run.ID)
	due, err := s.Store.Outbox.Claim(t.Context(), 10, time.Minute)
	if err != nil || len(due) != 2 {
		t.Errorf("%d workflows are to be started, %v", len(due), err)
	}
}

// While nothing fires, the trigger is evaluated on running sums alone. A message that cannot be parsed shows whether
// the context was built: a warning in the log.
func TestTriggerIsEvaluatedInConstantTime(t *testing.T) {
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
		t.Errorf("the context was not built at the limit: %+v", got.Trigger)
	}

	// The sums are over the limit and stay there, while the trimmed context is far below: it is measured only once.
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
		t.Errorf("the context was measured twice: %+v", got.Trigger)
	}

	// Opening a reply measures the context, also if the sums have not reached the limit.
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

// crowd is a conversation that several goroutines use at the same time.
type crowd struct {
	t   *testing.T
	s   *service.Service
	ref storeRef

	mu   sync.Mutex
	sent map[string]bool // the marks of the messages that were stored
}

// ok reports whether err is nil. An error that concurrent use does not explain fails the test.
func (c *crowd) ok(err error) bool {
	if err == nil {
		return true
	}
	switch codeOf(err) {
	case service.CodeReplyOpen, service.CodeNothingToUndo, service.CodeReplyEnded, service.CodeStale:
	default:
		c.t.Error(err)
	}
	return false
}

func (c *crowd) stored(mark string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[mark] = true
}

func (c *crowd) append(i int) {
	mark := fmt.Sprintf("append-%d.", i)
	_, err := c.s.Append(c.t.Context(), c.ref,
		service.AppendRequest{Messages: []json.RawMessage{user(mark + " " + abc(150))}})
	if c.ok(err) {
		c.stored(mark)
	}
}

func (c *crowd) reply(i int) {
	reply, err := c.s.OpenReply(c.t.Context(), c.ref, time.Minute, service.ContextRequest{})
	if !c.ok(err) {
		return
	}
	version := reply.Context.Stats.Version
	if now, err := c.s.Context(c.t.Context(), c.ref, service.ContextRequest{}); c.ok(err) &&
		now.Stats.Version != version && !undone(c.t, c.s, c.ref) {
		c.t.Errorf("a compaction took effect while a reply was open: version %d became %d", version, now.Stats.Version)
	}
	mark := fmt.Sprintf("reply-%d.", i)
	_, err = c.s.EndReply(c.t.Context(), c.ref, reply.ID,
		service.ReplyEnd{
			Messages: []json.RawMessage{assistant(mark + " " + abc(100))},
			Usage:    usage(reply.Context.Stats.Tokens, 100),
		})
	if c.ok(err) {
		c.stored(mark)
	}
}

func (c *crowd) compact(int) {
	_, _, err := c.s.Compact(c.t.Context(), c.ref, service.CompactRequest{Wait: 2 * time.Second})
	c.ok(err)
}

func (c *crowd) undo(i int) {
	if i%3 == 0 {
		_, err := c.s.Undo(c.t.Context(), c.ref)
		c.ok(err)
	}
}

func (c *crowd) patch(int) {
	tokens := 9000 + rand.IntN(6000)
	_, err := c.s.PatchConversation(c.t.Context(), c.ref,
		service.ConversationPatch{Model: &service.ModelPatch{ContextWindow: &tokens}})
	c.ok(err)
}

func (c *crowd) putState(i int) {
	text := fmt.Sprintf("todo %d", i)
	_, err := c.s.PutState(c.t.Context(), c.ref, "todo", wire.StateValue{Text: &text})
	c.ok(err)
}

func (c *crowd) read(int) {
	got, err := c.s.Context(c.t.Context(), c.ref, service.ContextRequest{})
	if c.ok(err) && strings.Count(sent(got), "<conversation_summary>") > 1 {
		c.t.Error("two summaries in one context")
	}
}

// Appends, compactions, undos, replies and changes of model and state at the same time: every message is stored once
// and in order, at most one run is active, no compaction takes effect under a reply, and the context is valid.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(12000),
		`{"trigger":{"start":{"unused_percent":0.6},"apply":{"unused_percent":0.3}},"breaker":{"failures":1000}}`)
	const rounds = 25
	c := &crowd{t: t, s: s, ref: ref, sent: map[string]bool{}}
	var wg sync.WaitGroup
	for _, work := range []func(i int){c.append, c.reply, c.compact, c.undo, c.patch, c.putState, c.read} {
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

	lastUser := c.checkMessages()
	if _, err := s.Store.Evidence.CheckChain(t.Context(), ref, 0); err != nil {
		t.Error(err)
	}
	overlap(t, runsOf(t, s, ref))
	// The user's last message is in the context verbatim, wherever the tail begins.
	if text := sent(contextOf(t, s, ref)); strings.Count(text, lastUser) != 1 {
		t.Errorf("the user's last message, %.60s, is not in %.300s", lastUser, text)
	}
}

// checkMessages checks that the messages are numbered without a gap and that none is missing. It returns the last
// message of the user.
func (c *crowd) checkMessages() (lastUser string) {
	c.t.Helper()
	list, _, err := c.s.Messages(c.t.Context(), c.ref, 0, 1000)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, m := range list {
		if m.Seq != int64(i+1) {
			c.t.Fatalf("message %d has number %d", i+1, m.Seq)
		}
		for mark := range c.sent {
			if strings.Contains(string(m.Native), mark) {
				delete(c.sent, mark)
			}
		}
		if m.Genuine {
			lastUser = string(m.Native)
		}
	}
	if len(c.sent) > 0 {
		c.t.Errorf("lost: %v", c.sent)
	}
	return lastUser
}

// undone reports whether a compaction was undone. Unlike a compaction, an undo may change the context under a reply.
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

// overlap checks that no run was requested while another one was unfinished.
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
func codeOf(err error) wire.Code {
	var e *service.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return service.CodeInternal
}
