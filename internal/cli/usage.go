package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
)

var usageKeys = []string{"tenant", "conversation", "model", "day"}

func (a *app) usageCommand() *cobra.Command {
	by, since := "model", ""
	cmd := &cobra.Command{
		Use:     "usage",
		GroupID: groupAudit,
		Short:   "Sum up what the model calls of compactions used and cost",
		Long: `Sums all requests to models that compactions made, including those that failed or were interrupted.
LOST counts requests whose answer never arrived: they may have been billed, and their tokens are not in the
sums. Costs are by the configured prices; a plus says that some model has none.`,
		Example: `  precis usage --group-by day --since 7d
  precis usage --group-by conversation --json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(usageKeys, by) {
				return fail.Usagef("--group-by is one of %s, not %q", strings.Join(usageKeys, ", "), by)
			}
			from, err := moment("--since", since, time.Now())
			if err != nil {
				return err
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.usage(ctx, s, by, from) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&by, "group-by", by, "`WHAT` each sum is of: "+strings.Join(usageKeys, ", "))
	flags.StringVar(&since, "since", "",
		"only calls since a `TIME`: a date, a time, or how long ago, such as 24h or 7d")
	return cmd
}

// usageReport is the JSON of `precis usage`.
type usageReport struct {
	GroupBy string               `json:"group_by"`
	Usage   []wire.RunUsageGroup `json:"usage"`
}

func (a *app) usage(ctx context.Context, s *session, by string, since time.Time) error {
	groups, err := a.service(s).Usage(ctx, a.tenant, by, since)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(usageReport{by, groups})
	}
	if len(groups) == 0 {
		a.say("precis: no model was called")
		return nil
	}
	var t term.Table
	t.Row(strings.ToUpper(by), "CALLS", "FAILED", "LOST", "TOKENS IN", "CACHED", "OUT", "COST")
	for _, g := range groups {
		t.Row(g.Key, term.Count(g.Calls), term.Count(g.Failed), term.Count(g.Lost), term.Count(int(g.Input)),
			term.Count(int(g.CachedInput)), term.Count(int(g.Output)), draw.CostCell(g.Cost))
	}
	t.Fit(0)
	if err := a.printRows(t); err != nil {
		return err
	}
	models := groups
	if by != "model" {
		if models, err = a.service(s).Usage(ctx, a.tenant, "model", since); err != nil {
			return err
		}
	}
	var unpriced []string
	for _, m := range models {
		if m.Cost == nil || len(m.Cost.NoPriceFor) > 0 {
			unpriced = append(unpriced, m.Key)
		}
	}
	a.sayUnpriced(unpriced)
	return nil
}
