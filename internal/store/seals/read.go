package seals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Columns returns the names of the columns that a seal holds, and the SQL expressions of their values in the same
// order.
func (t Table) Columns() (names, expressions []string) {
	add := func(list []string, form string) {
		for _, name := range list {
			names = append(names, name)
			expressions = append(expressions, strings.ReplaceAll(form, "$", `"`+name+`"`))
		}
	}
	add(t.text, `$::text`)
	for _, name := range t.bytes {
		if strings.HasSuffix(name, "sha256") || strings.HasSuffix(name, "chain") || strings.HasSuffix(name, "hash") {
			add([]string{name}, `encode($, 'hex')`)
			continue
		}
		// A seal outlives the content, so it holds only its hash.
		add([]string{name}, `'sha256:' || encode(sha256($), 'hex')`)
	}
	add(t.times, `(extract(epoch FROM $) * 1000000)::bigint::text`)
	return names, expressions
}

func (t Table) query() string {
	_, expressions := t.Columns()
	return `SELECT ARRAY[` + strings.Join(expressions, ", ") + `]::text[] FROM ` + t.Name + ` WHERE ` + t.where +
		` ORDER BY ` + t.order
}

func (t Table) scan(row pgx.CollectableRow) (Row, error) {
	var values []*string
	if err := row.Scan(&values); err != nil {
		return Row{}, err
	}
	names, _ := t.Columns()
	out := Row{Table: t.Name, Values: make(map[string]*string, len(names))}
	for i, name := range names {
		out.Values[name] = values[i]
	}
	key := make([]string, len(t.Key))
	for i, name := range t.Key {
		key[i] = out.Value(name)
	}
	out.Key = strings.Join(key, "/")
	return out, nil
}

// ReadRows reads the rows that seals of the subjects would hold now.
func ReadRows(ctx context.Context, q batcher, cid int64, subjects ...Subject) ([][]Row, error) {
	rows := make([][]Row, len(subjects))
	batch := &pgx.Batch{}
	for i, of := range subjects {
		for _, t := range Tables[of.Kind] {
			batch.Queue(t.query(), cid, of.ID).Query(func(found pgx.Rows) error {
				list, err := pgx.CollectRows(found, t.scan)
				rows[i] = append(rows[i], list...)
				return err
			})
		}
	}
	return rows, q.SendBatch(ctx, batch).Close()
}

// batcher is implemented by a pool, a connection and a transaction.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// ErrForm is an intact seal whose form this build cannot read.
var ErrForm = errors.New("of a form that this version does not read; verify it with the version that wrote it")

// formerNames are the names that tables had in the seals and exports of earlier builds.
var formerNames = map[string]string{"run_steps": "run_attempts"}

// TableName returns the name that a table has now, given the name that it had in a seal or an export.
func TableName(recorded string) string {
	if name, renamed := formerNames[recorded]; renamed {
		return name
	}
	return recorded
}

// Rows returns the rows that the seal recorded, by table and key, under the names that tables have now.
func (s Seal) Rows() (map[string]Row, error) {
	var r Record
	if err := json.Unmarshal(s.Record, &r); err != nil {
		return nil, fmt.Errorf("read seal %d: %w", s.N, err)
	}
	if r.Form != Form {
		return nil, fmt.Errorf("seal %d is %w: %d", s.N, ErrForm, r.Form)
	}
	rows := make(map[string]Row, len(r.Rows))
	for _, row := range r.Rows {
		row.Table = TableName(row.Table)
		rows[row.Table+" "+row.Key] = row
	}
	return rows, nil
}

// Rule returns the rule under which the seal was written, see the constant Rule; 0 if the record cannot be read.
func (s Seal) Rule() int {
	var r struct {
		Rule int `json:"rule"`
	}
	if json.Unmarshal(s.Record, &r) != nil {
		return 0
	}
	return r.Rule
}

// FilledLate reports whether a build before rule 1 may have filled in an empty column of a run that ended without a
// marker.
func (t Table) FilledLate(row Row, column string) bool {
	switch row.Value("outcome") {
	case "cancelled", "failed", "skipped", "superseded":
	default:
		return false
	}
	switch row.Value(column) {
	case "", "{}", "false":
		return slices.Contains(t.Filled, column)
	}
	return false
}
