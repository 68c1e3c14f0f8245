// Package term writes for a person at a terminal: tables, lists of facts, numbers, times and a progress line.
package term

import (
	"io"
	"slices"
	"text/tabwriter"
)

// Table aligns rows in columns. Empty cells become a hyphen, so that every column can be cut out by a program.
type Table struct{ Rows [][]string }

func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range t.Rows {
		for i, c := range cells {
			if c == "" {
				c = "-"
			}
			if i > 0 {
				_, _ = io.WriteString(tw, "\t")
			}
			_, _ = io.WriteString(tw, OneLine(c))
		}
		_, _ = io.WriteString(tw, "\n")
	}
	return tw.Flush()
}

// LineWidth is how wide what a person reads is, in chars: what every terminal has. --wide is for more.
const LineWidth = 80

// Fit clips the cells of the flexible columns until every row has room in a line: the first of them down to its least,
// which is its heading or seven chars, then the next.
func (t *Table) Fit(flexible ...int) {
	const gap, least = 2, 7
	widths := []int{}
	for _, cells := range t.Rows {
		for i, c := range cells {
			for len(widths) <= i {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(OneLine(c))))
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
		if len(t.Rows) == 0 || i >= len(t.Rows[0]) {
			return least
		}
		return max(least, len([]rune(t.Rows[0][i])))
	}
	for _, i := range flexible {
		if i < len(widths) {
			widths[i] -= max(0, min(total()-LineWidth, widths[i]-floor(i)))
		}
	}
	for _, cells := range t.Rows {
		for i, c := range cells {
			if slices.Contains(flexible, i) {
				cells[i] = Clip(OneLine(c), widths[i])
			}
		}
	}
}
