package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// FaultState says what is wrong with a row, or what became of it.
type FaultState string

// The states.
const (
	// FaultTampered: it is not what was written.
	FaultTampered FaultState = "tampered"
	// FaultMissing: it was written and is gone.
	FaultMissing FaultState = "missing"
	// FaultPruned: its content was pruned by age, or removed with the conversation's, as is on record.
	FaultPruned FaultState = "pruned"
)

// Fault is one row that is not as it was written.
type Fault struct {
	State FaultState `json:"state"`
	Table string     `json:"table"`
	// Key tells the row from others of the table; Column is the column at fault, or those among which it is, "": the
	// row.
	Key    string `json:"key"`
	Column string `json:"column,omitempty"`
	// Detail is one sentence without text of the conversation.
	Detail string `json:"detail"`
}

// Faults are what one check found.
type Faults struct {
	// Checked counts what was looked at.
	Checked int `json:"checked"`
	// List has the first faults, at most MaxFaults; Pruned and Bad count all of them.
	List   []Fault `json:"faults,omitempty"`
	Pruned int     `json:"pruned,omitempty"`
	Bad    int     `json:"bad,omitempty"`
}

// MaxFaults is how many faults one check lists: of a table that was rewritten nobody reads more.
const MaxFaults = 50

// Add counts a fault, and lists it while there is room.
func (f *Faults) Add(fault Fault) {
	if fault.State == FaultPruned {
		f.Pruned++
	} else {
		f.Bad++
	}
	if len(f.List) < MaxFaults {
		f.List = append(f.List, fault)
	}
}

func (f *Faults) add(state FaultState, table, key, column, format string, args ...any) {
	f.Add(Fault{State: state, Table: table, Key: key, Column: column, Detail: fmt.Sprintf(format, args...)})
}

// Verification reads a conversation as it is at one moment, and compares it with what it commits to.
type Verification struct {
	Conversation Conversation

	store *Store
	tx    pgx.Tx
	// pruned is what prunings have taken, read once.
	pruned *prunedSet
}

type prunedSet struct {
	messages  map[int64]prunedMessage
	artifacts map[Hash]prunedArtifact
}

// at of both is zero when the seal does not say it.
type (
	prunedMessage struct {
		PrunedMessage
		at time.Time
	}
	prunedArtifact struct {
		PrunedArtifact
		at time.Time
	}
)

// Verify opens a conversation for verification: do sees one state of it throughout, whatever is written meanwhile. do
// may be called more than once, and must set its results anew each time.
func (s *Store) Verify(ctx context.Context, ref ConversationRef, do func(context.Context, *Verification) error) error {
	return s.snapshot(ctx, "verify a conversation", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		return do(ctx, &Verification{Conversation: c, store: s, tx: tx})
	})
}

// verifyPage is how many rows are held at once.
const verifyPage = 1000

// verifiedMessage is a message's row without its content.
type verifiedMessage struct {
	seq      int64
	role     pipeline.Role
	kind     pipeline.Kind
	clientID string
	// record is what the row says, stored the hash of it that was written.
	record messageRecord
	stored []byte
	// native and search are the SHA-256 of what is there.
	native, search Hash
	nativeBytes    int64
	pruned         *time.Time
}

func scanVerified(row pgx.CollectableRow) (m verifiedMessage, err error) {
	r := &m.record
	var chain, native, search []byte
	err = row.Scan(&m.seq, &m.role, &m.kind, &m.clientID, &chain, &native, &search, &m.nativeBytes, &r.sums.Tokens,
		&r.sums.Chars, &r.sums.Turns, &r.chars, &r.tokens, &r.bytes, &r.genuine, &r.created, &r.syncChain, &m.stored,
		&m.pruned)
	r.chain, m.native, m.search = padded(chain), padded(native), padded(search)
	return m, err
}

// Messages recomputes the chain over all messages and compares what each row says beside it; it gives the chain at the
// messages that are wanted. The content itself does not leave the database.
func (v *Verification) Messages(ctx context.Context, wanted ...int64) (f Faults, chains map[int64]Hash, err error) {
	chains = map[int64]Hash{0: {}}
	c := v.Conversation
	if !c.ContentDeleted.IsZero() {
		f.add(FaultPruned, "messages", c.Ref.ID, "", "the conversation's content was removed on %s",
			c.ContentDeleted.UTC().Format(time.DateOnly))
		return f, chains, nil
	}
	pruned, err := v.prunings(ctx)
	if err != nil {
		return f, nil, err
	}
	last := verifiedMessage{}
	for {
		page, err := all(ctx, v.tx, scanVerified, `SELECT seq, role, kind, coalesce(client_id, ''), chain, sha256(native),
				sha256(convert_to(search_text, 'UTF8')), octet_length(native), tokens_sum, chars_sum, turns_sum, chars, tokens, bytes, genuine, created_at,
				sync_chain, record, pruned_at
			FROM messages WHERE cid = $1 AND seq > $2 ORDER BY seq LIMIT $3`, c.cid, last.seq, verifyPage)
		if err != nil {
			return f, nil, err
		}
		for _, m := range page {
			v.message(&f, pruned, last, m)
			if slices.Contains(wanted, m.seq) {
				chains[m.seq] = m.record.chain
			}
			last = m
		}
		if len(page) < verifyPage {
			break
		}
	}
	v.head(&f, last)
	return f, chains, nil
}

