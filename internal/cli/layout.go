package cli

import (
	"slices"
	"strings"
)

// lineWidth is how wide what a person reads is, in chars: what every terminal has. --wide is for more.
const lineWidth = 80

// fit clips the cells of the flexible columns until every row has room in a line: the first of them down to its least,
// which is its heading or seven chars, then the next.
func (t *table) fit(flexible ...int) {
	const gap, least = 2, 7
	widths := []int{}
	for _, cells := range t.rows {
		for i, c := range cells {
			for len(widths) <= i {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(oneLine(c))))
		}
	}
	total := func() int {
		n := gap * (len(widths) - 1)
		for _, w := range widths {
			n += w
		}
		return n
	}
	floor := func(i int) int {
		if len(t.rows) == 0 || i >= len(t.rows[0]) {
			return least
		}
		return max(least, len([]rune(t.rows[0][i])))
	}
	for _, i := range flexible {
		if i < len(widths) {
			widths[i] -= max(0, min(total()-lineWidth, widths[i]-floor(i)))
		}
	}
	for _, cells := range t.rows {
		for i, c := range cells {
			if slices.Contains(flexible, i) {
				cells[i] = clip(oneLine(c), widths[i])
			}
		}
	}
}

// facts is a list of names and values, the values wrapped within a line.
type facts struct{ names, values []string }

func (f *facts) add(name, value string) {
	if value != "" {
		f.names, f.values = append(f.names, name), append(f.values, oneLine(value))
	}
}

func (f *facts) write(b *strings.Builder, width int) {
	column := 0
	for _, n := range f.names {
		column = max(column, len([]rune(n))+2)
	}
	for i, name := range f.names {
		label := name + strings.Repeat(" ", column-len([]rune(name)))
		for _, line := range wrap(f.values[i], width-column) {
			b.WriteString(label + line + "\n")
			label = strings.Repeat(" ", column)
		}
	}
}

// short writes a number in at most four chars and a unit: 987, 61.2k, 1.4M.
func short(n int) string {
	switch {
	case n < 1000:
		return count(n)
	case n < 99_950:
		return tenths(n, 1000) + "k"
	case n < 999_500:
		return count((n+500)/1000) + "k"
	case n < 99_950_000:
		return tenths(n, 1_000_000) + "M"
	}
	return count((n+500_000)/1_000_000) + "M"
}

// tenths is n/unit, rounded to one digit behind the point.
func tenths(n, unit int) string {
	t := (n*10 + unit/2) / unit
	return count(t/10) + "." + count(t%10)
}
