package exports

import (
	"context"
	"maps"
	"slices"
	"strings"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/evidence"
	"precis/internal/store/seals"
)

// finish compares the written rows with the export's seals, seals them here, and verifies the conversation.
func (im *importing) finish(ctx context.Context) (Imported, error) {
	if im.cid == 0 {
		return Imported{}, db.Invalidf("the export has no conversation")
	}
	if im.seals != (seals.Head{Seals: im.sealSeq, Chain: im.sealChain}) {
		return Imported{}, db.Invalidf("the seals end at %d, and the conversation has %d: rows are missing",
			im.seals.Seals, im.sealSeq)
	}
	if im.seenChain != im.eventChain {
		return Imported{}, db.Invalidf("the last event is not the one that the conversation names: rows are missing")
	}
	if im.active != im.last.ActiveMarker || im.epoch != im.last.Epoch {
		return Imported{}, db.Invalidf("the conversation's active_marker or epoch differs from the last seal")
	}
	if _, known := im.markers[im.active]; im.active != "" && !known {
		return Imported{}, db.Invalidf("the active marker is missing")
	}
	for _, id := range slices.Sorted(maps.Keys(im.runs)) {
		if _, sealed := im.newest[seals.OfRun(id)]; !sealed {
			return Imported{}, db.Invalidf("run %s has no seal", id)
		}
	}
	if _, err := im.tx.Exec(
		ctx, `UPDATE conversations SET active_marker = nullif($2, ''), event_chain = $3 WHERE cid = $1`,
		im.cid, im.markers[im.active], im.events[:]); err != nil {
		return Imported{}, badRow(err)
	}
	subjects, records := []seals.Subject{seals.OfConversation()}, []seals.Record{{}}
	for _, of := range im.subjects() {
		here := of
		switch of.Kind {
		case seals.Run:
			here.ID = im.runs[of.ID]
		case seals.Marker:
			here.ID = im.markers[of.ID]
		}
		read, err := seals.ReadRows(ctx, im.tx, im.cid, here)
		if err != nil {
			return Imported{}, err
		}
		if err := im.compare(im.newest[of], read[0]); err != nil {
			return Imported{}, err
		}
		if of.Kind == seals.Conversation {
			records[0] = seals.Record{Rows: read[0], Imported: &seals.ImportedFrom{
				Conversation: im.from.ID, Seals: im.seals.Seals, SealChain: im.seals.Chain, Before: im.origin,
				At: im.originAt,
			}}
			continue
		}
		subjects, records = append(subjects, here), append(records, seals.Record{Rows: read[0]})
	}
	for i := range im.pruned {
		subjects, records = append(subjects, seals.Subject{Kind: seals.Pruning, ID: db.NewID()}),
			append(records, seals.Record{Pruned: &im.pruned[i]})
	}
	if err := seals.Put(ctx, im.tx, im.cid, subjects, records); err != nil {
		return Imported{}, err
	}
	c, err := conversations.Find(ctx, im.tx, db.ConversationRef(im.to))
	if err != nil {
		return Imported{}, err
	}
	out := Imported{Conversation: c, Runs: im.runs, Rows: im.rows}
	err = im.tx.QueryRow(ctx, `SELECT count(*) FROM segments WHERE cid = $1 AND covers_from = 0`, im.cid).Scan(&out.Notes)
	if err != nil {
		return out, err
	}
	out.Pruned, err = im.verify(ctx, c)
	return out, err
}

func (im *importing) subjects() []seals.Subject {
	list := make([]seals.Subject, 0, len(im.newest))
	for of := range im.newest {
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b seals.Subject) int {
		return strings.Compare(string(a.Kind)+" "+a.ID, string(b.Kind)+" "+b.ID)
	})
	return list
}

// compare returns an error for a row that differs from a seal of the export in more than its new ids.
func (im *importing) compare(s seals.Seal, found []seals.Row) error {
	was, err := s.Rows()
	if err != nil {
		return db.Invalidf("%s", err)
	}
	is := make(map[string]seals.Row, len(found))
	for _, row := range found {
		row.Values = maps.Clone(row.Values) // the new seal must have the new ids
		for column, value := range row.Values {
			if value != nil {
				row.Values[column] = new(im.original(row.Table, column, *value))
			}
		}
		// The key in the export identifies the row.
		t, _ := seals.TableOf(s.Kind, row.Table)
		key := make([]string, len(t.Key))
		for i, name := range t.Key {
			key[i] = row.Value(name)
		}
		is[row.Table+" "+strings.Join(key, "/")] = row
	}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		row := was[id]
		now, there := is[id]
		if row.Table == "artifacts" {
			continue // checked by their content; the store may have had them before
		}
		if !there {
			return db.Invalidf("%s %s is missing", row.Table, row.Key)
		}
		for _, column := range slices.Sorted(maps.Keys(row.Values)) {
			if column == "batch" {
				continue
			}
			if value, known := now.Values[column]; known && !evidence.Same(row.Values[column], value) {
				return db.Invalidf("%s %s, %s: %s", row.Table, row.Key, column,
					evidence.Differs(row.Values[column], value))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(is)) {
		if _, sealed := was[id]; !sealed && is[id].Table != "artifacts" {
			return db.Invalidf("row %s has no seal", id)
		}
	}
	return nil
}

// original returns the value that a column had in the export.
func (im *importing) original(table, column, value string) string {
	switch {
	case column == "tenant":
		return im.from.Tenant
	case table == "conversations" && column == "id":
		return im.from.ID
	case column == "id", column == "run", column == "base", column == "replay_of", column == "original":
		for _, ids := range [...]map[string]string{im.runs, im.markers} {
			for was, is := range ids {
				if is == value {
					return was
				}
			}
		}
	}
	return value
}

// verify verifies the imported conversation before the commit, and returns the number of texts that were pruned.
func (im *importing) verify(ctx context.Context, c conversations.Conversation) (pruned int, err error) {
	v := evidence.Within(im.db, im.tx, c)
	messages, _, err := v.Messages(ctx)
	if err != nil {
		return 0, err
	}
	events, err := v.Events(ctx)
	if err != nil {
		return 0, err
	}
	seals, _, err := v.Seals(ctx)
	if err != nil {
		return 0, err
	}
	var texts evidence.Findings
	for _, run := range im.runs {
		refs, err := v.References(ctx, run)
		if err != nil {
			return 0, err
		}
		for _, r := range refs {
			if _, err := v.Artifact(ctx, &texts, r); err != nil {
				return 0, err
			}
		}
	}
	for _, f := range [...]evidence.Findings{messages, events, seals, texts} {
		pruned += f.Pruned
		for _, finding := range f.List {
			if finding.State != evidence.Pruned {
				return 0, db.Invalidf("%s %s, %s: %s", finding.Table, finding.Key, finding.Column, finding.Detail)
			}
		}
	}
	return pruned, nil
}
