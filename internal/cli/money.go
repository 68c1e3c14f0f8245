package cli

import (
	"fmt"
	"strings"

	"precis/internal/api/wire"
)

// dollars is a sum at a precision that still tells small ones apart.
func dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.0001:
		return "<$0.0001"
	case usd < 1:
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// costCell is a cost in a column: a plus behind it says that some calls have no price, a hyphen that none has.
func costCell(c *wire.RunCost) string {
	switch {
	case c == nil:
		return ""
	case len(c.NoPriceFor) > 0:
		return cents(c.USD) + "+"
	}
	return cents(c.USD)
}

// cents is a sum in a column: to the cent, where it has any.
func cents(usd float64) string {
	if usd >= 0.01 {
		return fmt.Sprintf("$%.2f", usd)
	}
	return dollars(usd)
}

// costWords are a run's cost, and which models have no price.
func costWords(c *wire.RunCost, models []wire.RunModelUsage) string {
	var unpriced []string
	if c == nil {
		for _, m := range models {
			unpriced = append(unpriced, m.Model)
		}
		return noPrice(unpriced)
	}
	if len(c.NoPriceFor) > 0 {
		return dollars(c.USD) + ", and " + noPrice(c.NoPriceFor)
	}
	return dollars(c.USD)
}

func noPrice(models []string) string {
	return "no price for " + strings.Join(models, ", ") + " (configure prices." + models[0] + ")"
}