func (v *Verification) message(f *Faults, pruned *prunedSet, last, m verifiedMessage) {
	f.Checked++
	key := fmt.Sprint(m.seq)
	if m.seq != last.seq+1 {
		gone := fmt.Sprintf("%d to %d", last.seq+1, m.seq-1)
		if last.seq+1 == m.seq-1 {
			gone = fmt.Sprint(m.seq - 1)
		}
		f.add(FaultMissing, "messages", gone, "", "message %s is missing", gone)
		return // what follows a gap cannot be computed; the next one is again
	}
	native, search, bytes := m.native, m.search, m.nativeBytes
	if p, ok := pruned.messages[m.seq]; ok && (m.pruned != nil || m.native == p.Placeholder) {
		if m.native != p.Placeholder {
			f.add(FaultTampered, "messages", key, "native", "the placeholder is not the one that its pruning wrote")
		}
		if m.search != sha256.Sum256(nil) {
			f.add(FaultTampered, "messages", key, "search_text", "the search text of a pruned message is not empty")
		}
		if !p.at.IsZero() && (m.pruned == nil || !m.pruned.Equal(p.at)) {
			f.add(FaultTampered, "messages", key, "pruned_at", "it is not when its pruning was, on %s",
				v.day(p.at, nil))
		}
		native, search, bytes = p.Native, p.SearchText, p.Bytes
		f.add(FaultPruned, "messages", key, "native", "its content was pruned on %s", v.day(p.at, m.pruned))
	} else if m.pruned != nil {
		f.add(FaultTampered, "messages", key, "pruned_at", "it says that it was pruned, and no pruning is on record")
	}
	before, chain := last.record.chain, m.record.chain
	if chainOver(before, m.seq, m.role, m.kind, m.clientID, native) != chain {
		f.add(FaultTampered, "messages", key, m.chainSuspect(before, native),
			"its content, role, kind or client id is not what its hash commits to")
	}
	r := m.record
	r.searchText = search
	if suspect := m.recordSuspect(r, last.record.sums, bytes); suspect != "" {
		f.add(FaultTampered, "messages", key, suspect,
			"its sizes, times or search text are not what its record commits to")
	}
}

// day is that of a pruning: the one on record, and where there is none what the row says.
func (v *Verification) day(recorded time.Time, row *time.Time) string {
	switch {
	case !recorded.IsZero():
		return recorded.UTC().Format(time.DateOnly)
	case row != nil:
		return row.UTC().Format(time.DateOnly)
	}
	return "an unknown day"
}

// chainSuspect finds which of the columns under a message's chain was changed, by trying what roles and kinds there
// are.
func (m verifiedMessage) chainSuspect(before, native Hash) string {
	is := func(role pipeline.Role, kind pipeline.Kind, clientID string) bool {
		return chainOver(before, m.seq, role, kind, clientID, native) == m.record.chain
	}
	for _, role := range []pipeline.Role{
		pipeline.RoleSystem, pipeline.RoleUser, pipeline.RoleAssistant,
		pipeline.RoleTool,
	} {
		if is(role, m.kind, m.clientID) {
			return "role"
		}
	}
	for _, kind := range []pipeline.Kind{
		pipeline.KindOrdinary, pipeline.KindSummary, pipeline.KindUserInfo,
		pipeline.KindReminder, pipeline.KindSynthetic,
	} {
		if is(m.role, kind, m.clientID) {
			return "kind"
		}
	}
	if is(m.role, m.kind, "") {
		return "client_id"
	}
	record := m.record
	record.searchText = m.search
	if record.hash() != Hash(padded(m.stored)) {
		return "chain" // its own record does not know it either
	}
	return "native, kind or client_id"
}

func padded(b []byte) (h Hash) {
	copy(h[:], b)
	return h
}

