package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"precis/internal/cli/draw"
	"precis/internal/service"
)

func (a *app) showCommand() *cobra.Command {
	var want texts
	wide := false
	cmd := &cobra.Command{
		Use:     "show RUN",
		GroupID: groupAudit,
		Short:   "Show a run, stage by stage",
		Long: `Prints a run: its trigger, its outcome, and its way down the ladder: every attempt at every stage,
with its result and what was done next. The texts are printed on request; those of a conversation whose content
was deleted are not available. RUN is the id of a run, or the end of it that ` + "`precis runs`" + ` prints.`,
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
	flags.BoolVar(&want.prompts, "prompts", false, "print what the models were sent")
	flags.BoolVar(&want.answers, "answers", false, "print what the models wrote")
	flags.BoolVar(&want.summary, "summary", false, "print the summary")
	flags.BoolVar(&want.context, "context", false, "print the new context, one native message a line")
	flags.BoolVar(&want.omitted, "omitted", false, "list the messages that a summarizer did not see in full")
	flags.BoolVar(&wide, "wide", false, "print one line per attempt, with its rung and worker, however wide")
	return cmd
}

// texts are the texts of a run that the flags ask for.
type texts struct{ prompts, answers, summary, context, omitted bool }

// names returns the names that the API has for the texts.
func (t texts) names() []string {
	var names []string
	for _, text := range []struct {
		name   string
		wanted bool
	}{
		{"prompts", t.prompts},
		{"answers", t.answers},
		{"summary", t.summary},
		{"context", t.context},
		{"omitted", t.omitted},
	} {
		if text.wanted {
			names = append(names, text.name)
		}
	}
	return names
}

func (a *app) show(ctx context.Context, s *session, id string, want texts, wide bool) error {
	ref, err := a.findRun(ctx, s, id)
	if err != nil {
		return err
	}
	r, err := a.service(s).GetRun(ctx, ref, want.names())
	if service.CodeOf(err) == service.CodeNotFound {
		return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
	}
	if err != nil {
		return err
	}
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
