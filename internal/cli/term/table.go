// Package term formats output for a terminal: tables, lists of facts, numbers, times and a progress line.
package term

import (
	"io"
	"slices"
	"text/tabwriter"
)

// Table aligns rows in columns. Empty cells become a hyphen, so that programs can select columns.
type Table struct{ Rows [][]string }

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the table to w.
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

// LineWidth is the width of output without --wide, in chars: every terminal has it.
const LineWidth = 80

// Fit clips the cells of the flexible columns until every row fits in a line: first the first of them, down to the
// width of its heading or seven chars, then the next.
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
