package runreport_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/runreport"
	"precis/internal/store/runs"
)

func TestCostOf(t *testing.T) {
	t.Parallel()
	prices := map[string]config.Price{
		"a/full":  {Input: 3, CachedInput: 0.5, CacheWrite: 4, Output: 15},
		"a/plain": {Input: 2, Output: 8},
		"a/free":  {},
	}
	call := func(model string, input, cached, output int64) wire.RunModelUsage {
		return wire.RunModelUsage{Model: model, Input: input, CachedInput: cached, Output: output, Calls: 1}
	}
	for _, tt := range []struct {
		name   string
		models []wire.RunModelUsage
		want   *wire.RunCost
	}{
		{"no call", nil, &wire.RunCost{}},
		{
			"cache",
			[]wire.RunModelUsage{call("a/full", 1_000_000, 400_000, 100_000)},
			&wire.RunCost{USD: 0.6*3 + 0.4*0.5 + 0.1*15},
		},
		{
			"cache without a price of its own",
			[]wire.RunModelUsage{call("a/plain", 1_000_000, 400_000, 0)},
			&wire.RunCost{USD: 2},
		},
		{"cache written", []wire.RunModelUsage{{
			Model: "a/full", Input: 1_000_000, CachedInput: 400_000,
			CacheWrite: 200_000, Calls: 1,
		}}, &wire.RunCost{USD: 0.4*3 + 0.4*0.5 + 0.2*4}},
		{
			"cache written without a price of its own",
			[]wire.RunModelUsage{{Model: "a/plain", Input: 1_000_000, CacheWrite: 200_000, Calls: 1}},
			&wire.RunCost{USD: 2},
		},
		{"a price of nothing", []wire.RunModelUsage{call("a/free", 1_000_000, 0, 5)}, &wire.RunCost{}},
		{"no price", []wire.RunModelUsage{call("b/x", 5, 0, 5)}, nil},
		{
			"some without",
			[]wire.RunModelUsage{call("b/y", 5, 0, 5), call("a/plain", 500_000, 0, 0), call("b/x", 5, 0, 5)},
			&wire.RunCost{USD: 1, NoPriceFor: []string{"b/x", "b/y"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runreport.CostOf(tt.models, prices)
			if (got == nil) != (tt.want == nil) {
				t.Fatalf("got %+v, want %+v", got, tt.want)
			}
			if got == nil {
				return
			}
			if math.Abs(got.USD-tt.want.USD) > 1e-9 || !cmp.Equal(got.NoPriceFor, tt.want.NoPriceFor) {
				t.Errorf("got %+v, want %+v", *got, *tt.want)
			}
		})
	}
}

// A marker that was taken back says when; one that counts, or was discarded, was not undone.
func TestUndone(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for status, undone := range map[runs.MarkerStatus]bool{
		runs.MarkerUndone: true, runs.MarkerApplied: false,
		runs.MarkerDiscarded: false,
	} {
		r := runreport.Of(runs.Run{
			Outcome: precis.OutcomeApplied, Marker: "m", MarkerStatus: status,
			MarkerEnded: ended,
		})
		if got := r.Undone != nil; got != undone || undone && !r.Undone.Equal(ended) {
			t.Errorf("%s: undone %v", status, r.Undone)
		}
		if r.MarkerStatus != status {
			t.Errorf("%s: status %s", status, r.MarkerStatus)
		}
	}
}
