package audit

import (
	"precis/internal/api/wire"
	"precis/internal/store/evidence"
	"precis/internal/store/seals"
)

// Wire returns the report in the form of the HTTP API.
func (r Report) Wire() wire.AuditReport {
	chain, _ := r.Seals.Chain.MarshalText() // has no errors
	out := wire.AuditReport{
		Run: r.Run, Conversation: r.Conversation, Outcome: r.Outcome, OK: r.OK, Pruned: r.Pruned,
		Checks:     make([]wire.AuditCheck, len(r.Checks)),
		Seals:      wire.SealHead{Seals: r.Seals.Seals, Chain: string(chain)},
		NotCovered: Uncovered(seals.NotCovered()),
	}
	for i, c := range r.Checks {
		out.Checks[i] = wire.AuditCheck{
			Name: c.Name, State: string(c.State), Detail: c.Detail,
			Checked: c.Checked, Faults: wireFaults(c.List), Pruned: c.Findings.Pruned, Bad: c.Bad,
		}
	}
	return out
}

// Uncovered returns what a verification says nothing about in the form of the HTTP API.
func Uncovered(list []seals.Uncovered) []wire.AuditUncovered {
	out := make([]wire.AuditUncovered, len(list))
	for i, u := range list {
		out[i] = wire.AuditUncovered{Part: u.Part, Columns: u.Columns, Why: u.Why}
	}
	return out
}

func wireFaults(list []evidence.Finding) []wire.Fault {
	var out []wire.Fault
	for _, f := range list {
		out = append(out, wire.Fault{
			State: string(f.State), Table: f.Table, Key: f.Key, Column: f.Column, Detail: f.Detail,
		})
	}
	return out
}
