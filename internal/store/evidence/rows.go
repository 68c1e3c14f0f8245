package evidence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"precis/internal/store/seals"
)

// compareSeals compares two seals of one subject. A column that precis never changes and that differs was tampered with
// before the second seal was written.
func compareSeals(f *Findings, before, after seals.Seal) {
	was, err := before.Rows()
	if err != nil {
		return // the hash of the record is right, and this build cannot read it
	}
	is, err := after.Rows()
	if err != nil {
		return
	}
	early := before.Rule() < 1
	for _, id := range slices.Sorted(maps.Keys(was)) {
		row := was[id]
		t, known := seals.TableOf(before.Kind, row.Table)
		now, there := is[id]
		switch {
		case !known:
		case !there && (row.Table == "stage_results" || row.Table == "artifacts"):
			// They are deleted with the conversation's content. Another check finds those that must exist.
		case !there:
			f.add(Missing, row.Table, row.Key, "",
				"the row was there when seal %d was written, and not for seal %d", before.N, after.N)
		default:
			for _, column := range slices.Sorted(maps.Keys(row.Values)) {
				if !Same(row.Values[column], now.Values[column]) && !slices.Contains(t.Changes, column) &&
					(t.Open == nil || !t.Open(row)) && !(early && t.FilledLate(row, column)) {
					f.add(Tampered, row.Table, row.Key, column,
						"the value changed between seals %d and %d, and precis never changes it", before.N, after.N)
				}
			}
		}
	}
}

// compareRows compares the rows of a subject with its newest seal.
func (v *Verification) compareRows(ctx context.Context, f *Findings, s seals.Seal) error {
	sealed, err := s.Rows()
	if errors.Is(err, seals.ErrForm) {
		f.add(Missing, "seals", fmt.Sprint(s.N), "record", "%s", err)
		return nil
	}
	if err != nil {
		f.add(Tampered, "seals", fmt.Sprint(s.N), "record", "the record cannot be read: %s", err)
		return nil
	}
	read, err := seals.ReadRows(ctx, v.tx, v.Conversation.CID, seals.Subject{Kind: s.Kind, ID: s.Subject})
	if err != nil {
		return err
	}
	f.Checked++
	found := make(map[string]seals.Row, len(read[0]))
	for _, row := range read[0] {
		found[row.Table+" "+row.Key] = row
	}
	for _, id := range slices.Sorted(maps.Keys(sealed)) {
		row := sealed[id]
		now, there := found[id]
		if !there {
			switch {
			case row.Table == "enrichments" && !v.Conversation.ContentDeleted.IsZero():
				f.add(Pruned, row.Table, row.Key, "", "it went with the conversation's content")
			case row.Table != "artifacts": // another check finds missing artifacts
				f.add(Missing, row.Table, v.rowKey(s, row), "", "the row was there when seal %d was written", s.N)
			}
			continue
		}
		for _, column := range slices.Sorted(maps.Keys(row.Values)) {
			value, known := now.Values[column]
			if known && !Same(row.Values[column], value) && !v.foreign(row, column) {
				f.add(Tampered, row.Table, v.rowKey(s, row), column, "%s", Differs(row.Values[column], value))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if _, ok := sealed[id]; !ok && found[id].Table != "artifacts" {
			f.add(Tampered, found[id].Table, v.rowKey(s, found[id]), "",
				"the row was not there when seal %d was written", s.N)
		}
	}
	return nil
}

// rowKey returns a row's key with the run that it belongs to.
func (v *Verification) rowKey(s seals.Seal, row seals.Row) string {
	if s.Kind == seals.Run && row.Table != "runs" && row.Table != "artifacts" {
		return s.Subject + "/" + row.Key
	}
	return row.Key
}

// maxShown bounds a value in a finding's detail, in bytes.
const maxShown = 60

// Differs describes what a value was and is. Values that may be text of the conversation are hashes in the seals
// already.
func Differs(was, is *string) string {
	show := func(s *string) string {
		switch {
		case s == nil:
			return "empty"
		case len(*s) > maxShown:
			return fmt.Sprintf("%q…", (*s)[:maxShown])
		}
		return fmt.Sprintf("%q", *s)
	}
	return fmt.Sprintf("it was %s and is %s", show(was), show(is))
}

// Same reports whether both values are NULL, or both are the same text.
func Same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// foreign reports whether a column says who wrote an artifact first, in a conversation whose content was deleted:
// another conversation may have written the same text since.
func (v *Verification) foreign(row seals.Row, column string) bool {
	return row.Table == "artifacts" && (column == "created_at" || column == "kind") &&
		!v.Conversation.ContentDeleted.IsZero()
}
