package devstack

import (
	"errors"
	"testing"
)

func TestBorrow(t *testing.T) {
	t.Parallel()

	t.Run("NothingRuns", func(t *testing.T) {
		t.Parallel()
		opts := Options{Dir: emptyDir(t), NoTemporal: true}
		if _, _, err := Borrow(t.Context(), opts, false); !errors.Is(err, ErrNotRunning) {
			t.Errorf("borrowed: %v", err)
		}
	})

	t.Run("TheLastOneTakesItDown", func(t *testing.T) {
		t.Parallel()
		opts := Options{Dir: emptyDir(t), NoTemporal: true}
		_, first, err := Borrow(t.Context(), opts, true)
		if err != nil {
			t.Fatal(err)
		}
		postgres := mustState(t, opts).Postgres.process
		// Once without asking for a start, once with.
		_, second, err := Borrow(t.Context(), opts, false)
		if err != nil {
			t.Fatal(err)
		}
		_, third, err := Borrow(t.Context(), opts, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, giveBack := range []func(){
			func() { err = first(t.Context()) }, func() { err = third(t.Context()) },
			func() { err = second(t.Context()) },
		} {
			if !postgres.running() {
				t.Fatalf("taken down while %d still had it", 3-i)
			}
			if giveBack(); err != nil {
				t.Error(err)
			}
		}
		mustEnd(t, postgres)
		if _, _, err := Borrow(t.Context(), opts, false); !errors.Is(err, ErrNotRunning) {
			t.Errorf("borrowed afterwards: %v", err)
		}
	})

	t.Run("OneThatIsUpStays", func(t *testing.T) {
		t.Parallel()
		opts := Options{Dir: emptyDir(t), NoTemporal: true}
		mustUp(t, opts)
		postgres := mustState(t, opts).Postgres.process
		_, giveBack, err := Borrow(t.Context(), opts, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := giveBack(t.Context()); err != nil {
			t.Error(err)
		}
		if !postgres.running() {
			t.Error("one that was up was taken down")
		}
	})

	t.Run("OneThatIsBroughtUpMeanwhileStays", func(t *testing.T) {
		t.Parallel()
		opts := Options{Dir: emptyDir(t), NoTemporal: true}
		_, giveBack, err := Borrow(t.Context(), opts, true)
		if err != nil {
			t.Fatal(err)
		}
		mustUp(t, opts)
		if err := giveBack(t.Context()); err != nil {
			t.Error(err)
		}
		if !mustState(t, opts).Postgres.running() {
			t.Error("one that was asked to stay was taken down")
		}
	})
}
