package seals

import (
	"maps"
	"slices"
)

// Uncovered is a part of a conversation or of its export that no seal, chain or hash covers. A verification says
// nothing about it.
type Uncovered struct {
	// Part is a table, or a part of the export file.
	Part string `json:"part"`
	// Columns are those of the table, empty: all of it.
	Columns []string `json:"columns,omitempty"`
	// Why it is not covered.
	Why string `json:"why"`
}

// NotCovered lists what a verification says nothing about. The columns are those that Tables marks as working figures.
func NotCovered() []Uncovered {
	list := []Uncovered{
		{Part: "pruned texts", Why: "only their hashes are left: that one was pruned is covered, what it said is not"},
		{Part: "segments", Why: "the notes of agents, and files made from the messages"},
	}
	for _, kind := range slices.Sorted(maps.Keys(Tables)) {
		for _, t := range Tables[kind] {
			u := Uncovered{Part: t.Name, Why: working}
			for _, column := range slices.Sorted(maps.Keys(t.Unsealed)) {
				if t.Unsealed[column] == working {
					u.Columns = append(u.Columns, column)
				}
			}
			if len(u.Columns) > 0 {
				list = append(list, u)
			}
		}
	}
	return append(list, Uncovered{
		Part: "seals", Columns: []string{"created_at"}, Why: "the sealed rows have their own times",
	})
}

// NotCoveredInExport adds what an export file has besides the rows.
func NotCoveredInExport() []Uncovered {
	return append(NotCovered(), Uncovered{
		Part: "export header", Columns: []string{"code", "exported"},
		Why: "who wrote the file, and when, is not part of any record",
	})
}
