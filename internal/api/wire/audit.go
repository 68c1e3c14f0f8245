package wire

import (
	"precis"
)

// AuditReport is the result of the verification of a run.
type AuditReport struct {
	_ struct{} `doc:"The result of the verification of a run."`

	Run          string           `json:"run"`
	Conversation string           `json:"conversation" doc:"The client's id of the conversation."`
	Outcome      precis.Outcome   `json:"outcome" doc:"The outcome of the run. Empty while it is in progress."`
	OK           bool             `json:"ok" doc:"Nothing was tampered with and nothing is missing."`
	Pruned       bool             `json:"pruned" doc:"Some of the record was pruned."`
	Checks       []AuditCheck     `json:"checks"`
	Seals        SealHead         `json:"seals" doc:"The head of the conversation's seals. Kept outside of the database, it proves later that no seal was rewritten."`
	NotCovered   []AuditUncovered `json:"not_covered,omitempty" doc:"What the verification says nothing about."`
}

// AuditUncovered is what no seal, chain or hash covers.
type AuditUncovered struct {
	_ struct{} `doc:"A part of a conversation that no seal, chain or hash covers."`

	Part    string   `json:"part" doc:"A table, or a kind of content."`
	Columns []string `json:"columns,omitempty" doc:"The columns of the table. Left out when it is the whole part."`
	Why     string   `json:"why" doc:"Why it is not covered."`
}

// AuditCheck is the result of one check.
type AuditCheck struct {
	_ struct{} `doc:"The result of one check."`

	Name    string  `json:"name" enum:"messages,timeline,records,covered,artifacts,summary,context"`
	State   string  `json:"state" enum:"ok,pruned,differs,missing,tampered"`
	Detail  string  `json:"detail" doc:"The result in one sentence."`
	Checked int     `json:"checked" doc:"How many rows or texts were checked."`
	Faults  []Fault `json:"faults,omitempty" doc:"The first rows at fault, at most 50."`
	Pruned  int     `json:"pruned,omitempty" doc:"How many rows were pruned."`
	Bad     int     `json:"bad,omitempty" doc:"How many rows are tampered with or missing."`
}

// Fault is a row that is not as it was written.
type Fault struct {
	_ struct{} `doc:"A row that is not as it was written."`

	State  string `json:"state" enum:"tampered,missing,pruned"`
	Table  string `json:"table"`
	Key    string `json:"key" doc:"Names the row within the table."`
	Column string `json:"column,omitempty" doc:"The column at fault, or the columns that it may be. Left out when it is the whole row."`
	Detail string `json:"detail" doc:"What is wrong, in one sentence without text of the conversation."`
}

// SealHead is the head of a conversation's chain of seals.
type SealHead struct {
	_ struct{} `doc:"The head of a conversation's chain of seals. Kept outside of the database, it proves later that no seal was rewritten."`

	Seals int64  `json:"seals" doc:"Number of seals."`
	Chain string `json:"chain" doc:"The SHA-256 of the chain, in hex."`
}
