package eval

import (
	"fmt"
	"strings"

	"precis/pipeline"
)

// Report has the sums of the outcomes of many conversations.
type Report struct {
	Window        int `json:"window"`
	SummaryTokens int `json:"summary_tokens"`
	Generations   int `json:"generations"`
	// Conversations is the number of conversations, Compacted that of those that reached the limit at least once.
	Conversations int `json:"conversations"`
	Compacted     int `json:"compacted"`
	// Rows are the methods, in their order.
	Rows []Row `json:"rows"`
}

// Row has the figures of one method.
type Row struct {
	Method
	// Model is the model that wrote the summaries instead of a program, "VENDOR/MODEL"; "" for none.
	Model string `json:"model,omitempty"`
	// Compactions is the number of compactions. Before and After are the sums of the context's tokens before and after
	// them.
	Compactions int   `json:"compactions"`
	Before      int64 `json:"tokens_before"`
	After       int64 `json:"tokens_after"`
	// Kinds are the survivals by kind, over the facts of all conversations.
	Kinds map[pipeline.MentionKind]Survival `json:"kinds"`
}

// NewReport returns an empty report on methods.
func NewReport(o Options, methods []Method) *Report {
	r := &Report{Window: o.Window, SummaryTokens: o.SummaryTokens, Generations: o.Generations}
	for _, m := range methods {
		r.Rows = append(r.Rows, Row{Method: m, Kinds: map[pipeline.MentionKind]Survival{}})
	}
	return r
}

// Add adds a conversation: an outcome for each row, in order.
func (r *Report) Add(outcomes []Outcome) {
	r.Conversations++
	reached := false
	for i, out := range outcomes {
		r.Rows[i].add(out, r.Generations)
		reached = reached || out.Compactions > 0
	}
	if reached {
		r.Compacted++
	}
}

func (row *Row) add(out Outcome, generations int) {
	row.Compactions += out.Compactions
	row.Before, row.After = row.Before+out.Before, row.After+out.After
	for kind, survival := range out.Kinds {
		if row.Kinds[kind] == nil {
			row.Kinds[kind] = make(Survival, generations)
		}
		for g := range survival {
			row.Kinds[kind][g].add(survival[g])
		}
	}
}

// Name returns the method, or the model.
func (row Row) Name() string {
	if row.Model != "" {
		return row.Model
	}
	return string(row.Summarizer) + ", " + string(row.Policy)
}

// Text returns the report as a table of at most 80 columns: for each kind, a line for each method with the share that
// was left after each compaction, in percent.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Facts still in the context after so many compactions, in %%. Window %d tokens,\nsummaries of "+
		"at most %d. %d of %d conversations were compacted.\n",
		r.Window, r.SummaryTokens, r.Compacted, r.Conversations)
	for _, kind := range pipeline.MentionKinds {
		fmt.Fprintf(&b, "\n%-32s%9s", headings[kind], "of")
		for g := range r.Generations {
			fmt.Fprintf(&b, "%6d", g+1)
		}
		b.WriteString("\n")
		for _, row := range r.Rows {
			s := row.Kinds[kind]
			said := 0
			if len(s) > 0 {
				said = s[0].Said
			}
			fmt.Fprintf(&b, "  %-30s%9d", row.Name(), said)
			for g := range r.Generations {
				if share, ok := s.Share(g + 1); ok {
					fmt.Fprintf(&b, "%6.1f", share*100)
				} else {
					fmt.Fprintf(&b, "%6s", "-")
				}
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "\n%-32s%14s%14s%14s\n", "the compactions", "number", "tokens before", "after")
	for _, row := range r.Rows {
		n := max(row.Compactions, 1)
		fmt.Fprintf(&b, "  %-30s%14d%14d%14d\n", row.Name(), row.Compactions, row.Before/int64(n), row.After/int64(n))
	}
	return b.String()
}

// headings are the names of the kinds in the table.
var headings = map[pipeline.MentionKind]string{
	pipeline.MentionConstraint: "limits that the user set",
	pipeline.MentionIntent:     "what else the user said",
	pipeline.MentionTask:       "open tasks (of the moment)",
	pipeline.MentionPath:       "paths",
	pipeline.MentionIdentifier: "identifiers",
	pipeline.MentionNumber:     "numbers with their unit",
}
