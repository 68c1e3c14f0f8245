package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A seal is what a run, a marker, a piece of state or a conversation's configuration was at a moment, column by column,
// written in the transaction that made it so. Each commits to the one before it in its conversation. VerifySeals
// compares the rows with them; docs/audit.md says what that proves.

// SealKind is what a seal is of.
type SealKind string

// The kinds.
const (
	SealConversation SealKind = "conversation"
	SealRun          SealKind = "run"
	SealMarker       SealKind = "marker"
	SealState        SealKind = "state"
	// SealPrune lists what a pruning took, with the hashes of it.
	SealPrune SealKind = "prune"
)

// Seal is one row of seals.
type Seal struct {
	// N counts the seals of a conversation from 1.
	N       int64
	Kind    SealKind
	Subject string
	// SHA256 is of Record; Chain commits to this seal and all before it, see SealChain.
	SHA256, Chain Hash
	// Record is a SealRecord in JSON.
	Record  json.RawMessage
	Created time.Time
}

// sealForm is how values are written in a record. It goes up with every change of that, so that what an older version
// sealed is read as what it is, and not taken for something that was changed.
const sealForm = 1

// SealRecord is what a seal holds.
type SealRecord struct {
	// Form is the sealForm of the version that wrote it.
	Form int `json:"form"`
	// Epoch and ActiveMarker are the conversation's at that time.
	Epoch        int64  `json:"epoch"`
	ActiveMarker string `json:"active_marker,omitempty"`
	// Events and EventChain are the head of its timeline then: what came before the seal cannot be cut off unseen.
	Events     int64 `json:"events"`
	EventChain Hash  `json:"event_chain"`
	// Rows are those that belong to the subject.
	Rows []SealedRow `json:"rows,omitempty"`
	// Pruned is what a pruning took.
	Pruned *Pruned `json:"pruned,omitempty"`
	// Imported says where an imported conversation came from, on its first seal.
	Imported *ImportedFrom `json:"imported,omitempty"`
}

// SealedRow is one row as it was.
type SealedRow struct {
	Table string `json:"table"`
	// Key tells the row from others of the table, for a person.
	Key string `json:"key"`
	// Values are the columns as text, null for NULL; times in microseconds since 1970, bytes by their SHA-256.
	Values map[string]*string `json:"values"`
}

// ImportedFrom is where an imported conversation came from.
type ImportedFrom struct {
	Conversation string `json:"conversation"`
	// Seals and SealChain are the head of its seals there.
	Seals     int64 `json:"seals"`
	SealChain Hash  `json:"seal_chain"`
	// Before is where it had been imported from there, at At; nil: it was made there.
	Before *ImportedFrom `json:"before,omitempty"`
	At     time.Time     `json:"at,omitzero"`
}

// IDAt is the id that the conversation had at a time before it came here.
func (f *ImportedFrom) IDAt(t time.Time) string {
	for f.Before != nil && t.Before(f.At) {
		f = f.Before
	}
	return f.Conversation
}

// SealChain gives the chain hash of a seal: SHA-256 over the chain of the one before it (zero for the first), its
// number as 8 bytes big-endian, its kind and subject each ended by a zero byte, and the hash of its record.
func SealChain(before Hash, n int64, kind SealKind, subject string, record Hash) Hash {
	h := sha256.New()
	_, _ = h.Write(before[:])
	_ = binary.Write(h, binary.BigEndian, uint64(n))
	for _, s := range [...]string{string(kind), subject} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	_, _ = h.Write(record[:])
	return Hash(h.Sum(nil))
}

// sealedTable says which columns of a table its seals hold.
type sealedTable struct {
	name string
	// key are the columns that tell a row from others, within the conversation or run.
	key []string
	// where picks the rows of a subject: $1 is the cid, $2 the subject.
	where string
	order string
	text  []string
	bytes []string
	times []string
	// changes are the columns that may differ between two seals of one row; open says when any may.
	changes []string
	open    func(SealedRow) bool
	// unsealed are the columns that no seal holds, and why.
	unsealed map[string]string
}

const (
	internalKey = "the database's own key, another one after an import"
	working     = "a working figure that the next append or read replaces; no record rests on it"
)

