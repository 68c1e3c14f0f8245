package devstack

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	t.Parallel()
	var events []Event
	opts := Options{Progress: func(e Event) { events = append(events, e) }}
	if err := opts.step("working", func(at func(string)) error { at("it"); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(events) != 2 || events[0] != (Event{What: "working"}) || !events[1].Done || events[1].Elapsed <= 0 {
		t.Errorf("events %+v", events)
	}
	events = nil
	failed := errors.New("failed")
	if err := opts.step("working", func(func(string)) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if len(events) != 1 {
		t.Errorf("events %+v", events)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	printEvent := Print(&out, "p: ")
	step := func(what string, seconds int) {
		printEvent(Event{What: what})
		for s := 1; s < seconds; s++ {
			printEvent(Event{What: what, Elapsed: time.Duration(s) * time.Second})
		}
		printEvent(Event{What: what, Elapsed: time.Duration(seconds) * time.Second, Done: true})
	}
	step("quick", 1)
	step("slow", 15)
	step("quick again", 1)
	want := "p: slow (2s)\np: slow (12s)\np: slow: done in 15s\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
