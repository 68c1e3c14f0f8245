package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/testkit/vendorserver"
)

// Between two markers and within a turn each context is a strict prefix of the next, and repeated reads are the same
// bytes.
func TestContextsArePrefixes(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(30000), "")
	putText(t, s, ref, "todo", "one")
	for turn := range 6 {
		appendTo(t, s, ref, user(fmt.Sprintf("u%d", turn)))
		var last wire.Context
		for step := range 4 {
			id := fmt.Sprintf("c%d_%d", turn, step)
			appendTo(t, s, ref, toolCall(id), toolResult(id, strings.Repeat("line ", 600)))
			putText(t, s, ref, "todo", id)
			now := contextOf(t, s, ref)
			if again := contextOf(t, s, ref); sent(again) != sent(now) {
				t.Fatal("two reads differ")
			}
			if now.Stats.Version != last.Stats.Version {
				last = wire.Context{} // a marker came
			}
			if len(now.Messages) <= len(last.Messages) {
				t.Fatalf("turn %d, step %d: %d messages after %d", turn, step, len(now.Messages), len(last.Messages))
			}
			for i := range last.Messages {
				if !bytes.Equal(now.Messages[i], last.Messages[i]) {
					t.Fatalf("turn %d, step %d: message %d was %.200s and is %.200s", turn, step, i, last.Messages[i],
						now.Messages[i])
				}
			}
			last = now
		}
		appendTo(t, s, ref, assistant("done"))
		idle(t, sys, ref)
	}
}

// Far below the limit nothing is touched. An image in a message is not counted by its base64.
func TestContextIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, service.NewConversation{
		Model:  wire.Model{Vendor: "openai", Name: "test-agent", ContextWindow: 128000},
		System: json.RawMessage(`"be  careful"`), Tools: json.RawMessage(`[ {"type":"function"} ]`),
	}, "")
	image := json.RawMessage(
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			strings.Repeat("QUJD", 300000) + `"}},{"type":"text","text":"what is this?"}]}`)
	list := []json.RawMessage{image, toolCall("c1"), toolResult("c1", "small <&> \u2028")}
	got := appendTo(t, s, ref, list...)
	if got.Trigger.Fired || got.UsedTokens > 5000 {
		t.Errorf("%+v", got.Trigger)
	}
	c := contextOf(t, s, ref)
	if string(c.System) != `"be  careful"` || string(c.Tools) != `[ {"type":"function"} ]` || c.Format != "openai" {
		t.Errorf("%s %s %s", c.System, c.Tools, c.Format)
	}
	for i := range list {
		if !bytes.Equal(c.Messages[i], list[i]) {
			t.Errorf("message %d is not what was said", i)
		}
	}
	if !c.Stats.Estimated || c.Stats.Window != 128000 || c.Stats.Fraction <= 0 || c.Stats.Nudge ||
		c.Stats.HeadSeq != 3 {
		t.Errorf("%+v", c.Stats)
	}
}