// sealedTables are the tables whose rows seals hold, by kind of subject. The columns are listed, so that a new one is a
// decision: TestEveryColumnIsCommittedTo fails for a column that stands nowhere.
var sealedTables = map[SealKind][]sealedTable{
	SealConversation: {{
		name: "conversations", key: []string{"id"}, where: `cid = $1 AND $2 <> ''`, order: `cid`,
		text: []string{
			"context_window", "max_output", "learned_window", "overhead_tokens", "ephemeral", "tenant",
			"id", "format", "vendor", "model",
		},
		bytes: []string{"created_hash", "system", "tools", "envelope", "settings", "metadata"},
		times: []string{"created_at", "content_deleted_at"},
		changes: []string{
			"context_window", "max_output", "learned_window", "overhead_tokens", "vendor", "model", "system", "tools",
			"envelope", "settings", "metadata", "content_deleted_at",
		},
		unsealed: map[string]string{
			"cid":      internalKey,
			"head_seq": "compared with the messages", "head_chain": "compared with the messages",
			"tokens_sum": "compared with the messages", "chars_sum": "compared with the messages",
			"turns_sum": "compared with the messages", "event_seq": "compared with the events",
			"event_chain": "compared with the events", "seal_seq": "compared with the seals",
			"seal_chain": "compared with the seals", "epoch": "in every seal's record",
			"active_marker": "in every seal's record", "auto_hold_turns": working, "server_tokens": working,
			"server_covers_seq": working, "server_epoch": working, "server_estimate": working, "calibration": working,
			"updated_at": working, "measured_tokens": working, "measured_seq": working, "measured_epoch": working,
			"sync_seq": working, "sync_chain": working, "search_seq": working, "memory_due_at": working,
		},
	}},
	SealRun: {
		{
			name: "runs", key: []string{"id"}, where: `cid = $1 AND id = $2`, order: `id`,
			text: []string{
				"requested_head", "covers_from", "covers_to", "covered_messages", "tokens_before", "tokens_after",
				"full", "force_external", "prepare", "digest", "id", "tenant", "workflow_id", "temporal_run_id",
				"trigger_kind", "prompt_override", "summarizer_override", "outcome", "error_kind", "reason",
				"summarizer", "rung", "prompt_name", "prompt_version", "mode", "replay_of", "trigger", "versions",
				"verification", "numbers",
			},
			bytes: []string{"covered_chain", "context_sha256", "focus", "settings"},
			times: []string{"created_at", "started_at", "finished_at"},
			// A prepared summary takes effect or is given up later; the focus goes with the conversation's content.
			changes: []string{
				"outcome", "reason", "tokens_before", "tokens_after", "numbers", "context_sha256",
				"focus",
			},
			unsealed: map[string]string{"cid": internalKey},
		},
		{
			name: "run_steps", key: []string{"stage", "call", "attempt"}, where: `run = $2 AND $1::bigint > 0`,
			order: `call, stage, attempt`,
			text: []string{
				"ms", "call", "attempt", "run", "stage", "rung", "summarizer", "outcome", "error_kind", "message",
				"next", "worker", "numbers", "artifacts",
			},
			times:    []string{"started_at"},
			changes:  []string{"next"},
			open:     func(r SealedRow) bool { return r.value("outcome") == string(StepStarted) },
			unsealed: map[string]string{"id": internalKey},
		},
		{
			name: "stage_results", key: []string{"stage", "call"}, where: `run = $2 AND $1::bigint > 0`,
			order: `call, stage`, text: []string{"call", "run", "stage"}, bytes: []string{"result"},
			times: []string{"created_at"},
		},
		{
			name: "replays", key: []string{"run"}, where: `run = $2 AND $1::bigint > 0`, order: `run`,
			text:  []string{"live", "apply", "identical", "run", "original", "batch"},
			bytes: []string{"comparison_sha256"}, changes: []string{"identical", "comparison_sha256"},
		},
		{
			name: "usage_ledger", key: []string{"call", "attempt"}, where: `cid = $1 AND run = $2`,
			order: `call, attempt`,
			text: []string{
				"input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "call", "attempt", "run",
				"tenant", "booked_under", "vendor", "model", "state", "error_kind", "request_id",
			},
			bytes: []string{"request_sha256", "answer_sha256"}, times: []string{"started_at", "finished_at"},
			open:     func(r SealedRow) bool { return r.value("state") != string(CallComplete) },
			unsealed: map[string]string{"cid": internalKey},
		},
		{
			name: "artifacts", key: []string{"sha256"}, order: `sha256`,
			where: `tenant = (SELECT tenant FROM conversations WHERE cid = $1) AND sha256 IN (` + artifactsOfRun + `)`,
			text:  []string{"size", "tenant", "kind"}, bytes: []string{"sha256"}, times: []string{"created_at"},
			unsealed: map[string]string{
				"data": "its SHA-256 is its name", "touched_at": working, "pruned_at": "in the seal of the pruning",
			},
		},
	},
	SealMarker: {{
		name: "markers", key: []string{"id"}, where: `cid = $1 AND id = $2`, order: `id`,
		text: []string{
			"epoch", "covers_from", "covers_to", "covered_messages", "tokens_before", "tokens_after", "summary_tokens",
			"valve_up_to", "calibration", "digest", "id", "tenant", "base", "run", "status", "reason", "origin",
			"valve", "carried", "draft", "native",
		},
		bytes: []string{"covered_chain", "summary_sha256", "native_sha256"},
		times: []string{"created_at", "applied_at", "ended_at"},
		changes: []string{
			"epoch", "tokens_before", "tokens_after", "summary_tokens", "summary_sha256", "status", "reason",
			"applied_at", "ended_at",
		},
		unsealed: map[string]string{"cid": internalKey},
	}},
	SealState: {{
		name: "enrichments", key: []string{"key", "version"}, where: `cid = $1 AND key || '@' || version = $2`,
		order: `key, version`, text: []string{"version", "after_seq", "epoch", "key", "tokens"},
		bytes: []string{"value", "source"}, times: []string{"created_at"},
		unsealed: map[string]string{"cid": internalKey},
	}},
}

