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

// Jobs keeps the progress of jobs over many conversations.
type Jobs struct{ db *db.DB }

// NewJobs returns Jobs over an open database.
func NewJobs(d *db.DB) *Jobs { return &Jobs{db: d} }

// State is what is wrong with a row.
type State string

// The states.
const (
	// Tampered: the row was changed since precis wrote it.
	Tampered State = "tampered"
	// Missing: the row was written and no longer exists.
	Missing State = "missing"
	// Pruned: its content was pruned by age, or deleted with the conversation's, and the seals record that.
	Pruned State = "pruned"
)

// Finding is one row that is not as precis wrote it.
type Finding struct {
	State State  `json:"state"`
	Table string `json:"table"`
	// Key identifies the row within the table. Column is the changed column, or a list of columns of which one was
	// changed; "": the row as a whole.
	Key    string `json:"key"`
	Column string `json:"column,omitempty"`
	// Detail is one sentence without text of the conversation.
	Detail string `json:"detail"`
}

// Findings are the results of one check.
type Findings struct {
	// Checked counts the rows that were compared.
	Checked int `json:"checked"`
	// List has the first MaxFindings findings; Pruned and Bad count all of them.
	List   []Finding `json:"faults,omitempty"`
	Pruned int       `json:"pruned,omitempty"`
	Bad    int       `json:"bad,omitempty"`
}

// MaxFindings bounds the findings that one check lists.
const MaxFindings = 50

// Add counts a finding, and lists it if there are fewer than MaxFindings.
func (f *Findings) Add(finding Finding) {
	if finding.State == Pruned {
		f.Pruned++
	} else {
		f.Bad++
	}
	if len(f.List) < MaxFindings {
		f.List = append(f.List, finding)
	}
}

func (f *Findings) add(state State, table, key, column, format string, args ...any) {
	f.Add(Finding{State: state, Table: table, Key: key, Column: column, Detail: fmt.Sprintf(format, args...)})
}