// recordSuspect says which column under a message's record is at fault, "" when all fit.
func (m verifiedMessage) recordSuspect(r messageRecord, before Sums, bytes int64) string {
	turns := int64(0)
	if r.genuine {
		turns = 1
	}
	fits := func(r messageRecord) bool { return r.hash() == padded(m.stored) }
	consistent := r.sums == Sums{
		Tokens: before.Tokens + r.tokens, Chars: before.Chars + r.chars,
		Turns: before.Turns + turns,
	} && r.bytes == bytes
	if fits(r) && consistent {
		return ""
	}
	for _, try := range []struct {
		column string
		change func(*messageRecord)
	}{
		{"genuine", func(r *messageRecord) { r.genuine = !r.genuine }},
		{"tokens", func(r *messageRecord) { r.tokens = r.sums.Tokens - before.Tokens }},
		{"tokens_sum", func(r *messageRecord) { r.sums.Tokens = before.Tokens + r.tokens }},
		{"chars", func(r *messageRecord) { r.chars = r.sums.Chars - before.Chars }},
		{"chars_sum", func(r *messageRecord) { r.sums.Chars = before.Chars + r.chars }},
		{"turns_sum", func(r *messageRecord) { r.sums.Turns = before.Turns + turns }},
		{"bytes", func(r *messageRecord) { r.bytes = bytes }},
	} {
		changed := r
		try.change(&changed)
		if fits(changed) {
			return try.column
		}
	}
	if len(m.stored) == 0 {
		return "record"
	}
	if chain := r.chain; fits(r) && !chain.IsZero() {
		return "tokens_sum, chars_sum, turns_sum or bytes"
	}
	return "created_at, search_text, sync_chain or record"
}

// head compares the conversation's row with its last message.
func (v *Verification) head(f *Faults, last verifiedMessage) {
	c := v.Conversation
	key := c.Ref.ID
	switch {
	case last.seq < c.HeadSeq:
		f.add(FaultMissing, "messages", fmt.Sprintf("%d to %d", last.seq+1, c.HeadSeq), "",
			"conversations.head_seq says %d, and the last message that is there is %d", c.HeadSeq, last.seq)
		return
	case last.seq > c.HeadSeq:
		f.add(FaultTampered, "conversations", key, "head_seq",
			"the conversation's head is message %d, and there is a message %d", c.HeadSeq, last.seq)
		return
	}
	if last.record.chain != c.HeadChain {
		f.add(FaultTampered, "conversations", key, "head_chain", "the head's hash is not that of message %d", last.seq)
	}
	for _, sum := range []struct {
		column     string
		have, want int64
	}{
		{"tokens_sum", c.Sums.Tokens, last.record.sums.Tokens},
		{"chars_sum", c.Sums.Chars, last.record.sums.Chars},
		{"turns_sum", c.Sums.Turns, last.record.sums.Turns},
	} {
		if sum.have != sum.want {
			f.add(FaultTampered, "conversations", key, sum.column, "it is %d, and the messages come to %d", sum.have,
				sum.want)
		}
	}
}

// Events recomputes the chain over the conversation's timeline.
func (v *Verification) Events(ctx context.Context) (f Faults, err error) {
	c := v.Conversation
	rows, err := v.tx.Query(ctx, `SELECT seq, chain, `+eventChain(`coalesce(lag(chain) OVER (ORDER BY seq), decode(repeat('00', 32), 'hex'))`, "seq", "kind", "coalesce(run, '')", "data", "created_at")+`
		FROM events WHERE cid = $1 ORDER BY seq`, c.cid)
	if err != nil {
		return f, err
	}
	var seq, last int64
	var stored, computed, head []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &stored, &computed}, func() error {
		f.Checked++
		switch {
		case seq != last+1:
			f.add(FaultMissing, "events", fmt.Sprint(last+1), "", "events %d to %d are missing", last+1, seq-1)
		case string(stored) != string(computed):
			f.add(FaultTampered, "events", fmt.Sprint(seq), "kind, run, data, created_at or chain",
				"the event is not what its hash commits to")
		}
		last, head = seq, slices.Clone(stored)
		return nil
	})
	if err != nil {
		return f, err
	}
	var wantSeq int64
	var wantHead []byte
	if err := v.tx.QueryRow(ctx, `SELECT event_seq, event_chain FROM conversations WHERE cid = $1`,
		c.cid).Scan(&wantSeq, &wantHead); err != nil {
		return f, err
	}
	switch {
	case last < wantSeq:
		f.add(FaultMissing, "events", fmt.Sprint(last+1), "",
			"conversations.event_seq says %d, and the last event that is there is %d", wantSeq, last)
	case last > wantSeq:
		f.add(FaultTampered, "conversations", c.Ref.ID, "event_seq", "the last event is %d, and there is an event %d",
			wantSeq, last)
	case last > 0 && string(head) != string(wantHead):
		f.add(FaultTampered, "conversations", c.Ref.ID, "event_chain", "the timeline's hash is not that of event %d",
			last)
	}
	return f, nil
}

// SealHead is where a conversation's seals stand. Kept elsewhere, it proves later that none of them was rewritten.
type SealHead struct {
	Seals int64 `json:"seals"`
	Chain Hash  `json:"chain"`
}

