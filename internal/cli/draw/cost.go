package draw

import (
	"strings"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
)

// CostCell returns a cost for a column. A plus behind it means that some calls have no price, a hyphen that none has.
func CostCell(c *wire.RunCost) string {
	switch {
	case c == nil:
		return ""
	case len(c.NoPriceFor) > 0:
		return term.Cents(c.USD) + "+"
	}
	return term.Cents(c.USD)
}

// Cost returns the cost of a run, and which models have no price.
func Cost(c *wire.RunCost, models []wire.RunModelUsage) string {
	var unpriced []string
	if c == nil {
		for _, m := range models {
			unpriced = append(unpriced, m.Model)
		}
		return NoPrice(unpriced)
	}
	if len(c.NoPriceFor) > 0 {
		return term.Dollars(c.USD) + ", and " + NoPrice(c.NoPriceFor)
	}
	return term.Dollars(c.USD)
}

func NoPrice(models []string) string {
	return "no price for " + strings.Join(models, ", ") + " (configure prices." + models[0] + ")"
}
