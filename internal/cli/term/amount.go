package term

import "fmt"

// Dollars formats an amount at a precision that still distinguishes small amounts.
func Dollars(usd float64) string {
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

// Cents formats an amount for a column: to the cent, if it is at least one.
func Cents(usd float64) string {
	if usd >= 0.01 {
		return fmt.Sprintf("$%.2f", usd)
	}
	return Dollars(usd)
}

// Short formats a number in at most four chars and a unit: 987, 61.2k, 1.4M.
func Short(n int) string {
	switch {
	case n < 1000:
		return Count(n)
	case n < 99_950:
		return tenths(n, 1000) + "k"
	case n < 999_500:
		return Count((n+500)/1000) + "k"
	case n < 99_950_000:
		return tenths(n, 1_000_000) + "M"
	}
	return Count((n+500_000)/1_000_000) + "M"
}

// tenths returns n/unit, rounded to one digit after the point.
func tenths(n, unit int) string {
	t := (n*10 + unit/2) / unit
	return Count(t/10) + "." + Count(t%10)
}
