// Package evidence compares a conversation with what it commits to: the chains over messages and events, the seals, the
// hashes of artifacts.
package evidence

import (
	"fmt"

	"precis/internal/store/db"
)

// Store opens conversations for verification.
type Store struct{ db *db.DB }

// New returns a Store over an open database.
func New(d *db.DB) *Store { return &Store{db: d} }

// Jobs keeps how far a piece of work over many conversations has come.
type Jobs struct{ db *db.DB }

// NewJobs returns Jobs over an open database.
func NewJobs(d *db.DB) *Jobs { return &Jobs{db: d} }

// State says what is wrong with a row, or what became of it.
type State string

// The states.
const (
	// Tampered: it is not what was written.
	Tampered State = "tampered"
	// Missing: it was written and is gone.
	Missing State = "missing"
	// Pruned: its content was pruned by age, or removed with the conversation's, as is on record.
	Pruned State = "pruned"
)

// Finding is one row that is not as it was written.
type Finding struct {
	State State  `json:"state"`
	Table string `json:"table"`
	// Key tells the row from others of the table; Column is the column at fault, or those among which it is, "": the
	// row.
	Key    string `json:"key"`
	Column string `json:"column,omitempty"`
	// Detail is one sentence without text of the conversation.
	Detail string `json:"detail"`
}

// Findings are what one check found.
type Findings struct {
	// Checked counts what was looked at.
	Checked int `json:"checked"`
	// List has the first faults, at most MaxFaults; Pruned and Bad count all of them.
	List   []Finding `json:"faults,omitempty"`
	Pruned int       `json:"pruned,omitempty"`
	Bad    int       `json:"bad,omitempty"`
}

// MaxFindings is how many faults one check lists: of a table that was rewritten nobody reads more.
const MaxFindings = 50

// Add counts a fault, and lists it while there is room.
func (f *Findings) Add(fault Finding) {
	if fault.State == Pruned {
		f.Pruned++
	} else {
		f.Bad++
	}
	if len(f.List) < MaxFindings {
		f.List = append(f.List, fault)
	}
}

func (f *Findings) add(state State, table, key, column, format string, args ...any) {
	f.Add(Finding{State: state, Table: table, Key: key, Column: column, Detail: fmt.Sprintf(format, args...)})
}
