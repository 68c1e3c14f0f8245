package exports

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
)

// Target is where an export is imported to.
type Target struct {
	Tenant string
	// ID is the conversation's new id, "": the one in the export.
	ID string
}

// Imported is the result of an import.
type Imported struct {
	Conversation conversations.Conversation
	// Runs maps the runs' ids in the export to their ids here, which differ if the store already has a run of the id.
	Runs map[string]string
	// Rows counts the imported rows by table.
	Rows map[string]int
	// Pruned counts the texts of which the export has only the hashes, Notes the notes of agents, which no seal covers.
	Pruned int
	Notes  int
}

// Import imports an exported conversation in one transaction. open starts to read the export, and may be called again;
// next returns its rows in their order, then io.EOF. Before the commit, Import verifies what it has written: the
// chains, the rows against the export's seals, every hash. A mismatch is ErrInvalid, an id that already exists an
// ErrConflict.
func (s *Store) Import(ctx context.Context, to Target,
	open func() (next func() (Row, error), err error),
) (Imported, error) {
	var out Imported
	err := s.db.Write(ctx, "import a conversation", func(ctx context.Context, tx pgx.Tx) error {
		next, err := open()
		if err != nil {
			return err
		}
		im := &importing{
			db: s.db, tx: tx, to: to, rows: map[string]int{}, runs: map[string]string{},
			markers: map[string]string{}, newest: map[seals.Subject]seals.Seal{},
		}
		if err := im.all(ctx, next); err != nil {
			return err
		}
		out, err = im.finish(ctx)
		return err
	})
	return out, err
}

// importing is the state of one import.
type importing struct {
	db  *db.DB
	tx  pgx.Tx
	to  Target
	cid int64
	// from is the conversation and its tenant in the export.
	from db.ConversationRef
	rows map[string]int
	// runs and markers map ids in the export to ids here.
	runs, markers map[string]string
	active        string
	// last has the epoch and active marker of the last seal so far.
	last seals.Record
	// origin is where the exported conversation had itself been imported from, at originAt; nil: nowhere.
	origin   *seals.ImportedFrom
	originAt time.Time
	// These are columns of the exported conversation's row.
	epoch      int64
	sealSeq    int64
	sealChain  db.Hash
	eventChain db.Hash
	// events is the chain of the events as they are written here, seenChain the chain in the export.
	events, seenChain db.Hash
	seals             seals.Head
	newest            map[seals.Subject]seals.Seal
	pruned            []seals.Pruned
}

func (im *importing) all(ctx context.Context, next func() (Row, error)) error {
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if im.cid == 0 && r.Table != "conversations" {
			return db.Invalidf("the export does not begin with a conversation")
		}
		if err := im.row(ctx, r); err != nil {
			return fmt.Errorf("%s, row %d: %w", r.Table, im.rows[r.Table]+1, err)
		}
		im.rows[r.Table]++
	}
}

// row writes one row with its new ids.
func (im *importing) row(ctx context.Context, r Row) error {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(r.Row, &columns); err != nil {
		return db.Invalidf("the row is not a JSON object: %s", err)
	}
	r.Table = seals.TableName(r.Table)
	upgradeColumns(r.Table, columns)
	if _, ok := columns["tenant"]; ok {
		columns["tenant"] = quoted(im.to.Tenant)
	}
	if r.Table != "conversations" && r.Table != "artifacts" {
		delete(columns, "cid")
	}
	switch r.Table {
	case "conversations":
		return im.conversation(ctx, columns)
	case "artifacts":
		return im.artifact(ctx, columns, r.Content)
	case "seals":
		return im.seal(columns)
	case "events":
		return im.event(ctx, columns)
	case "messages":
		columns["native"] = quoted(`\x` + hex.EncodeToString(r.Content))
	case "runs":
		if err := im.mapped(ctx, columns, "id", `SELECT EXISTS (SELECT FROM runs WHERE id = $1)`, im.runs); err != nil {
			return err
		}
	case "markers":
		if err := im.mapped(ctx, columns, "id", `SELECT EXISTS (SELECT FROM markers WHERE id = $1)`,
			im.markers); err != nil {
			return err
		}
	case "replays", "run_attempts", "stage_results", "usage_ledger", "segments", "enrichments":
	default:
		return db.Invalidf("table %q is not part of an export", r.Table)
	}
	if err := im.refer(r.Table, columns); err != nil {
		return err
	}
	if r.Table == "messages" || r.Table == "runs" || r.Table == "usage_ledger" || r.Table == "markers" ||
		r.Table == "enrichments" || r.Table == "segments" {
		columns["cid"] = json.RawMessage(fmt.Sprint(im.cid))
	}
	return im.insert(ctx, r.Table, columns)
}

// insert writes a row. Columns that the export does not have get their defaults.
func (im *importing) insert(ctx context.Context, table string, columns map[string]json.RawMessage) error {
	names := make([]string, 0, len(columns))
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if !plainName(name) {
			return db.Invalidf("column %q", name)
		}
		names = append(names, `"`+name+`"`)
	}
	row, err := json.Marshal(columns)
	if err != nil {
		return err
	}
	list := strings.Join(names, ", ")
	_, err = im.tx.Exec(ctx, `INSERT INTO `+table+` (`+list+`) SELECT `+list+` FROM jsonb_populate_record(NULL::`+table+
		`, $1)`, row)
	return badRow(err)
}

// badRow returns an ErrInvalid for a row that PostgreSQL refuses, and any other error unchanged.
func badRow(err error) error {
	if err == nil || db.Unavailable(err) || errors.Is(err, context.Canceled) || db.Repeatable(err) {
		return err
	}
	return db.Invalidf("PostgreSQL refuses the row: %s", err)
}

func plainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string: it cannot fail
	}
	return b
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func hashOf(raw json.RawMessage) (h db.Hash, err error) {
	b, err := hex.DecodeString(strings.TrimPrefix(text(raw), `\x`))
	if err != nil || len(b) != len(h) {
		return h, db.Invalidf("%s is not a SHA-256", raw)
	}
	return db.Hash(b), nil
}
