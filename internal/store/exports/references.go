package exports

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// mapped replaces a row's id if the store already has it.
func (im *importing) mapped(ctx context.Context, columns map[string]json.RawMessage, column, taken string,
	ids map[string]string,
) error {
	id := text(columns[column])
	if !db.PossibleID(id, 64) {
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

// refer replaces the ids in a row's references. It refuses a reference to a row outside the export, which would attach
// rows to another conversation.
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
			return db.Invalidf("%s names %.80s, which is not an earlier row of the export", ref.column, raw)
		}
		columns[ref.column] = quoted(id)
	}
	return nil
}