// Seals recomputes the chain over the conversation's seals, and compares the rows with what they recorded: those of the
// given runs and their markers, or with no run given all of them.
func (v *Verification) Seals(ctx context.Context, runs ...string) (f Faults, head SealHead, err error) {
	c := v.Conversation
	whole, head, err := v.sealChain(ctx, &f)
	if err != nil || !whole {
		return f, head, err
	}
	if head.Seals == 0 {
		f.add(FaultMissing, "seals", c.Ref.ID, "",
			"the conversation has no seals: a version that kept none wrote it, or they were removed")
		return f, head, nil
	}
	var last Seal
	for {
		page, err := all(ctx, v.tx, scanSeal, `SELECT n, kind, subject, sha256, chain, record, created_at FROM seals
			WHERE cid = $1 AND (kind, subject, n) > ($2, $3, $4) ORDER BY kind, subject, n LIMIT $5`,
			c.cid, string(last.Kind), last.Subject, last.N, verifyPage/10)
		if err != nil {
			return f, head, err
		}
		for i, s := range page {
			if s.Kind == last.Kind && s.Subject == last.Subject {
				compareSeals(&f, last, s)
			}
			newest := i+1 < len(page) && (page[i+1].Kind != s.Kind || page[i+1].Subject != s.Subject)
			if i+1 == len(page) {
				if newest, err = v.newest(ctx, s); err != nil {
					return f, head, err
				}
			}
			if newest && s.Kind != SealPrune {
				wanted, err := v.wanted(ctx, s, runs)
				if err != nil {
					return f, head, err
				}
				if wanted {
					if err := v.compareRows(ctx, &f, s); err != nil {
						return f, head, err
					}
				}
			}
			last = s
		}
		if len(page) < verifyPage/10 {
			break
		}
	}
	return f, head, v.unsealed(ctx, &f, runs)
}

func scanSeal(row pgx.CollectableRow) (s Seal, err error) {
	var sum, chain []byte
	err = row.Scan(&s.N, &s.Kind, &s.Subject, &sum, &chain, (*[]byte)(&s.Record), &s.Created)
	s.SHA256, s.Chain = padded(sum), padded(chain)
	return s, err
}

// sealChain recomputes the chain of the seals; whole is false when it is broken, and then no record is to be believed.
func (v *Verification) sealChain(ctx context.Context, f *Faults) (whole bool, head SealHead, err error) {
	c := v.Conversation
	rows, err := v.tx.Query(
		ctx, `SELECT n, kind, subject, sha256, chain, sha256(record) FROM seals WHERE cid = $1 ORDER BY n`, c.cid)
	if err != nil {
		return false, head, err
	}
	var n int64
	var kind SealKind
	var of string
	var sum, chain, computed []byte
	_, err = pgx.ForEachRow(rows, []any{&n, &kind, &of, &sum, &chain, &computed}, func() error {
		f.Checked++
		switch {
		case n != head.Seals+1:
			f.add(FaultMissing, "seals", fmt.Sprint(head.Seals+1), "", "seals %d to %d are missing", head.Seals+1, n-1)
		case string(sum) != string(computed):
			f.add(FaultTampered, "seals", fmt.Sprint(n), "record or sha256",
				"the record of %s %s is not what its hash commits to", kind, of)
		case SealChain(head.Chain, n, kind, of, padded(sum)) != padded(chain):
			f.add(FaultTampered, "seals", fmt.Sprint(n), "kind, subject or chain",
				"the seal of %s %s is not what its chain commits to", kind, of)
		}
		head = SealHead{Seals: n, Chain: padded(chain)}
		return nil
	})
	if err != nil {
		return false, head, err
	}
	var wantN int64
	var wantChain []byte
	if err := v.tx.QueryRow(ctx, `SELECT seal_seq, seal_chain FROM conversations WHERE cid = $1`, c.cid).Scan(&wantN,
		&wantChain); err != nil {
		return false, head, err
	}
	switch {
	case head.Seals < wantN:
		f.add(FaultMissing, "seals", fmt.Sprint(head.Seals+1), "",
			"conversations.seal_seq says %d, and the last seal that is there is %d", wantN, head.Seals)
	case head.Seals > wantN:
		f.add(FaultTampered, "conversations", c.Ref.ID, "seal_seq", "the last seal is %d, and there is a seal %d",
			wantN, head.Seals)
	case head.Chain != padded(wantChain):
		f.add(FaultTampered, "conversations", c.Ref.ID, "seal_chain", "the hash of the seals is not that of seal %d",
			head.Seals)
	}
	if err := v.activation(ctx, f, head.Seals); err != nil {
		return false, head, err
	}
	return f.Bad == 0, head, nil
}

