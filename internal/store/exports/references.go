package exports

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// mapped returns a row's id another one where the store has it already.
func (im *importing) mapped(ctx context.Context, columns map[string]json.RawMessage, column, taken string,
	ids map[string]string,
) error {
	id := text(columns[column])
	if !db.GoodID(id, 64) {
		return db.Invalidf("%s %q", column, id)
	}
	is, err := db.One(ctx, im.tx, pgx.RowTo[bool], taken, id)
	if err != nil {
		return err
	}
	ids[id] = id
	if is {
		ids[id] = db.NewID()
		columns[column] = quoted(ids[id])
	}
	return nil
}

// refer follows references to rows whose ids may be others here. They are rows of the same export: one that names any
// other row would write beside a conversation which is not the importer's.
func (im *importing) refer(table string, columns map[string]json.RawMessage) error {
	for _, ref := range [...]struct {
		column string
		ids    map[string]string
		tables []string
	}{
		{"run", im.runs, []string{"replays", "run_attempts", "stage_results", "usage_ledger", "markers"}},
		{"replay_of", im.runs, []string{"runs"}},
		{"original", im.runs, []string{"replays"}},
		{"base", im.markers, []string{"markers"}},
		{"marker", im.markers, []string{"segments"}},
	} {
		raw := columns[ref.column]
		if !slices.Contains(ref.tables, table) || len(raw) == 0 || string(raw) == "null" {
			continue
		}
		id, ok := ref.ids[text(raw)]
		if !ok {
			return db.Invalidf("%s names %.80s, which is not in the file before it", ref.column, raw)
		}
		columns[ref.column] = quoted(id)
	}
	return nil
}
