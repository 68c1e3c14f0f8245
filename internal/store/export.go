package store

import (
	"context"
	"crypto/sha256"
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
)

// ExportedRow is one row of a conversation on its way out or in: the columns as PostgreSQL writes them in JSON, without
// the database's own keys. Content is beside it, as it is.
type ExportedRow struct {
	Table string
	Row   json.RawMessage
	// Content of a message or an artifact, nil: the row has none, or it was pruned.
	Content []byte
}

// exportedTables are read and written in this order: what is referred to comes first.
var exportedTables = []struct{ name, sql string }{
	{"conversations", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM conversations t WHERE cid = $1`},
	{"artifacts", `SELECT to_jsonb(t) - 'data', t.data FROM artifacts t JOIN artifact_links l USING (tenant, ` +
		`sha256) WHERE l.cid = $1 ORDER BY t.sha256`},
	{"messages", `SELECT to_jsonb(t) - 'cid' - 'native', t.native FROM messages t WHERE cid = $1 ORDER BY seq`},
	{"runs", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM runs t WHERE cid = $1 ORDER BY created_at, id`},
	{"run_steps", `SELECT to_jsonb(t) - 'id', NULL::bytea FROM run_steps t WHERE run IN (SELECT id FROM runs ` +
		`WHERE cid = $1) ORDER BY t.id`},
	{"stage_results", `SELECT to_jsonb(t), NULL::bytea FROM stage_results t WHERE run IN (SELECT id FROM runs ` +
		`WHERE cid = $1) ORDER BY run, stage, call`},
	{"replays", `SELECT to_jsonb(t) - 'batch', NULL::bytea FROM replays t WHERE run IN (SELECT id FROM runs WHERE ` +
		`cid = $1) ORDER BY run`},
	{"usage_ledger", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM usage_ledger t WHERE cid = $1 ORDER BY run, ` +
		`call, attempt`},
	{"markers", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM markers t WHERE cid = $1 ORDER BY created_at, id`},
	{"enrichments", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM enrichments t WHERE cid = $1 ORDER BY key, version`},
	{"segments", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM segments t WHERE cid = $1 ORDER BY name`},
	{"events", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM events t WHERE cid = $1 ORDER BY seq`},
	{"seals", `SELECT to_jsonb(t) - 'cid', NULL::bytea FROM seals t WHERE cid = $1 ORDER BY n`},
}

// ExportedTables lists the tables of an export in their order.
func ExportedTables() []string {
	names := make([]string, len(exportedTables))
	for i, t := range exportedTables {
		names[i] = t.name
	}
	return names
}

// Export gives every row of a conversation with its runs to put, from one state of the database, one row at a time.
// While a run is under way it is ErrRunActive; one whose content was deleted is ErrContentDeleted. begin is called
// first.
func (s *Store) Export(ctx context.Context, ref ConversationRef, begin func(Conversation) error,
	put func(ExportedRow) error,
) error {
	return s.snapshot(ctx, "export a conversation", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		if busy, err := runUnderWay(ctx, tx, c.cid); err != nil || busy {
			return errors.Join(err, map[bool]error{true: ErrRunActive}[busy])
		}
		if err := begin(c); err != nil {
			return err
		}
		for _, t := range exportedTables {
			rows, err := tx.Query(ctx, t.sql, c.cid)
			if err != nil {
				return err
			}
			var row, content []byte
			_, err = pgx.ForEachRow(rows, []any{&row, &content}, func() error {
				r := ExportedRow{Table: t.name, Row: slices.Clone(row), Content: slices.Clone(content)}
				if t.name == "artifacts" && content != nil {
					if r.Content, err = s.unzip.DecodeAll(content, []byte{}); err != nil {
						return fmt.Errorf("an artifact of the conversation is %w: %w", ErrDamaged, err)
					}
				}
				return put(r)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ImportTarget says where an export goes.
type ImportTarget struct {
	Tenant string
	// ID for the conversation, "": the one that it had.
	ID string
}

// Imported is what became of an import.
type Imported struct {
	Conversation Conversation
	// Runs maps the ids that the runs had to those that they have: others where the store has such a run already.
	Runs map[string]string
	// Rows counts what was written by table.
	Rows map[string]int
}

// Import writes an exported conversation, all of it or nothing. open begins to read the export anew, and next gives
// row after row in the order of an export, io.EOF after the last. What is written is verified before it counts: the
// chains, what the seals of the export recorded, every hash. ErrInvalid says what does not fit; an id that is taken
// is a conflict.
func (s *Store) Import(ctx context.Context, to ImportTarget,
	open func() (next func() (ExportedRow, error), err error),
) (Imported, error) {
	var out Imported
	err := s.write(ctx, "import a conversation", func(ctx context.Context, tx pgx.Tx) error {
		next, err := open()
		if err != nil {
			return err
		}
		im := &importing{
			store: s, tx: tx, to: to, rows: map[string]int{}, runs: map[string]string{},
			markers: map[string]string{}, newest: map[subject]Seal{},
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
	store *Store
	tx    pgx.Tx
	to    ImportTarget
	cid   int64
	// from is the conversation as it was, with its tenant.
	from ConversationRef
	rows map[string]int
	// runs and markers map ids.
	runs, markers map[string]string
	active        string
	// last is what the last seal says of the moment in which it was written.
	last SealRecord
	// origin is where the conversation had come from, at originAt; nil: nowhere.
	origin   *ImportedFrom
	originAt time.Time
	// heads are what the conversation's row said.
	epoch      int64
	sealSeq    int64
	sealChain  Hash
	eventChain Hash
	// events is the chain of the events as they are written here, seenChain as it was.
	events, seenChain Hash
	seals             SealHead
	newest            map[subject]Seal
	pruned            []Pruned
}

func (im *importing) all(ctx context.Context, next func() (ExportedRow, error)) error {
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if im.cid == 0 && r.Table != "conversations" {
			return invalidf("it does not begin with a conversation")
		}
		if err := im.row(ctx, r); err != nil {
			return fmt.Errorf("%s, row %d: %w", r.Table, im.rows[r.Table]+1, err)
		}
		im.rows[r.Table]++
	}
}

// row writes one row, with the ids that it has here.
func (im *importing) row(ctx context.Context, r ExportedRow) error {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(r.Row, &columns); err != nil {
		return invalidf("it is no JSON object: %s", err)
	}
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
	case "replays", "run_steps", "stage_results", "usage_ledger", "segments", "enrichments":
	default:
		return invalidf("there is no such table in an export")
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

// insert writes a row with the columns that are given; those that the export does not know have their defaults.
func (im *importing) insert(ctx context.Context, table string, columns map[string]json.RawMessage) error {
	names := make([]string, 0, len(columns))
	for _, name := range sortedKeys(columns) {
		if !plainName(name) {
			return invalidf("column %q", name)
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

// badRow says that what PostgreSQL refuses of a row is the export's fault.
func badRow(err error) error {
	if err == nil || Unavailable(err) || errors.Is(err, context.Canceled) || repeatable(err) {
		return err
	}
	return invalidf("PostgreSQL refuses it: %s", err)
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

// mapped gives a row's id another one where the store has it already.
func (im *importing) mapped(ctx context.Context, columns map[string]json.RawMessage, column, taken string,
	ids map[string]string,
) error {
	id := text(columns[column])
	if !goodID(id, 64) {
		return invalidf("%s %q", column, id)
	}
	is, err := one(ctx, im.tx, pgx.RowTo[bool], taken, id)
	if err != nil {
		return err
	}
	ids[id] = id
	if is {
		ids[id] = newID()
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
		{"run", im.runs, []string{"replays", "run_steps", "stage_results", "usage_ledger", "markers"}},
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
			return invalidf("%s names %.80s, which is not in the file before it", ref.column, raw)
		}
		columns[ref.column] = quoted(id)
	}
	return nil
}

func hashOf(raw json.RawMessage) (h Hash, err error) {
	b, err := hex.DecodeString(strings.TrimPrefix(text(raw), `\x`))
	if err != nil || len(b) != len(h) {
		return h, invalidf("%s is no SHA-256", raw)
	}
	return Hash(b), nil
}

func (im *importing) conversation(ctx context.Context, columns map[string]json.RawMessage) error {
	if im.cid != 0 {
		return invalidf("there is more than one conversation in it")
	}
	im.from.ID = text(columns["id"])
	im.active = text(columns["active_marker"])
	var err error
	if err = json.Unmarshal(columns["seal_seq"], &im.sealSeq); err != nil {
		return invalidf("seal_seq: %s", err)
	}
	if err = json.Unmarshal(columns["epoch"], &im.epoch); err != nil {
		return invalidf("epoch: %s", err)
	}
	if im.sealChain, err = hashOf(columns["seal_chain"]); err != nil {
		return err
	}
	if im.eventChain, err = hashOf(columns["event_chain"]); err != nil {
		return err
	}
	if im.to.ID == "" {
		im.to.ID = im.from.ID
	}
	if !goodID(im.to.ID, 160) {
		return invalidf("a conversation's id has 1 to 160 bytes of UTF-8 and no control characters")
	}
	if _, err := one(ctx, im.tx, pgx.RowTo[string], `SELECT id FROM tenants WHERE id = $1`, im.to.Tenant); err != nil {
		return fmt.Errorf("tenant %q: %w", im.to.Tenant, err)
	}
	switch _, err := conversation(ctx, im.tx, ConversationRef(im.to)); {
	case err == nil:
		return conflictf(ConflictDifferent, "conversation %q exists already: choose another id", im.to.ID)
	case !isNotFound(err):
		return err
	}
	columns["id"] = quoted(im.to.ID)
	for _, name := range []string{
		"active_marker", "seal_seq", "seal_chain", "event_chain", "search_seq",
		"memory_due_at",
	} {
		delete(columns, name)
	}
	if err := im.insert(ctx, "conversations", columns); err != nil {
		return err
	}
	c, err := conversation(ctx, im.tx, ConversationRef(im.to))
	im.cid = c.cid
	return err
}

func (im *importing) artifact(ctx context.Context, columns map[string]json.RawMessage, content []byte) error {
	sum, err := hashOf(columns["sha256"])
	if err != nil {
		return err
	}
	if content == nil && text(columns["pruned_at"]) == "" {
		return invalidf("artifact %s has no content, and was not pruned", sum)
	}
	if content != nil {
		if Hash(sha256.Sum256(content)) != sum {
			return invalidf("artifact %s is damaged: its content has another hash", sum)
		}
		columns["data"] = quoted(`\x` + hex.EncodeToString(im.store.zip.EncodeAll(content, nil)))
	}
	there, err := one(ctx, im.tx, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM artifacts WHERE tenant = $1 AND sha256 = $2)`, im.to.Tenant, sum[:])
	if err != nil {
		return err
	}
	if !there {
		if err := im.insert(ctx, "artifacts", columns); err != nil {
			return err
		}
	} else if content != nil {
		if _, err := putArtifact(ctx, im.tx, im.cid, im.to.Tenant, text(columns["kind"]),
			im.store.pack(content)); err != nil {
			return err
		}
	}
	_, err = im.tx.Exec(
		ctx, `INSERT INTO artifact_links (cid, tenant, sha256) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, im.cid,
		im.to.Tenant, sum[:])
	return err
}

// event writes an event: its chain is another one where its run's id is.
func (im *importing) event(ctx context.Context, columns map[string]json.RawMessage) error {
	row, err := json.Marshal(columns)
	if err != nil {
		return err
	}
	run := text(columns["run"])
	here := run
	if id, ok := im.runs[run]; ok {
		here = id
	}
	var was, computed, next []byte
	expr := func(before, run string) string {
		return eventChain(before, "e.seq", "e.kind", run, "e.data", "e.created_at")
	}
	err = im.tx.QueryRow(ctx, `INSERT INTO events (cid, seq, created_at, kind, run, data, chain)
		SELECT $1, e.seq, e.created_at, e.kind, nullif($3, ''), e.data, `+expr("$4::bytea", "$3::text")+` FROM jsonb_populate_record(NULL::events, $2) e
		RETURNING chain, (SELECT e.chain FROM jsonb_populate_record(NULL::events, $2) e),
			(SELECT `+expr("$5::bytea", "$6::text")+` FROM jsonb_populate_record(NULL::events, $2) e)`,
		im.cid, row, here, im.events[:], im.eventsWas(), run).Scan(&next, &was, &computed)
	if err != nil {
		return badRow(err)
	}
	if string(was) != string(computed) {
		return invalidf("the event is not what its hash commits to")
	}
	im.events, im.seenChain = padded(next), padded(was)
	return nil
}

func (im *importing) eventsWas() []byte { return im.seenChain[:] }

// seal checks a seal of the export. New ones are written in its place: the ids are others.
func (im *importing) seal(columns map[string]json.RawMessage) error {
	var s Seal
	err := json.Unmarshal(columns["n"], &s.N)
	s.Kind, s.Subject = SealKind(text(columns["kind"])), text(columns["subject"])
	record, hexErr := hex.DecodeString(strings.TrimPrefix(text(columns["record"]), `\x`))
	var sumErr, chainErr error
	s.SHA256, sumErr = hashOf(columns["sha256"])
	s.Chain, chainErr = hashOf(columns["chain"])
	timeErr := json.Unmarshal(columns["created_at"], &s.Created)
	if err := errors.Join(err, hexErr, sumErr, chainErr, timeErr); err != nil {
		return invalidf("the seal cannot be read: %s", err)
	}
	s.Record = record
	if s.N != im.seals.Seals+1 || Hash(sha256.Sum256(record)) != s.SHA256 ||
		SealChain(im.seals.Chain, s.N, s.Kind, s.Subject, s.SHA256) != s.Chain {
		return invalidf("the seal is not what its chain commits to")
	}
	im.seals = SealHead{s.N, s.Chain}
	var r SealRecord
	if err := json.Unmarshal(record, &r); err != nil {
		return invalidf("the seal's record cannot be read: %s", err)
	}
	if r.Form != sealForm {
		return invalidf("the seal is %s: %d", errSealForm, r.Form)
	}
	im.last = SealRecord{Epoch: r.Epoch, ActiveMarker: r.ActiveMarker}
	if s.N == 1 && r.Imported != nil {
		im.origin, im.originAt = r.Imported, s.Created
	}
	if s.Kind == SealPrune {
		if r.Pruned != nil {
			im.pruned = append(im.pruned, *r.Pruned)
		}
		return nil
	}
	if s.Kind == SealConversation && len(r.Rows) > 0 {
		im.from.Tenant = r.Rows[0].value("tenant")
	}
	im.newest[subject{s.Kind, s.Subject}] = s
	return nil
}

// finish compares what was written with what the export's seals recorded, seals it here, and verifies all of it.
func (im *importing) finish(ctx context.Context) (Imported, error) {
	if im.cid == 0 {
		return Imported{}, invalidf("there is no conversation in it")
	}
	if im.seals != (SealHead{im.sealSeq, im.sealChain}) {
		return Imported{}, invalidf("its seals end at %d, and its conversation says %d: rows are missing",
			im.seals.Seals, im.sealSeq)
	}
	if im.seenChain != im.eventChain {
		return Imported{}, invalidf("its events do not end where its conversation says: rows are missing")
	}
	if im.active != im.last.ActiveMarker || im.epoch != im.last.Epoch {
		return Imported{}, invalidf("the conversation's active_marker or epoch is not what its last seal says")
	}
	if _, known := im.markers[im.active]; im.active != "" && !known {
		return Imported{}, invalidf("the active marker is missing")
	}
	for _, id := range sortedKeys(im.runs) {
		if _, sealed := im.newest[ofRun(id)]; !sealed {
			return Imported{}, invalidf("runs %s: no seal knows it", id)
		}
	}
	if _, err := im.tx.Exec(
		ctx, `UPDATE conversations SET active_marker = nullif($2, ''), event_chain = $3 WHERE cid = $1`,
		im.cid, im.markers[im.active], im.events[:]); err != nil {
		return Imported{}, badRow(err)
	}
	subjects, records := []subject{ofConversation()}, []SealRecord{{}}
	for _, of := range im.subjects() {
		here := of
		switch of.kind {
		case SealRun:
			here.id = im.runs[of.id]
		case SealMarker:
			here.id = im.markers[of.id]
		}
		read, err := readRows(ctx, im.tx, im.cid, here)
		if err != nil {
			return Imported{}, err
		}
		if err := im.compare(im.newest[of], read[0]); err != nil {
			return Imported{}, err
		}
		if of.kind == SealConversation {
			records[0] = SealRecord{Rows: read[0], Imported: &ImportedFrom{
				Conversation: im.from.ID, Seals: im.seals.Seals, SealChain: im.seals.Chain, Before: im.origin,
				At: im.originAt,
			}}
			continue
		}
		subjects, records = append(subjects, here), append(records, SealRecord{Rows: read[0]})
	}
	for i := range im.pruned {
		subjects, records = append(subjects, subject{SealPrune, newID()}),
			append(records, SealRecord{Pruned: &im.pruned[i]})
	}
	if err := putSeals(ctx, im.tx, im.cid, subjects, records); err != nil {
		return Imported{}, err
	}
	c, err := conversation(ctx, im.tx, ConversationRef(im.to))
	if err != nil {
		return Imported{}, err
	}
	return Imported{Conversation: c, Runs: im.runs, Rows: im.rows}, im.verify(ctx, c)
}

func (im *importing) subjects() []subject {
	list := make([]subject, 0, len(im.newest))
	for of := range im.newest {
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b subject) int {
		return strings.Compare(string(a.kind)+" "+a.id, string(b.kind)+" "+b.id)
	})
	return list
}

// compare finds what is not as a seal of the export recorded it, the ids that are others here left out.
func (im *importing) compare(s Seal, found []SealedRow) error {
	was, err := s.rows()
	if err != nil {
		return invalidf("%s", err)
	}
	is := make(map[string]SealedRow, len(found))
	for _, row := range found {
		row.Values = maps.Clone(row.Values) // what is sealed here are the values that it has here
		for column, value := range row.Values {
			if value != nil {
				row.Values[column] = ptr(im.original(row.Table, column, *value))
			}
		}
		// The key as it was, to find the row by.
		t, _ := tableOf(s.Kind, row.Table)
		key := make([]string, len(t.key))
		for i, name := range t.key {
			key[i] = row.value(name)
		}
		is[row.Table+" "+strings.Join(key, "/")] = row
	}
	for _, id := range sortedKeys(was) {
		row := was[id]
		now, there := is[id]
		if row.Table == "artifacts" {
			continue // those are checked by their content; here they may have been before
		}
		if !there {
			return invalidf("%s %s is missing", row.Table, row.Key)
		}
		for _, column := range sortedKeys(row.Values) {
			if column == "batch" {
				continue
			}
			if value, known := now.Values[column]; known && !same(row.Values[column], value) {
				return invalidf("%s %s, %s: %s", row.Table, row.Key, column, differs(row.Values[column], value))
			}
		}
	}
	for _, id := range sortedKeys(is) {
		if _, sealed := was[id]; !sealed && is[id].Table != "artifacts" {
			return invalidf("%s: no seal knows the row", id)
		}
	}
	return nil
}

// original is a value as it was where the conversation came from.
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

// verify proves what was written, before it counts.
func (im *importing) verify(ctx context.Context, c Conversation) error {
	v := &Verification{Conversation: c, store: im.store, tx: im.tx}
	messages, _, err := v.Messages(ctx)
	if err != nil {
		return err
	}
	events, err := v.Events(ctx)
	if err != nil {
		return err
	}
	seals, _, err := v.Seals(ctx)
	if err != nil {
		return err
	}
	var texts Faults
	for _, run := range im.runs {
		refs, err := v.References(ctx, run)
		if err != nil {
			return err
		}
		for _, r := range refs {
			if _, err := v.Artifact(ctx, &texts, r); err != nil {
				return err
			}
		}
	}
	for _, f := range [...]Faults{messages, events, seals, texts} {
		for _, fault := range f.List {
			if fault.State != FaultPruned {
				return invalidf("%s %s, %s: %s", fault.Table, fault.Key, fault.Column, fault.Detail)
			}
		}
	}
	return nil
}

// ImportedFrom says where an imported conversation came from, and when; nil: it was made here.
func (s *Store) ImportedFrom(ctx context.Context, ref ConversationRef) (*ImportedFrom, time.Time, error) {
	var record []byte
	var at time.Time
	err := s.read(ctx, "read a conversation's origin", func(ctx context.Context, q querier) error {
		c, err := conversation(ctx, q, ref)
		if err != nil {
			return err
		}
		err = q.QueryRow(ctx, `SELECT record, created_at FROM seals WHERE cid = $1 AND n = 1`, c.cid).Scan(&record, &at)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || record == nil {
		return nil, at, err
	}
	var r SealRecord
	if err := json.Unmarshal(record, &r); err != nil {
		return nil, at, fmt.Errorf("store: read a conversation's first seal: %w", err)
	}
	return r.Imported, at, nil
}
