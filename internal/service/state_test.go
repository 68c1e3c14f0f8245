package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/testkit/vendorserver"
)

func TestState(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(100000), "")

	putText(t, s, ref, "plan", "first the tests")
	got, err := s.GetState(t.Context(), ref, "plan")
	if err != nil || got.Text == nil || *got.Text != "first the tests" || got.Version != 1 || got.Key != "plan" {
		t.Errorf("%+v, %v", got, err)
	}
	items := wire.StateValue{Items: []json.RawMessage{
		json.RawMessage(`"write it"`), json.RawMessage(`{"content":"test it","status":"in_progress"}`),
		json.RawMessage(`{"id": 7}`), json.RawMessage(`"two\nlines"`),
	}}
	if _, err := s.PutState(t.Context(), ref, "todo", items); err != nil {
		t.Fatal(err)
	}
	got, err = s.GetState(t.Context(), ref, "todo")
	if err != nil || got.Text != nil || len(got.Items) != 4 ||
		string(got.Items[1]) != `{"content":"test it","status":"in_progress"}` {
		t.Errorf("%+v, %v", got, err)
	}
	appendTo(t, s, ref, user("u1"))
	text := sent(contextOf(t, s, ref))
	if want := quoted("- write it\n- [in_progress] test it\n- {\"id\":7}\n- two\n  lines"); !strings.Contains(text,
		strings.Trim(want, `"`)) {
		t.Errorf("%s", text)
	}
	if _, err := s.PutState(t.Context(), ref, "x-own", items); err != nil {
		t.Error(err)
	}
	list, err := s.ListState(t.Context(), ref)
	if err != nil || len(list) != 3 || list[0].Key != "plan" || list[1].Key != "todo" || list[2].Key != "x-own" {
		t.Errorf("%+v, %v", list, err)
	}
	for range 2 {
		if err := s.DeleteState(t.Context(), ref, "plan"); err != nil {
			t.Error(err)
		}
	}
	_, err = s.GetState(t.Context(), ref, "plan")
	code(t, err, service.CodeNotFound)

	for _, key := range []string{"nope", "X-own", "x-", "", "conversation id"} {
		_, err := s.PutState(t.Context(), ref, key, wire.StateValue{})
		if e := code(t, err, service.CodeInvalid); e.Field != "key" {
			t.Errorf("%q: field %q", key, e.Field)
		}
	}
	text = "both"
	_, err = s.PutState(t.Context(), ref, "plan", wire.StateValue{Text: &text, Items: items.Items})
	code(t, err, service.CodeInvalid)
	_, err = s.PutState(t.Context(), ref, "plan", wire.StateValue{Items: []json.RawMessage{json.RawMessage(`7`)}})
	if e := code(t, err, service.CodeInvalid); e.Field != "items[0]" {
		t.Errorf("field %q", e.Field)
	}
}

// The context has each key once, with its current value, which does not change during a turn.
func TestStateInTheContext(t *testing.T) {
	t.Parallel()
	_, s := served(
		t, vendorserver.Script{Default: &vendorserver.Answer{Text: "<summary>S, and MODE-1 is what the mode " +
			"was.</summary>"}})
	ref := create(t, s, window(16000), "")
	count := func(what string) int {
		t.Helper()
		return strings.Count(sent(contextOf(t, s, ref)), what)
	}
	putText(t, s, ref, "mode", "MODE-X")
	putText(t, s, ref, "pins", "NEVER deploy on Fridays. Token: keep-7731.")
	appendTo(t, s, ref, user("u1"), assistant(abc(2000)))
	for range 3 {
		appendTo(t, s, ref, user("go on"), assistant(abc(2000)), user("and on"))
		if run := compact(t, s, ref, service.CompactRequest{}); run.Outcome != precis.OutcomeApplied {
			t.Fatalf("%+v", run)
		}
		if n := count("MODE-X"); n != 1 {
			t.Errorf("MODE-X occurs %d times", n)
		}
		if n := count("keep-7731"); n != 1 {
			t.Errorf("the pin occurs %d times", n)
		}
	}
	c := contextOf(t, s, ref)
	if !strings.Contains(string(c.Messages[0]), "<conversation_summary>") ||
		!strings.Contains(string(c.Messages[1]), "MODE-X") {
		t.Errorf("not in its place: %.300s", sent(c))
	}
	putText(t, s, ref, "mode", "MODE-Y")
	if count("MODE-X") != 1 || count("MODE-Y") != 0 {
		t.Error("it changed within the turn")
	}
	appendTo(t, s, ref, assistant("a"), user("the next turn"))
	if count("MODE-X") != 0 || count("MODE-Y") != 1 {
		t.Error("it did not change with the turn")
	}
	putText(t, s, ref, "mode", "")
	if run := compact(t, s, ref, service.CompactRequest{Focus: "again"}); run.Outcome != precis.OutcomeApplied {
		t.Fatalf("%+v", run)
	}
	if count("MODE-Y") != 0 {
		t.Error("it is there after it was removed, and a marker came")
	}
}
