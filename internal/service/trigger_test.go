package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/pipeline"
)

// The trigger compares the tokens of one request, as reported by the vendor if plausible, else as estimated.
func TestTriggerFigures(t *testing.T) {
	t.Parallel()
	s := newService(t)

	t.Run("usage is that of one request, not a sum", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(32000), "")
		var got wire.Appended
		for range 30 {
			appendTo(t, s, ref, user("q"))
			got = answered(t, s, ref, "r", 2000, 100)
		}
		if got.UsedTokens != 2100 || got.Estimated || got.Trigger.Fired || got.Run != nil {
			t.Errorf("%+v", got)
		}
		if n := len(runsOf(t, s, ref)); n != 0 {
			t.Errorf("%d runs", n)
		}
	})
	t.Run("Han characters count", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(64000), `{"trigger":{"auto":false}}`)
		got := appendTo(t, s, ref, user(strings.Repeat("漢字", 15000)), assistant("好"), user("続けて"))
		if got.UsedTokens < 18000 || !got.Estimated {
			t.Errorf("%d tokens, estimated %t", got.UsedTokens, got.Estimated)
		}
	})
	t.Run("the estimate is scaled by the last reported usage", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(13000), "")
		appendTo(t, s, ref, user("u1"))
		got := answered(t, s, ref, strings.Repeat("word ", 3500), 12000, 100)
		if !got.Trigger.Fired || got.UsedTokens != 12100 {
			t.Fatalf("%+v", got.Trigger)
		}
		got = appendTo(t, s, ref, user(abc(300)))
		if got.UsedTokens < 12100+900 {
			t.Errorf("%d tokens: what came since is not scaled", got.UsedTokens)
		}
	})
	t.Run("zero usage falls back to the estimate", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(16000), `{"trigger":{"auto":false}}`)
		appendTo(t, s, ref, user("u1"))
		got := answered(t, s, ref, abc(15500), 0, 0)
		if got.UsedTokens < 14000 || !got.Estimated || !got.Trigger.OverLimit {
			t.Errorf("%+v", got.Trigger)
		}
	})
	t.Run("usage far above the window is ignored", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(32000), "")
		appendTo(t, s, ref, user("u1"))
		got := answered(t, s, ref, abc(3000), 500000, 1)
		if !got.Trigger.Implausible || got.Trigger.Fired || got.UsedTokens > 10000 || !got.Estimated {
			t.Errorf("%+v", got.Trigger)
		}
	})
	t.Run("usage of a truncated prompt is ignored", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(32768), `{"trigger":{"auto":false}}`)
		appendTo(t, s, ref, user("u1"))
		answered(t, s, ref, abc(50000), 16386, 10)
		got := appendTo(t, s, ref, user("u2"))
		if got.UsedTokens <= 29491 || !got.Trigger.Implausible {
			t.Errorf("%+v", got.Trigger)
		}
	})
}

// The limit follows from the window, the output reserve and the settings.
func TestTriggerLimits(t *testing.T) {
	t.Parallel()
	s := newService(t)

	t.Run("room for the agent's output is reserved", func(t *testing.T) {
		t.Parallel()
		n := window(10000)
		n.Model.MaxOutput = 4000
		ref := create(t, s, n, "")
		appendTo(t, s, ref, user("u1"))
		got := answered(t, s, ref, "a", 6500, 10)
		if !got.Trigger.Fired || got.Trigger.Limit != 6000 || got.Run == nil {
			t.Errorf("%+v", got.Trigger)
		}
	})
	t.Run("limits are inclusive, and a configured one takes precedence", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(10000), `{"trigger":{"auto":false}}`)
		appendTo(t, s, ref, user("u1"))
		if got := answered(t, s, ref, "a", 8990, 9); got.Trigger.OverLimit || got.Trigger.Limit != 9000 {
			t.Errorf("8999: %+v", got.Trigger)
		}
		appendTo(t, s, ref, user("u2"))
		if got := answered(t, s, ref, "a", 8990, 10); !got.Trigger.OverLimit {
			t.Errorf("9000: %+v", got.Trigger)
		}
		c, err := s.PatchConversation(t.Context(), ref,
			service.ConversationPatch{Settings: json.RawMessage(`{"trigger":{"token_limit":5000}}`)})
		if err != nil || c.State.Trigger.Limit != 5000 || c.State.Trigger.Fired {
			t.Errorf("%+v, %v", c.State, err)
		}
	})
	t.Run("a small window has no reserve for an unknown output", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(16384), "")
		var got wire.Appended
		for i := range 10 {
			appendTo(t, s, ref, user(fmt.Sprintf("q%d", i)))
			got = answered(t, s, ref, abc(100), 1200, 100)
		}
		if got.Trigger.Limit < 8000 || got.Trigger.Limit > 14745 || len(runsOf(t, s, ref)) != 0 {
			t.Errorf("%+v", got.Trigger)
		}
	})
	t.Run("an unknown window is guessed and reported as guessed", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, service.NewConversation{}, "")
		if got := appendTo(t, s, ref, user("u")); !got.Trigger.WindowGuessed ||
			got.Trigger.Window != pipeline.DefaultContextWindow {
			t.Errorf("%+v", got.Trigger)
		}
	})
	t.Run("turns to summarize", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(100000), `{"trigger":{"turns":3}}`)
		for i := range 3 {
			if got := appendTo(t, s, ref, user("u"), assistant("a")); got.Trigger.Fired {
				t.Fatalf("turn %d: %+v", i+1, got.Trigger)
			}
		}
		if got := appendTo(t, s, ref, user("u")); !got.Trigger.Fired || got.Trigger.Kind != pipeline.TriggerTurns {
			t.Errorf("%+v", got.Trigger)
		}
	})
	t.Run("a smaller window fires it", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(200000), "")
		appendTo(t, s, ref, user("u1"), assistant(abc(60000)), user("u2"))
		small := 32000
		c, err := s.PatchConversation(t.Context(), ref,
			service.ConversationPatch{Model: &service.ModelPatch{ContextWindow: &small}})
		if err != nil || c.State.Run == "" || len(runsOf(t, s, ref)) != 1 {
			t.Errorf("%+v, %v", c.State, err)
		}
	})
}