// activation compares which marker is active, and where the timeline was, with what the last seal says: every change
// of a marker is sealed.
func (v *Verification) activation(ctx context.Context, f *Faults, last int64) error {
	c := v.Conversation
	raw, err := one(ctx, v.tx, pgx.RowTo[[]byte], `SELECT record FROM seals WHERE cid = $1 AND n = $2`, c.cid, last)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var r SealRecord
	if json.Unmarshal(raw, &r) != nil {
		return nil // its hash has told
	}
	if r.Epoch != c.Epoch {
		f.add(FaultTampered, "conversations", c.Ref.ID, "epoch", "it is %d, and the last seal says %d", c.Epoch,
			r.Epoch)
	}
	if r.ActiveMarker != c.ActiveMarker {
		f.add(FaultTampered, "conversations", c.Ref.ID, "active_marker", "it is %q, and the last seal says %q",
			c.ActiveMarker, r.ActiveMarker)
	}
	if r.Events == 0 {
		return nil
	}
	chain, err := one(ctx, v.tx, pgx.RowTo[[]byte], `SELECT chain FROM events WHERE cid = $1 AND seq = $2`, c.cid,
		r.Events)
	switch {
	case isNotFound(err):
		f.add(FaultMissing, "events", fmt.Sprint(r.Events), "", "the last seal was written when event %d was there",
			r.Events)
	case err != nil:
		return err
	case padded(chain) != r.EventChain:
		f.add(FaultTampered, "events", fmt.Sprint(r.Events), "chain",
			"it is not what the last seal says of the timeline")
	}
	return nil
}

func (v *Verification) newest(ctx context.Context, s Seal) (bool, error) {
	return one(ctx, v.tx, pgx.RowTo[bool],
		`SELECT NOT EXISTS (SELECT FROM seals WHERE cid = $1 AND kind = $2 AND subject = $3 AND n > $4)`,
		v.Conversation.cid, string(s.Kind), s.Subject, s.N)
}

// wanted says whether the seal is of one of the runs, or of what they all rest on.
func (v *Verification) wanted(ctx context.Context, s Seal, runs []string) (bool, error) {
	switch {
	case len(runs) == 0, s.Kind == SealConversation, s.Kind == SealState:
		return true, nil
	case s.Kind == SealRun:
		return slices.Contains(runs, s.Subject), nil
	}
	// A marker counts when one of the runs made it, or stands on it. One that is gone is told too.
	return one(ctx, v.tx, pgx.RowTo[bool], `WITH RECURSIVE under AS (
			SELECT id, base FROM markers WHERE cid = $1 AND run = ANY($2)
			UNION SELECT m.id, m.base FROM markers m JOIN under u ON m.id = u.base
		)
		SELECT EXISTS (SELECT FROM under WHERE id = $3) OR NOT EXISTS (SELECT FROM markers WHERE id = $3)`, v.Conversation.cid, runs, s.Subject)
}

// errSealForm is a seal that is whole, and that this version cannot compare with the rows.
var errSealForm = errors.New("of a form that this version does not read; verify it with the version that wrote it")

func (s Seal) rows() (map[string]SealedRow, error) {
	var r SealRecord
	if err := json.Unmarshal(s.Record, &r); err != nil {
		return nil, fmt.Errorf("read seal %d: %w", s.N, err)
	}
	if r.Form != sealForm {
		return nil, fmt.Errorf("seal %d is %w: %d", s.N, errSealForm, r.Form)
	}
	rows := make(map[string]SealedRow, len(r.Rows))
	for _, row := range r.Rows {
		rows[row.Table+" "+row.Key] = row
	}
	return rows, nil
}

func tableOf(kind SealKind, name string) (sealedTable, bool) {
	for _, t := range sealedTables[kind] {
		if t.name == name {
			return t, true
		}
	}
	return sealedTable{}, false
}

// compareSeals looks at what changed between two seals of one subject: what nothing may change was changed by somebody
// between them, and the second seal believed it.
func compareSeals(f *Faults, before, after Seal) {
	was, err := before.rows()
	if err != nil {
		return // the hash of the record is right, and this build cannot read it
	}
	is, err := after.rows()
	if err != nil {
		return
	}
	for _, id := range sortedKeys(was) {
		row := was[id]
		t, known := tableOf(before.Kind, row.Table)
		now, there := is[id]
		switch {
		case !known:
		case !there && (row.Table == "stage_results" || row.Table == "artifacts"):
			// They go with the conversation's content. Where they must be there, their own check says so.
		case !there:
			f.add(FaultMissing, row.Table, row.Key, "",
				"the row was there when seal %d was written, and not for seal %d", before.N, after.N)
		default:
			for _, column := range sortedKeys(row.Values) {
				if !same(row.Values[column], now.Values[column]) && !slices.Contains(t.changes, column) &&
					(t.open == nil || !t.open(row)) {
					f.add(FaultTampered, row.Table, row.Key, column,
						"it changed between seals %d and %d, and nothing changes it", before.N, after.N)
				}
			}
		}
	}
}