// artifactsOfRun are the hashes that the rows of run $2 refer to.
const artifactsOfRun = `SELECT decode(value, 'hex') FROM run_steps s, jsonb_each_text(s.artifacts) WHERE s.run = $2 AND value ~ '^[0-9a-f]{64}$'
	UNION SELECT context_sha256 FROM runs WHERE id = $2 AND context_sha256 IS NOT NULL
	UNION SELECT decode(numbers ->> 'state', 'hex') FROM runs WHERE id = $2 AND numbers ->> 'state' ~ '^[0-9a-f]{64}$'
	UNION SELECT request_sha256 FROM usage_ledger WHERE run = $2 AND request_sha256 IS NOT NULL
	UNION SELECT answer_sha256 FROM usage_ledger WHERE run = $2 AND answer_sha256 IS NOT NULL
	UNION SELECT comparison_sha256 FROM replays WHERE run = $2 AND comparison_sha256 IS NOT NULL
	UNION SELECT summary_sha256 FROM markers WHERE run = $2 AND summary_sha256 IS NOT NULL
	UNION SELECT native_sha256 FROM markers WHERE run = $2 AND native_sha256 IS NOT NULL`

func (r SealedRow) value(column string) string { return or(r.Values[column], "") }

// columns are the names and expressions of what a seal holds, in one order.
func (t sealedTable) columns() (names, expressions []string) {
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
		// A seal outlives the content, and holds no word of it.
		add([]string{name}, `'sha256:' || encode(sha256($), 'hex')`)
	}
	add(t.times, `(extract(epoch FROM $) * 1000000)::bigint::text`)
	return names, expressions
}

func (t sealedTable) query() string {
	_, expressions := t.columns()
	return `SELECT ARRAY[` + strings.Join(expressions, ", ") + `]::text[] FROM ` + t.name + ` WHERE ` + t.where +
		` ORDER BY ` + t.order
}

func (t sealedTable) scan(row pgx.CollectableRow) (SealedRow, error) {
	var values []*string
	if err := row.Scan(&values); err != nil {
		return SealedRow{}, err
	}
	names, _ := t.columns()
	out := SealedRow{Table: t.name, Values: make(map[string]*string, len(names))}
	for i, name := range names {
		out.Values[name] = values[i]
	}
	key := make([]string, len(t.key))
	for i, name := range t.key {
		key[i] = out.value(name)
	}
	out.Key = strings.Join(key, "/")
	return out, nil
}

// subject is what a seal is of.
type subject struct {
	kind SealKind
	id   string
}

