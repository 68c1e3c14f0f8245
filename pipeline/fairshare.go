package pipeline

import (
	"cmp"
	"slices"
)

// fairShare divides budget among sizes by max-min fairness: smallest first, each gets the lesser of its size and the
// fair share of what remains, rounded down, and what it leaves is added for the larger ones. So small sizes are met
// whole before a large one gets more, and no allocation can grow unless another one, as small or smaller, shrinks. The
// sum is never over budget; if not all sizes are met it is exactly budget. Among equal sizes the later ones get the odd
// units. Negative sizes and budgets count as zero. The cost is that of sorting the sizes.
func fairShare(sizes []int, budget int) []int {
	alloc := make([]int, len(sizes))
	remaining := max(budget, 0)
	for k, i := range ascending(sizes) {
		share := remaining / (len(sizes) - k)
		alloc[i] = min(max(sizes[i], 0), share)
		remaining -= alloc[i]
	}
	return alloc
}

// ascending returns the indexes of sizes, smallest size first, in their own order where sizes are equal.
func ascending(sizes []int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b)) })
	return order
}

// sum adds up sizes.
func sum(sizes []int) int {
	total := 0
	for _, n := range sizes {
		total += n
	}
	return total
}
