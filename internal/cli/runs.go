package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

type runsFlags struct {
	filterFlags
	summarize, wide bool
	cursor          string
	limit           int
}

func (a *app) runsCommand() *cobra.Command {
	f := &runsFlags{}
	cmd := &cobra.Command{
		Use:     "runs",
		GroupID: groupAudit,
		Short:   "List compactions, newest first, or sum them up",
		Long: `Lists runs, newest first; a failed run shows its error kind. Every command takes a run by the end of
its id, which this list shows; --wide and --json show the whole id. With --summarise it counts runs by outcome
and error kind, with their model calls, tokens, time (the median, and the 95th percentile) and cost. A plus
behind a cost says that some model has no price.`,
		Example: `  precis runs --outcome failed --since 24h
  precis runs --summarise --since 7d
  precis runs --digest --json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now(), cmd.Flags().Changed("digest"))
			if err != nil {
				return err
			}
			if f.limit < 1 {
				return fail.Usagef("--limit is at least 1, not %d", f.limit)
			}
			filter.Cursor = f.cursor
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				if filter.ReplayOf != "" {
					ref, err := a.findRun(ctx, s, filter.ReplayOf)
					if err != nil {
						return err
					}
					filter.ReplayOf = ref.ID
				}
				if f.summarize {
					return a.sumRuns(ctx, s, filter)
				}
				return a.runs(ctx, s, filter, f)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.add(flags)
	flags.BoolVar(&f.summarize, "summarise", false, "count them by outcome and error kind instead of listing them")
	flags.BoolVar(&f.wide, "wide", false, "print all columns and whole ids")
	flags.IntVar(&f.limit, "limit", 50, "list at most `N`")
	flags.StringVar(&f.cursor, "cursor", "", "continue a list that was cut, from the `CURSOR` that it ended with")
	return cmd
}

// findRun returns the run that the user names by its id, or by the end of its id.
func (a *app) findRun(ctx context.Context, s *session, id string) (service.RunRef, error) {
	ref, err := a.service(s).FindRun(ctx, a.tenant, id)
	if service.CodeOf(err) == service.CodeInvalid {
		return ref, fail.Usage(err)
	}
	return ref, err
}

// runsReport is the JSON of `precis runs`.
type runsReport struct {
	Runs []wire.Run `json:"runs"`
	// Totals count everything that the filter matches, by outcome.
	Totals map[string]int `json:"totals"`
	// More reports whether the limit left some out; Next is the cursor for those.
	More bool   `json:"more"`
	Next string `json:"next,omitempty"`
}

func (a *app) runs(ctx context.Context, s *session, f service.RunFilter, flags *runsFlags) error {
	report := runsReport{Runs: []wire.Run{}}
	var err error
	if report.Totals, err = a.service(s).CountRuns(ctx, a.tenant, f); err != nil {
		return err
	}
	for len(report.Runs) < flags.limit {
		f.Limit = min(flags.limit-len(report.Runs), 1000)
		page, next, err := a.service(s).ListRuns(ctx, a.tenant, f)
		if service.CodeOf(err) == service.CodeInvalid {
			return fail.Usagef("--cursor: %q is not the cursor of a list", flags.cursor)
		}
		if err != nil {
			return err
		}
		report.Runs = append(report.Runs, page...)
		f.Cursor = next
		if next == "" {
			break
		}
	}
	report.More, report.Next = f.Cursor != "", f.Cursor
	if a.json {
		return a.printJSON(report)
	}
	if len(report.Runs) == 0 {
		a.say("precis: no run matches")
		return nil
	}
	if err := a.printRows(draw.RunTable(report.Runs, flags.wide)); err != nil {
		return err
	}
	a.say("%s", term.Totals(report.Totals))
	if report.More {
		a.say("precis: the list stops after %d; --limit shows more, --cursor %s continues it", len(report.Runs),
			report.Next)
	}
	return nil
}
