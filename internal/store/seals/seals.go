// Package seals writes and reads the seals of a conversation. A seal is what a run, a marker, a piece of live state or
// a conversation's configuration was at a moment, column by column, written in the transaction that made it so. Each
// commits to the one before it in its conversation. Package evidence compares the rows with them; docs/audit.md says
// what that proves.
package seals

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/db"
)

// A seal is what a run, a marker, a piece of state or a conversation's configuration was at a moment, column by column,
// written in the transaction that made it so. Each commits to the one before it in its conversation. VerifySeals
// compares the rows with them; docs/audit.md says what that proves.

// Kind is what a seal is of.
type Kind string

// The kinds.
const (
	Conversation Kind = "conversation"
	Run          Kind = "run"
	Marker       Kind = "marker"
	LiveState    Kind = "state"
	// Pruning lists what a pruning took, with the hashes of it.
	Pruning Kind = "prune"
)

// Seal is one row of seals.
type Seal struct {
	// N counts the seals of a conversation from 1.
	N       int64
	Kind    Kind
	Subject string
	// SHA256 is of Record; Chain commits to this seal and all before it, see SealChain.
	SHA256, Chain db.Hash
	// Record is a SealRecord in JSON.
	Record  json.RawMessage
	Created time.Time
}

// Form is how values are written in a record. It goes up with every change of that, so that what an older version
// sealed is read as what it is, and not taken for something that was changed.
const Form = 1

// Record is what a seal holds.
type Record struct {
	// Form is the sealForm of the version that wrote it.
	Form int `json:"form"`
	// Epoch and ActiveMarker are the conversation's at that time.
	Epoch        int64  `json:"epoch"`
	ActiveMarker string `json:"active_marker,omitempty"`
	// Events and EventChain are the head of its timeline then: what came before the seal cannot be cut off unseen.
	Events     int64   `json:"events"`
	EventChain db.Hash `json:"event_chain"`
	// Rows are those that belong to the subject.
	Rows []Row `json:"rows,omitempty"`
	// Pruned is what a pruning took.
	Pruned *Pruned `json:"pruned,omitempty"`
	// Imported says where an imported conversation came from, on its first seal.
	Imported *ImportedFrom `json:"imported,omitempty"`
}

// Row is one row as it was.
type Row struct {
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
	Seals     int64   `json:"seals"`
	SealChain db.Hash `json:"seal_chain"`
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

func (r Row) Value(column string) string { return db.Or(r.Values[column], "") }

// Head is where a conversation's seals stand. Kept elsewhere, it proves later that none of them was rewritten.
type Head struct {
	Seals int64   `json:"seals"`
	Chain db.Hash `json:"chain"`
}

func Scan(row pgx.CollectableRow) (s Seal, err error) {
	var sum, chain []byte
	err = row.Scan(&s.N, &s.Kind, &s.Subject, &sum, &chain, (*[]byte)(&s.Record), &s.Created)
	s.SHA256, s.Chain = db.ToHash(sum), db.ToHash(chain)
	return s, err
}