func TestContextInAnotherFormat(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(100000), "")
	appendTo(t, s, ref, user("u1"), toolCall("c1"), toolResult("c1", "ok"), assistant("a1"), user("u2"))
	c, err := s.Context(t.Context(), ref, service.ContextRequest{Format: "anthropic"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{
		"model": "m", "max_tokens": 10, "messages": c.Messages,
		"tools": json.RawMessage(`[{"name":"cat","input_schema":{"type":"object"}}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := vendorserver.ValidateAnthropic(body); err != nil {
		t.Errorf("%v\n%s", err, body)
	}
	_, err = s.Context(t.Context(), ref, service.ContextRequest{Format: "morse"})
	if e := code(t, err, service.CodeInvalid); e.Field != "format" {
		t.Errorf("field %q", e.Field)
	}
	_, err = s.Context(t.Context(), ref, service.ContextRequest{MaxInputTokens: -1})
	code(t, err, service.CodeInvalid)
}

// Past the input budget the oldest turns go, whole; never the last one.
func TestInputBudget(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(100000), "")
	for i := range 10 {
		appendTo(t, s, ref, user(fmt.Sprintf("u%d", i)), assistant(abc(1000)))
	}
	appendTo(t, s, ref, user("LAST"))
	c, err := s.Context(t.Context(), ref, service.ContextRequest{MaxInputTokens: 4000})
	if err != nil {
		t.Fatal(err)
	}
	text := sent(c)
	if c.Stats.Trimmed.DroppedTurns == 0 || !strings.Contains(text, "LAST") || strings.Contains(text, `"u0"`) {
		t.Errorf("%+v", c.Stats.Trimmed)
	}
	if whole := contextOf(t, s, ref); whole.Stats.Trimmed.DroppedTurns != 0 {
		t.Errorf("%+v", whole.Stats.Trimmed)
	}
}

// Anthropic refuses thinking behind a summary of the client's, unless the request says that it may be dropped.
func TestContextWithThinking(t *testing.T) {
	t.Parallel()
	_, s := served(t, always("SUM"))
	n := service.NewConversation{
		Format: "anthropic",
		Model:  wire.Model{Vendor: "anthropic", Name: "test-agent", ContextWindow: 16000},
	}
	ref := create(t, s, n, "")
	thinking := json.RawMessage(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm",` +
		`"signature":"c2ln"},{"type":"tool_use","id":"t1","name":"read","input":{}}]}`)
	appendTo(t, s, ref, user("u1"), assistant(abc(3000)), user("u2"), thinking)
	if c := contextOf(t, s, ref); c.Options != nil {
		t.Errorf("%s without a summary", c.Options)
	}
	appendTo(t, s, ref, json.RawMessage(
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}`))
	if run := compact(t, s, ref, service.CompactRequest{}); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%+v", run)
	}
	c := contextOf(t, s, ref)
	if !strings.Contains(sent(c), string(thinking)) {
		t.Error("the thinking is not there as it came")
	}
	if !strings.Contains(string(c.Options), "clear_thinking_20251015") || len(c.Betas) != 1 {
		t.Errorf("%s %q", c.Options, c.Betas)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	sys, s := served(t, always("SUM"))
	ref := create(t, s, window(16000), "")
	got := appendWith(t, s, ref, service.AppendRequest{
		Messages: []json.RawMessage{user("env"), user("u1"), assistant(abc(3000)), user("u2")},
		Meta:     []service.Meta{{Kind: "user_info"}, {ID: "m1"}},
	})
	if got.LastSeq != 4 {
		t.Fatalf("%+v", got)
	}
	if run := compact(t, s, ref, service.CompactRequest{}); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%+v\n%s", run, steps(t, sys, ref))
	}
	list, more, err := s.Messages(t.Context(), ref, 1, 2)
	if err != nil || !more || len(list) != 2 || list[0].Seq != 2 || list[0].ID != "m1" || !list[0].Covered ||
		!list[0].Genuine {
		t.Errorf("%+v, %t, %v", list, more, err)
	}
	list, more, err = s.Messages(t.Context(), ref, 0, 0)
	if err != nil || more || len(list) != 4 || list[0].Covered || list[0].Kind != "user_info" || list[0].Genuine ||
		!list[2].Covered || list[3].Covered {
		t.Errorf("%+v, %t, %v", list, more, err)
	}
	if string(list[3].Native) != string(user("u2")) {
		t.Errorf("%s", list[3].Native)
	}
	list, more, err = s.Messages(t.Context(), ref, math.MaxInt64, 0)
	if err != nil || more || len(list) != 0 {
		t.Errorf("behind the largest number: %d messages, %t, %v", len(list), more, err)
	}
	_, _, err = s.Messages(t.Context(), ref, -1, 0)
	code(t, err, service.CodeInvalid)
	_, _, err = s.Messages(t.Context(), storeRef{Tenant: "other", ID: ref.ID}, 0, 0)
	code(t, err, service.CodeNotFound)
}
