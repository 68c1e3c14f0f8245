// Package seals writes and reads the seals of a conversation. A seal records the columns of a run, a marker, a piece of
// live state or a conversation's configuration, in the transaction that changed them. Each seal commits to the one
// before it in its conversation. Package evidence compares the rows with them; docs/audit.md says what that proves.
package seals

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// Kind is what kind of thing a seal records.
type Kind string

// The kinds.
const (
	Conversation Kind = "conversation"
	Run          Kind = "run"
	Marker       Kind = "marker"
	LiveState    Kind = "state"
	// Pruning lists what a pruning removed, with its hashes.
	Pruning Kind = "prune"
)

// Seal is one row of the table seals.
type Seal struct {
	// N counts the seals of a conversation from 1.
	N       int64
	Kind    Kind
	Subject string
	// SHA256 is of Record; Chain commits to this seal and all before it, see func Chain.
	SHA256, Chain db.Hash
	// Record is a Record in JSON.
	Record  json.RawMessage
	Created time.Time
}

// Form is the version of how values are written in a record. It is raised with every change, so that a seal of an older
// build is not mistaken for one that was tampered with.
const Form = 1

// Rule is the version of the rule about what may change in a run's rows between two seals, see ChangeRun. Builds before
// rule 1 also filled in columns of a run after its end.
const Rule = 1

// Record is what a seal holds.
type Record struct {
	// Form is the constant Form of the build that wrote the record.
	Form int `json:"form"`
	// Epoch and ActiveMarker are the conversation's at that time.
	Epoch        int64  `json:"epoch"`
	ActiveMarker string `json:"active_marker,omitempty"`
	// Events and EventChain are the head of its timeline then, so that a removal of earlier events is detected.
	Events     int64   `json:"events"`
	EventChain db.Hash `json:"event_chain"`
	// Rule is the constant Rule of the build that wrote the record, 0: of an earlier one.
	Rule int `json:"rule,omitempty"`
	// Late is set if the subject is a run that had ended, and the rows have what came to light after its end.
	Late bool `json:"late,omitempty"`
	// Rows are those that belong to the subject.
	Rows []Row `json:"rows,omitempty"`
	// Pruned is what a pruning removed.
	Pruned *Pruned `json:"pruned,omitempty"`
	// Deleted is what a deletion of the conversation's content removed: its tombstone.
	Deleted *Tombstone `json:"deleted,omitempty"`
	// Imported is where an imported conversation came from. Only its first seal has it.
	Imported *ImportedFrom `json:"imported,omitempty"`
}

// Tombstone is what is left of a conversation's content after its deletion.
type Tombstone struct {
	// Messages is the number of the deleted messages, HeadChain the chain over them.
	Messages  int64   `json:"messages"`
	HeadChain db.Hash `json:"head_chain"`
	// Tokens, Chars and Turns are the sums over the messages.
	Tokens int64 `json:"tokens"`
	Chars  int64 `json:"chars"`
	Turns  int64 `json:"turns"`
	// At is the time of the deletion, which is content_deleted_at in the conversation's row.
	At time.Time `json:"at"`
}

// Row is one row at the time of a seal.
type Row struct {
	Table string `json:"table"`
	// Key identifies the row within the table, for display.
	Key string `json:"key"`
	// Values are the columns as text, null for NULL; times in microseconds since 1970, bytes by their SHA-256.
	Values map[string]*string `json:"values"`
}

// ImportedFrom is where an imported conversation came from.
type ImportedFrom struct {
	Conversation string `json:"conversation"`
	// Seals and SealChain are the head of its seals where it was exported.
	Seals     int64   `json:"seals"`
	SealChain db.Hash `json:"seal_chain"`
	// Before is where it had been imported from before that, at the time At; nil: it was created there.
	Before *ImportedFrom `json:"before,omitempty"`
	At     time.Time     `json:"at,omitzero"`
}

// IDAt returns the id that the conversation had at a time before its import.
func (f *ImportedFrom) IDAt(t time.Time) string {
	for f.Before != nil && t.Before(f.At) {
		f = f.Before
	}
	return f.Conversation
}

// Chain returns the chain hash of a seal: SHA-256 over the chain of the one before it (zero for the first), its number
// as 8 bytes big-endian, its kind and subject each ended by a zero byte, and the hash of its record.
func Chain(before db.Hash, n int64, kind Kind, subject string, record db.Hash) db.Hash {
	h := sha256.New()
	_, _ = h.Write(before[:])
	_ = binary.Write(h, binary.BigEndian, uint64(n))
	for _, s := range [...]string{string(kind), subject} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	_, _ = h.Write(record[:])
	return db.Hash(h.Sum(nil))
}

// Value returns the value of a column, "" for NULL.
func (r Row) Value(column string) string { return db.Or(r.Values[column], "") }

// Head is the last seal of a conversation. A copy that is kept elsewhere proves later that no seal up to it was
// rewritten.
type Head struct {
	Seals int64   `json:"seals"`
	Chain db.Hash `json:"chain"`
}

// Scan reads a row of n, kind, subject, sha256, chain, record and created_at.
func Scan(row pgx.CollectableRow) (s Seal, err error) {
	var sum, chain []byte
	err = row.Scan(&s.N, &s.Kind, &s.Subject, &sum, &chain, (*[]byte)(&s.Record), &s.Created)
	s.SHA256, s.Chain = db.ToHash(sum), db.ToHash(chain)
	return s, err
}