// compareRows compares the rows of a subject with its newest seal.
func (v *Verification) compareRows(ctx context.Context, f *Faults, s Seal) error {
	sealed, err := s.rows()
	if errors.Is(err, errSealForm) {
		f.add(FaultMissing, "seals", fmt.Sprint(s.N), "record", "%s", err)
		return nil
	}
	if err != nil {
		f.add(FaultTampered, "seals", fmt.Sprint(s.N), "record", "the record cannot be read: %s", err)
		return nil
	}
	read, err := readRows(ctx, v.tx, v.Conversation.cid, subject{s.Kind, s.Subject})
	if err != nil {
		return err
	}
	f.Checked++
	found := make(map[string]SealedRow, len(read[0]))
	for _, row := range read[0] {
		found[row.Table+" "+row.Key] = row
	}
	for _, id := range sortedKeys(sealed) {
		row := sealed[id]
		now, there := found[id]
		if !there {
			switch {
			case row.Table == "enrichments" && !v.Conversation.ContentDeleted.IsZero():
				f.add(FaultPruned, row.Table, row.Key, "", "it went with the conversation's content")
			case row.Table != "artifacts": // whether those that are referred to are there is a check of its own
				f.add(FaultMissing, row.Table, v.rowKey(s, row), "", "the row was there when seal %d was written", s.N)
			}
			continue
		}
		for _, column := range sortedKeys(row.Values) {
			if value, known := now.Values[column]; known && !same(row.Values[column], value) {
				f.add(FaultTampered, row.Table, v.rowKey(s, row), column, "%s", differs(row.Values[column], value))
			}
		}
	}
	for _, id := range sortedKeys(found) {
		if _, ok := sealed[id]; !ok && found[id].Table != "artifacts" {
			f.add(FaultTampered, found[id].Table, v.rowKey(s, found[id]), "",
				"the row was not there when seal %d was written", s.N)
		}
	}
	return nil
}

// rowKey is a row's key, with the run that it belongs to.
func (v *Verification) rowKey(s Seal, row SealedRow) string {
	if s.Kind == SealRun && row.Table != "runs" && row.Table != "artifacts" {
		return s.Subject + "/" + row.Key
	}
	return row.Key
}

// maxShown bounds a value in a fault's sentence, in bytes.
const maxShown = 60

// differs says what a value was and is; texts that may be the conversation's are told by their hashes in the seal.
func differs(was, is *string) string {
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

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// unsealed finds rows that must be sealed and are not: nobody but a store writes them, and it seals what it writes.
func (v *Verification) unsealed(ctx context.Context, f *Faults, runs []string) error {
	for _, look := range []struct{ table, sql string }{
		{"runs", `SELECT id FROM runs r WHERE cid = $1 AND outcome IS NOT NULL AND NOT EXISTS (
			SELECT FROM seals s WHERE s.cid = $1 AND s.kind = 'run' AND s.subject = r.id) ORDER BY id`},
		{"markers", `SELECT id FROM markers m WHERE cid = $1 AND NOT EXISTS (
			SELECT FROM seals s WHERE s.cid = $1 AND s.kind = 'marker' AND s.subject = m.id) ORDER BY id`},
		{"enrichments", `SELECT key || '@' || version FROM enrichments e WHERE cid = $1 AND NOT EXISTS (
			SELECT FROM seals s WHERE s.cid = $1 AND s.kind = 'state' AND s.subject = e.key || '@' || e.version) ORDER BY key, version`},
	} {
		keys, err := all(ctx, v.tx, pgx.RowTo[string], look.sql, v.Conversation.cid)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if look.table == "runs" && len(runs) > 0 && !slices.Contains(runs, key) {
				continue
			}
			f.add(FaultTampered, look.table, key, "", "no seal knows the row: it was not written by precis")
		}
	}
	return nil
}

// prunings reads what was pruned of the conversation.
func (v *Verification) prunings(ctx context.Context) (*prunedSet, error) {
	if v.pruned != nil {
		return v.pruned, nil
	}
	set := &prunedSet{messages: map[int64]prunedMessage{}, artifacts: map[Hash]prunedArtifact{}}
	rows, err := v.tx.Query(ctx, `SELECT record FROM seals WHERE cid = $1 AND kind = 'prune' ORDER BY n`,
		v.Conversation.cid)
	if err != nil {
		return nil, err
	}
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		var r SealRecord
		if json.Unmarshal(raw, &r) != nil || r.Pruned == nil {
			return nil // the chain of the seals tells
		}
		for _, m := range r.Pruned.Messages {
			set.messages[m.Seq] = prunedMessage{m, r.Pruned.At}
		}
		for _, a := range r.Pruned.Artifacts {
			set.artifacts[a.SHA256] = prunedArtifact{a, r.Pruned.At}
		}
		return nil
	})
	v.pruned = set
	return set, err
}

// ArtifactReference is where a run refers to an artifact.
type ArtifactReference struct {
	SHA256 string
	// Table, Key and Column hold the reference; Role says what it is for a person.
	Table, Key, Column, Role string
}

