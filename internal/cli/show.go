package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"precis/internal/cli/draw"
	"precis/internal/runreport"
	"precis/internal/store"
)

func (a *app) showCommand() *cobra.Command {
	var want runreport.Include
	wide := false
	cmd := &cobra.Command{
		Use:     "show RUN",
		GroupID: groupAudit,
		Short:   "Show what a run did, stage by stage",
		Long: `Prints a run: its trigger, its outcome, and its way down the ladder, every attempt at every stage with what it
found and what was done next. The texts come on request; those of a conversation whose content was deleted are gone.
RUN is a run's id, or the end of it that ` + "`precis runs`" + ` prints.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd, func(ctx context.Context,
				s *session,
			) error {
				return a.show(ctx, s, args[0], want, wide)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&want.Prompts, "prompts", false, "print what the models were sent")
	flags.BoolVar(&want.Answers, "answers", false, "print what the models wrote")
	flags.BoolVar(&want.Summary, "summary", false, "print the summary")
	flags.BoolVar(&want.Context, "context", false, "print the new context, one native message a line")
	flags.BoolVar(&want.Omitted, "omitted", false, "list the messages that a summarizer did not see whole")
	flags.BoolVar(&wide, "wide", false, "print a line for each step, with its rung and worker, however wide")
	return cmd
}

func (a *app) show(ctx context.Context, s *session, id string, want runreport.Include, wide bool) error {
	ref, err := a.findRun(ctx, s, id)
	if err != nil {
		return err
	}
	stored, err := s.store.Runs.Get(ctx, ref)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
	}
	if err != nil {
		return err
	}
	r := runreport.Priced(runreport.Of(stored), s.config.Prices)
	if want.Any() {
		if r.RunTexts, err = runreport.Load(ctx, s.store, stored, want); err != nil {
			return err
		}
	}
	if r.Comparison, err = runreport.LoadComparison(ctx, s.store, stored); err != nil {
		return err
	}
	r.Comparison = runreport.PricedComparison(r.Comparison, s.config.Prices)
	if a.json {
		return a.printJSON(r)
	}
	if r.ReplayOf != "" {
		if err := a.print(draw.Replay(r) + "\n"); err != nil {
			return err
		}
	}
	ladder := draw.Ladder(r)
	if wide {
		ladder = draw.Attempts(r)
	}
	return a.print(draw.Run(r) + "\n" + ladder + draw.Texts(r.RunTexts))
}