func ofRun(id string) subject    { return subject{SealRun, id} }
func ofMarker(id string) subject { return subject{SealMarker, id} }
func ofConversation() subject    { return subject{SealConversation, "configuration"} }
func ofState(e Enrichment) subject {
	return subject{SealState, fmt.Sprintf("%s@%d", e.Key, e.Version)}
}

// readRows reads what seals of the subjects would hold now.
func readRows(ctx context.Context, q batcher, cid int64, subjects ...subject) ([][]SealedRow, error) {
	rows := make([][]SealedRow, len(subjects))
	batch := &pgx.Batch{}
	for i, of := range subjects {
		for _, t := range sealedTables[of.kind] {
			batch.Queue(t.query(), cid, of.id).Query(func(found pgx.Rows) error {
				list, err := pgx.CollectRows(found, t.scan)
				rows[i] = append(rows[i], list...)
				return err
			})
		}
	}
	return rows, q.SendBatch(ctx, batch).Close()
}

// batcher is what a pool and a transaction have in common for several statements at once.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// seal records what the subjects are now. The transaction holds the conversation's row.
func seal(ctx context.Context, tx pgx.Tx, cid int64, subjects ...subject) error {
	rows, err := readRows(ctx, tx, cid, subjects...)
	if err != nil {
		return err
	}
	records := make([]SealRecord, len(subjects))
	for i := range subjects {
		records[i].Rows = rows[i]
	}
	return putSeals(ctx, tx, cid, subjects, records)
}

// putSeals writes one seal for each subject. The transaction holds the conversation's row.
func putSeals(ctx context.Context, tx pgx.Tx, cid int64, subjects []subject, records []SealRecord) error {
	var n, epoch, events int64
	var chain, eventChain []byte
	var active string
	err := tx.QueryRow(ctx, `SELECT seal_seq, seal_chain, epoch, coalesce(active_marker, ''), event_seq, event_chain
		FROM conversations WHERE cid = $1`, cid).Scan(&n, &chain, &epoch, &active, &events, &eventChain)
	if err != nil {
		return err
	}
	head := Hash(chain)
	batch := &pgx.Batch{}
	for i, of := range subjects {
		r := records[i]
		r.Form, r.Epoch, r.ActiveMarker, r.Events, r.EventChain = sealForm, epoch, active, events, Hash(eventChain)
		record, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode a seal: %w", err)
		}
		n++
		sum := Hash(sha256.Sum256(record))
		head = SealChain(head, n, of.kind, of.id, sum)
		next := head // a copy: it is sent later
		batch.Queue(`INSERT INTO seals (cid, n, kind, subject, sha256, chain, record) VALUES ($1, $2, $3, $4, $5, `+
			`$6, $7)`,
			cid, n, string(of.kind), of.id, sum[:], next[:], record)
	}
	batch.Queue(`UPDATE conversations SET seal_seq = $2, seal_chain = $3 WHERE cid = $1`, cid, n, head[:])
	return tx.SendBatch(ctx, batch).Close()
}

// lockRun takes the row of a run's conversation, as whatever changes the rows of a run does: a seal of it that is
// written meanwhile either has the change or comes after it. It gives the conversation's key.
func lockRun(ctx context.Context, tx pgx.Tx, ref RunRef) (int64, error) {
	if !goodID(ref.ID, 64) || !goodID(ref.Tenant, 64) {
		return 0, notFoundf("run %q", ref.ID)
	}
	cid, err := one(ctx, tx, pgx.RowTo[int64], `SELECT c.cid FROM conversations c JOIN runs r ON r.cid = c.cid
		WHERE r.tenant = $1 AND r.id = $2 FOR NO KEY UPDATE OF c`, ref.Tenant, ref.ID)
	if err != nil {
		return 0, fmt.Errorf("run %q: %w", ref.ID, err)
	}
	return cid, nil
}

// sealEnded seals a run anew when something came after its end: the record of its last step, an answer that was late.
// The transaction has called lockRun.
func sealEnded(ctx context.Context, tx pgx.Tx, cid int64, run string) error {
	ended, err := one(ctx, tx, pgx.RowTo[bool], `SELECT outcome IS NOT NULL FROM runs WHERE id = $1`, run)
	if err != nil || !ended {
		return err
	}
	return seal(ctx, tx, cid, ofRun(run))
}