// References lists the artifacts that a run, its steps, its model calls and its marker refer to.
func (v *Verification) References(ctx context.Context, run string) ([]ArtifactReference, error) {
	return all(ctx, v.tx, func(row pgx.CollectableRow) (r ArtifactReference, err error) {
		return r, row.Scan(&r.SHA256, &r.Table, &r.Key, &r.Column, &r.Role)
	}, `SELECT encode(context_sha256, 'hex'), 'runs', id, 'context_sha256', 'context' FROM runs WHERE id = $1 AND context_sha256 IS NOT NULL
		UNION ALL SELECT numbers ->> 'state', 'runs', id, 'numbers', 'state' FROM runs WHERE id = $1 AND numbers ->> 'state' <> ''
		UNION ALL SELECT value, 'run_steps', concat_ws('/', run, stage, call, attempt), 'artifacts', key
			FROM run_steps, jsonb_each_text(artifacts) WHERE run = $1 AND value <> ''
		UNION ALL SELECT encode(request_sha256, 'hex'), 'usage_ledger', concat_ws('/', run, call, attempt), 'request_sha256', 'request'
			FROM usage_ledger WHERE run = $1 AND request_sha256 IS NOT NULL
		UNION ALL SELECT encode(answer_sha256, 'hex'), 'usage_ledger', concat_ws('/', run, call, attempt), 'answer_sha256', 'answer'
			FROM usage_ledger WHERE run = $1 AND answer_sha256 IS NOT NULL
		UNION ALL SELECT encode(comparison_sha256, 'hex'), 'replays', run, 'comparison_sha256', 'comparison'
			FROM replays WHERE run = $1 AND comparison_sha256 IS NOT NULL
		UNION ALL SELECT encode(summary_sha256, 'hex'), 'markers', id, 'summary_sha256', 'summary'
			FROM markers WHERE run = $1 AND summary_sha256 IS NOT NULL
		UNION ALL SELECT encode(native_sha256, 'hex'), 'markers', id, 'native_sha256', 'native'
			FROM markers WHERE run = $1 AND native_sha256 IS NOT NULL
		UNION ALL SELECT draft ->> 'summary', 'markers', id, 'draft', 'summary text' FROM markers WHERE run = $1 AND draft ->> 'summary' <> ''
		ORDER BY 2, 3, 4, 5`, run)
}