// An error of the agent's model call fires the trigger only if it means that the context is too large.
func TestTriggerAfterAFailedReply(t *testing.T) {
	t.Parallel()
	s := newService(t)

	t.Run("auto=false never starts a run, also on overflow", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(16000), `{"trigger":{"auto":false}}`)
		appendTo(t, s, ref, user("u1"))
		if got := answered(t, s, ref, abc(9000), 15990, 5); got.Trigger.Fired || !got.Trigger.OverLimit {
			t.Errorf("%+v", got.Trigger)
		}
		got := failedReply(t, s, ref, 400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`)
		if got.Trigger.Fired || !strings.Contains(got.Trigger.Reason, "trigger.auto") {
			t.Errorf("%+v", got.Trigger)
		}
		if n := len(runsOf(t, s, ref)); n != 0 {
			t.Errorf("%d runs", n)
		}
		if _, _, err := s.Compact(t.Context(), ref, service.CompactRequest{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a bare 429 on a small conversation is not an overflow", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(128000), "")
		appendTo(t, s, ref, user("how do I relaunch indexing?"))
		before := sent(contextOf(t, s, ref))
		if got := failedReply(t, s, ref, 429, ""); got.Trigger.Fired {
			t.Errorf("%+v", got.Trigger)
		}
		if n := len(runsOf(t, s, ref)); n != 0 {
			t.Errorf("%d runs", n)
		}
		if after := sent(contextOf(t, s, ref)); after != before {
			t.Errorf("the context was %s and is %s", before, after)
		}
	})
	t.Run("a limit per minute is not a window", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(128000), "")
		appendTo(t, s, ref, user("u1"), assistant(abc(300)), user("u2"))
		const body = `{"error":{"message":"Request too large for gpt-5 in organization o on tokens per min (TPM): ` +
			`Limit 30000, Requested 40322. The input or output tokens must be reduced in order to run ` +
			`successfully.","type":"tokens","code":"rate_limit_exceeded"}}`
		failedReply(t, s, ref, 429, body)
		if st := state(t, s, ref); st.LearnedWindow != 0 || st.Trigger.Window != 128000 {
			t.Errorf("learned a window of %d, the trigger's is %d", st.LearnedWindow, st.Trigger.Window)
		}
	})
	t.Run("the trigger is evaluated although the call failed", func(t *testing.T) {
		t.Parallel()
		ref := create(t, s, window(10000), "")
		appendTo(t, s, ref, user("u1"), assistant(abc(9500)), user("u2"))
		if n := len(runsOf(t, s, ref)); n != 1 {
			t.Fatalf("%d runs", n)
		}
		if got := failedReply(t, s, ref, 529,
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`); got.Run == nil ||
			!got.Trigger.Fired {
			t.Errorf("%+v", got)
		}
	})
}

// A child conversation does not affect its parent.
func TestTriggerOfAChildConversation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	parent, child := create(t, s, window(10000), ""), create(t, s, window(10000), "")
	appendTo(t, s, parent, user("P1"))
	answered(t, s, parent, "PA", 500, 5)
	appendTo(t, s, child, user("C1"))
	if got := answered(t, s, child, abc(9000), 9500, 10); !got.Trigger.Fired {
		t.Errorf("%+v", got.Trigger)
	}
	if st := state(t, s, parent); st.UsedTokens != 505 || st.Estimated || len(runsOf(t, s, parent)) != 0 {
		t.Errorf("%+v", st)
	}
}

// failedReply opens a reply and ends it with a vendor's error.
func failedReply(t testing.TB, s *service.Service, ref storeRef, status int, body string) wire.Appended {
	t.Helper()
	reply, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.EndReply(t.Context(), ref, reply.ID,
		service.ReplyEnd{Error: &service.ReplyError{Status: status, Body: []byte(body)}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// With automatic compaction switched off the agent learns what would have started one, by the exact size.
func TestAutoOffTellsWhatWouldHaveStarted(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(10000), `{"trigger":{"auto":false},"tool_result_keep_turns":1}`)
	// Sums alone would be over the limit: what is trimmed when the context is written is in them.
	got := appendTo(t, s, ref, user("u1"), toolCall("c1"), toolResult("c1", abc(9000)), assistant("a"), user("u2"),
		assistant("b"), user("u3"))
	if got.Trigger.Fired || got.Trigger.Kind != "" || got.Run != nil || got.UsedTokens > 2000 {
		t.Errorf("below the limit: %+v", got.Trigger)
	}
	got = appendTo(t, s, ref, user(abc(9000)))
	if got.Trigger.Fired || got.Trigger.Kind != pipeline.TriggerTokens || got.Run != nil {
		t.Errorf("above: %+v", got.Trigger)
	}
	reply, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got, err = s.EndReply(t.Context(), ref, reply.ID, service.ReplyEnd{Error: &service.ReplyError{
		Status: 400, Body: []byte(`{"error":{"message":"This model's maximum context length is 10000 tokens. ` +
			`However, your messages resulted in 10100 tokens.","type":"invalid_request_error",` +
			`"code":"context_length_exceeded"}}`),
	}})
	if err != nil || got.Trigger.Fired || got.Trigger.Kind != pipeline.TriggerOverflow || got.Run != nil {
		t.Errorf("overflow: %+v, %v", got.Trigger, err)
	}
}
