package draw

import (
	"testing"

	"precis/internal/api/wire"
)

func TestCosts(t *testing.T) {
	t.Parallel()
	models := []wire.RunModelUsage{{Model: "a/x"}, {Model: "b/y"}}
	for _, tt := range []struct {
		cost        *wire.RunCost
		cell, words string
	}{
		{&wire.RunCost{}, "$0", "$0"},
		{&wire.RunCost{USD: 0.00001}, "<$0.0001", "<$0.0001"},
		{&wire.RunCost{USD: 0.01234}, "$0.01", "$0.0123"},
		{&wire.RunCost{USD: 12.345}, "$12.35", "$12.35"},
		{
			&wire.RunCost{USD: 1.5, NoPriceFor: []string{"b/y"}}, "$1.50+",
			"$1.50, and no price for b/y (configure prices.b/y)",
		},
		{nil, "", "no price for a/x, b/y (configure prices.a/x)"},
	} {
		if got := CostCell(tt.cost); got != tt.cell {
			t.Errorf("%+v: cell %q, want %q", tt.cost, got, tt.cell)
		}
		if got := Cost(tt.cost, models); got != tt.words {
			t.Errorf("%+v: words %q, want %q", tt.cost, got, tt.words)
		}
	}
}