// Artifact reads an artifact that is referred to. data is nil, and a fault added, when it is pruned, gone or changed.
func (v *Verification) Artifact(ctx context.Context, f *Faults, r ArtifactReference) (data []byte, err error) {
	f.Checked++
	c := v.Conversation
	sum, err := parseHash(r.SHA256)
	if err != nil {
		f.add(FaultTampered, r.Table, r.Key, r.Column, "the reference to its %s is no SHA-256", r.Role)
		return nil, nil
	}
	type stored struct {
		size   int64
		zstd   []byte
		pruned *time.Time
		linked bool
	}
	a, err := one(ctx, v.tx, func(row pgx.CollectableRow) (a stored, err error) {
		return a, row.Scan(&a.size, &a.zstd, &a.pruned, &a.linked)
	}, `SELECT size, data, pruned_at, EXISTS (SELECT FROM artifact_links l WHERE l.cid = $3 AND l.tenant = a.tenant AND l.sha256 = a.sha256)
		FROM artifacts a WHERE tenant = $1 AND sha256 = $2`, c.Ref.Tenant, sum[:], c.cid)
	key := sum.String()
	switch {
	case isNotFound(err) && !c.ContentDeleted.IsZero():
		f.add(FaultPruned, "artifacts", key, "", "the %s went with the conversation's content", r.Role)
		return nil, nil
	case isNotFound(err):
		f.add(FaultMissing, "artifacts", key, "", "%s %s refers to it as its %s, and it is not there", r.Table, r.Key,
			r.Role)
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch {
	case !a.linked && !c.ContentDeleted.IsZero(): // what is there is another conversation's with the same text
		f.add(FaultPruned, "artifacts", key, "", "the %s went with the conversation's content", r.Role)
		return nil, nil
	case !a.linked:
		f.add(FaultMissing, "artifact_links", key, "", "the %s is not noted as this conversation's", r.Role)
	}
	if a.pruned != nil {
		pruned, err := v.prunings(ctx)
		if err != nil {
			return nil, err
		}
		p, ok := pruned.artifacts[sum]
		if !ok || p.Size != a.size {
			f.add(FaultTampered, "artifacts", key, "pruned_at",
				"the %s says that it was pruned, and no pruning is on record", r.Role)
			return nil, nil
		}
		f.add(FaultPruned, "artifacts", key, "data", "the %s was pruned on %s", r.Role, v.day(p.at, a.pruned))
		return nil, nil
	}
	if data, err = v.store.unpack(sum, a.zstd); err != nil {
		f.add(FaultTampered, "artifacts", key, "data", "the %s of %s %s is not what its hash commits to", r.Role,
			r.Table, r.Key)
		return nil, nil
	}
	if int64(len(data)) != a.size {
		f.add(FaultTampered, "artifacts", key, "size", "the %s has %d bytes, and its row says %d", r.Role, len(data),
			a.size)
	}
	return data, nil
}

// Run reads one run of the conversation with its steps, ErrNotFound when it is another's.
func (v *Verification) Run(ctx context.Context, id string) (Run, error) {
	r, err := run(ctx, v.tx, RunRef{v.Conversation.Ref.Tenant, id})
	if err != nil {
		return r, err
	}
	if r.Conversation != v.Conversation.Ref.ID {
		return r, notFoundf("run %q", id)
	}
	r.Steps, err = all(ctx, v.tx, scanStep,
		`SELECT `+stepColumns+` FROM run_steps s WHERE s.run = $1 ORDER BY s.call, s.attempt, s.id`, id)
	return r, err
}

// Marker reads one of the conversation's markers.
func (v *Verification) Marker(ctx context.Context, id string) (Marker, error) {
	return marker(ctx, v.tx, v.Conversation.cid, id)
}

// Runs lists the ids of the conversation's runs, oldest first.
func (v *Verification) Runs(ctx context.Context) ([]string, error) {
	return all(ctx, v.tx, pgx.RowTo[string], `SELECT id FROM runs WHERE cid = $1 ORDER BY created_at, id`,
		v.Conversation.cid)
}

// LiveView is Store.LiveView of the moment that is verified.
func (v *Verification) LiveView(ctx context.Context, o LiveOptions) (LiveView, error) {
	live, packed, err := liveView(ctx, v.tx, v.Conversation, o)
	if err != nil {
		return live, err
	}
	return v.store.unpackSummary(live, packed)
}

// AuditFilter picks conversations; zero fields do not filter.
type AuditFilter struct {
	Tenant, Conversation string
}

// AuditedConversation is one that is to be looked at.
type AuditedConversation struct {
	// Key orders the conversations of a store by when they were made; it is for ConversationsAfter.
	Key int64
	Ref ConversationRef
}

// ConversationsAfter gives the conversations of all tenants that a filter picks, in the order in which they were
// made, from the one behind the key on; at most limit (1 to 1000) of them. It is for whoever works for the whole
// installation.
func (s *Store) ConversationsAfter(ctx context.Context, f AuditFilter, key int64,
	limit int,
) ([]AuditedConversation, error) {
	var list []AuditedConversation
	err := s.read(ctx, "list conversations", func(ctx context.Context, q querier) (err error) {
		list, err = all(ctx, q, func(row pgx.CollectableRow) (c AuditedConversation, err error) {
			return c, row.Scan(&c.Key, &c.Ref.Tenant, &c.Ref.ID)
		}, `SELECT cid, tenant, id FROM conversations WHERE cid > $1 AND ($2 = '' OR tenant = $2) AND ($3 = '' OR id = $3)
			ORDER BY cid LIMIT $4`, key, cleanText(f.Tenant), cleanText(f.Conversation), clampLimit(limit))
		return err
	})
	return list, err
}

// CountConversations counts those that a filter picks.
func (s *Store) CountConversations(ctx context.Context, f AuditFilter) (int, error) {
	var n int
	err := s.read(ctx, "count conversations", func(ctx context.Context, q querier) (err error) {
		n, err = one(ctx, q, pgx.RowTo[int],
			`SELECT count(*) FROM conversations WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR id = $2)`,
			cleanText(f.Tenant), cleanText(f.Conversation))
		return err
	})
	return n, err
}

// AuditJob is how far a piece of work over many conversations has come.
type AuditJob struct {
	// Name says what is done, and for what.
	Name string
	// Key is that of the last conversation which is done, 0: none.
	Key int64
	// Progress is what it has found so far, a JSON object.
	Progress json.RawMessage
	Started  time.Time
}

// GetAuditJob reads one that was interrupted, ErrNotFound when there is none.
func (s *Store) GetAuditJob(ctx context.Context, name string) (AuditJob, error) {
	j := AuditJob{Name: name}
	err := s.read(ctx, "read a job", func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, `SELECT cid, progress, started_at FROM audit_jobs WHERE name = $1`, cleanText(name)).
			Scan(&j.Key, (*[]byte)(&j.Progress), &j.Started)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = notFoundf("job %q", name)
	}
	return j, err
}

// KeepAuditJob notes how far a job has come.
func (s *Store) KeepAuditJob(ctx context.Context, j AuditJob) error {
	progress, err := cleanJSON(j.Progress)
	if err != nil {
		return fmt.Errorf("store: keep a job: %w", err)
	}
	return s.write(ctx, "keep a job", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO audit_jobs (name, cid, progress) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET cid = excluded.cid, progress = excluded.progress, updated_at = now()`, cleanText(j.Name), j.Key, progress)
		return err
	})
}

// EndAuditJob forgets a job that is done. One that is not there is fine.
func (s *Store) EndAuditJob(ctx context.Context, name string) error {
	return s.write(ctx, "end a job", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM audit_jobs WHERE name = $1`, cleanText(name))
		return err
	})
}

// SealChain is the chain of the conversation's last seal: it commits to everything that was sealed.
func (c Conversation) SealChain() Hash { return c.sealChain }
