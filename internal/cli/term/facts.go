package term

import "strings"

// Facts is a list of names and values. Long values are wrapped.
type Facts struct{ names, values []string }

// Add adds a fact, unless its value is empty.
func (f *Facts) Add(name, value string) {
	if value != "" {
		f.names, f.values = append(f.names, name), append(f.values, OneLine(value))
	}
}

func (f *Facts) Write(b *strings.Builder, width int) {
	column := 0
	for _, n := range f.names {
		column = max(column, len([]rune(n))+2)
	}
	for i, name := range f.names {
		label := name + strings.Repeat(" ", column-len([]rune(name)))
		for _, line := range Wrap(f.values[i], width-column) {
			b.WriteString(label + line + "\n")
			label = strings.Repeat(" ", column)
		}
	}
}
