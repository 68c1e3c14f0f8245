package pipeline

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestFairShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sizes  []int
		budget int
		want   []int
	}{
		{nil, 10, []int{}},
		{[]int{5, 1, 3}, 100, []int{5, 1, 3}},
		{[]int{5, 1, 3}, 9, []int{5, 1, 3}},
		{[]int{100, 10, 100}, 110, []int{50, 10, 50}},
		{[]int{100, 100, 100}, 100, []int{33, 33, 34}},
		{[]int{1000, 2, 500, 30}, 132, []int{50, 2, 50, 30}},
		{[]int{7, 7}, 0, []int{0, 0}},
		{[]int{7, 7}, -3, []int{0, 0}},
		{[]int{-7, 7}, 5, []int{0, 5}},
	} {
		if got := fairShare(tt.sizes, tt.budget); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("fairShare(%v, %d) = %v, want %v", tt.sizes, tt.budget, got, tt.want)
		}
	}
}

func TestFairShareIsMaxMinFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOf(rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 100_000))).Draw(t, "sizes")
		budget := rapid.OneOf(rapid.IntRange(-5, 100), rapid.IntRange(0, 1_000_000)).Draw(t, "budget")
		alloc := fairShare(sizes, budget)
		total, short := 0, -1 // short: the largest allocation that is less than its size
		for i, n := range alloc {
			if n < 0 || n > sizes[i] {
				t.Fatalf("allocation %d of size %d", n, sizes[i])
			}
			total += n
			if n < sizes[i] {
				short = max(short, n)
			}
		}
		if total > max(budget, 0) {
			t.Fatalf("%d of %d given away", total, budget)
		}
		if short < 0 {
			return // all are whole
		}
		if total != max(budget, 0) {
			t.Fatalf("%d of %d used, and not all are whole: %v of %v", total, budget, alloc, sizes)
		}
		// One that is short could grow only from one that has more. But for the odd units, none has.
		for i, n := range alloc {
			if n > short+1 || n < sizes[i] && n < short-1 {
				t.Fatalf("%d has %d while another of more is held to %d: %v of %v", i, n, short, alloc, sizes)
			}
		}
	})
}

func BenchmarkFairShare(b *testing.B) {
	sizes := make([]int, 20_000)
	for i := range sizes {
		sizes[i] = i * 7919 % 5000
	}
	for b.Loop() {
		fairShare(sizes, 3_200_000)
	}
}
