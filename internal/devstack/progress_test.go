package devstack

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	t.Parallel()
	var told []Event
	opts := Options{Progress: func(e Event) { told = append(told, e) }}
	if err := opts.step("working", func(at func(string)) error { at("it"); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || told[0] != (Event{What: "working"}) || !told[1].Done || told[1].Elapsed <= 0 {
		t.Errorf("told %+v", told)
	}
	told = nil
	failed := errors.New("failed")
	if err := opts.step("working", func(func(string)) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if len(told) != 1 {
		t.Errorf("told %+v", told)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tell := Print(&out, "p: ")
	step := func(what string, seconds int) {
		tell(Event{What: what})
		for s := 1; s < seconds; s++ {
			tell(Event{What: what, Elapsed: time.Duration(s) * time.Second})
		}
		tell(Event{What: what, Elapsed: time.Duration(seconds) * time.Second, Done: true})
	}
	step("quick", 1)
	step("slow", 15)
	step("quick again", 1)
	want := "p: slow (2s)\np: slow (12s)\np: slow: done in 15s\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
