package cli

import (
	"context"
	"slices"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/term"
	"precis/internal/runreport"
	"precis/internal/service"
)

// sumRuns prints the runs by outcome and error kind.
func (a *app) sumRuns(ctx context.Context, s *session, f service.RunFilter) error {
	groups, err := a.service(s).SummarizeRuns(ctx, a.tenant, f)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"groups": groups})
	}
	if len(groups) == 0 {
		a.say("precis: no run matches")
		return nil
	}
	var t term.Table
	t.Row("OUTCOME", "RUNS", "DIGEST", "CALLS", "IN", "OUT", "MEDIAN", "95 %", "COST")
	var all []wire.RunModelUsage
	undone := 0
	for _, g := range groups {
		outcome := g.Outcome
		switch {
		case g.ErrorKind != "" && g.Outcome == string(precis.OutcomeFailed):
			outcome = g.ErrorKind
		case g.ErrorKind != "" && g.ErrorKind != g.Outcome:
			outcome += ", " + g.ErrorKind
		}
		t.Row(outcome, term.Count(g.Runs), term.Count(g.Digests), term.Count(g.Usage.Calls),
			term.Short(int(g.Usage.Input)),
			term.Short(int(g.Usage.Output)),
			draw.Duration(g.MedianMS), draw.Duration(g.P95MS), draw.CostCell(g.Cost))
		all = append(all, g.Models...)
		undone += g.Undone
	}
	t.Fit(0)
	if err := a.printRows(t); err != nil {
		return err
	}
	if undone > 0 {
		a.say("%s taken back since", term.PluralWere(undone, "compaction"))
	}
	a.sayUnpriced(unpricedModels(runreport.CostOf(all, s.Config.Prices), all))
	return nil
}

// unpricedModels returns the names of the models that have no price. c is the cost of all their calls.
func unpricedModels(c *wire.RunCost, models []wire.RunModelUsage) []string {
	var names []string
	for _, m := range models {
		if c == nil || slices.Contains(c.NoPriceFor, m.Model) {
			names = append(names, m.Model)
		}
	}
	return names
}

// sayUnpriced prints which models have no price.
func (a *app) sayUnpriced(names []string) {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		a.say("precis: %s", draw.NoPrice(names))
	}
}
