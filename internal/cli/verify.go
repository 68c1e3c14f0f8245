package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/audit"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/store"
	"precis/internal/store/evidence"
)

type verifyFlags struct {
	all, restart bool
	conversation string
}

func (a *app) verifyCommand() *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:     "verify RUN…",
		GroupID: groupAudit,
		Short:   "Prove that what a run is said to have done was not changed",
		Long: `Recomputes everything that a run commits to: the messages it covers are unchanged and complete, the run, its steps
and its model calls are what was recorded when it ended, every text is what its hash says, the summary is the one that
was written, and the context that the agent was given follows from them byte for byte. What is not as it was is named by
table, row and column; what was pruned is told from what was tampered with.

--all does it for every conversation of the store, of all tenants unless --tenant names one. Interrupted, it goes on from
there when it is called again.`,
		Example: `  precis verify 3f9c2e
  precis verify --all
  precis verify --conversation my-agent-7 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sweep := f.all || f.conversation != ""
			switch {
			case sweep && len(args) > 0:
				return fail.Usagef("`precis verify` takes runs, or --all or --conversation, not both")
			case !sweep && len(args) == 0:
				return fail.Usagef("`precis verify` needs a run, or --all; `precis runs` lists the runs")
			case f.restart && !sweep:
				return fail.Usagef("--restart goes with --all or --conversation")
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				if !sweep {
					return a.verifyRuns(ctx, s, args)
				}
				w := audit.Sweep{Filter: evidence.Filter{Conversation: f.conversation}, Restart: f.restart}
				if f.conversation != "" || cmd.Flags().Changed("tenant") {
					w.Tenant = a.tenant
				}
				if err := a.conversationExists(ctx, s, f.conversation); err != nil {
					return err
				}
				return a.verifyAll(ctx, s, w)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.all, "all", false, "verify every conversation with all its runs")
	flags.StringVar(&f.conversation, "conversation", "", "verify one `conversation` with all its runs")
	flags.BoolVar(&f.restart, "restart", false, "begin anew, where an earlier call was interrupted")
	return cmd
}

func (a *app) verifyRuns(ctx context.Context, s *session, ids []string) error {
	failed := false
	var reports []wire.AuditReport
	for _, id := range ids {
		ref, err := a.findRun(ctx, s, id)
		if err != nil {
			return err
		}
		r, err := audit.VerifyRun(ctx, s.store, ref)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
		}
		if err != nil {
			return err
		}
		failed = failed || !r.OK
		reports = append(reports, r.Wire())
		if !a.json {
			if err := a.print(drawReport(r)); err != nil {
				return err
			}
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"runs": reports}); err != nil {
			return err
		}
	}
	if failed {
		return fail.Silent(fail.ExitFailed)
	}
	return nil
}

// drawReport is a report for a person: a line a check, and below it what is at fault.
func drawReport(r audit.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s of conversation %s: %s\n", r.Run, term.Printable(r.Conversation), verdict(r))
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "  %-9s  %-8s  %s\n", c.Name, c.State, c.Detail)
		for i, f := range c.List {
			if i == 0 && c.State.Failed() && len(c.List) == 1 {
				break // the check has said it
			}
			place := f.Table + " " + f.Key
			if f.Column != "" {
				place += ", " + f.Column
			}
			fmt.Fprintf(&b, "             %-8s  %s: %s\n", f.State, place, f.Detail)
		}
	}
	return b.String()
}

func verdict(r audit.Report) string {
	switch {
	case !r.OK:
		return "NOT as it was written"
	case r.Pruned:
		return "as it was written, as far as it was not pruned"
	}
	return "as it was written"
}

func (a *app) verifyAll(ctx context.Context, s *session, w audit.Sweep) error {
	p := a.progress()
	defer p.Clear()
	w.Progress = func(done audit.Swept) {
		p.Line("verified %s of %s, %s: %s not as written", term.Count(done.Conversations),
			term.Plural(done.Total, "conversation"), term.Plural(done.Runs, "run"), term.Count(done.Failed))
	}
	swept, err := audit.VerifyAll(ctx, s.store, w)
	p.Clear()
	if err != nil {
		if ctx.Err() != nil {
			a.say("precis: interrupted after %s of %s; the same command goes on from there", term.Count(swept.Conversations),
				term.Plural(swept.Total, "conversation"))
		}
		return err
	}
	if a.json {
		if err := a.printJSON(swept); err != nil {
			return err
		}
	} else if err := a.print(drawSwept(swept)); err != nil {
		return err
	}
	if swept.Failed > 0 {
		return fail.Silent(fail.ExitFailed)
	}
	return nil
}

func drawSwept(s audit.Swept) string {
	var b strings.Builder
	for _, f := range s.Failures {
		what := "conversation " + term.Printable(f.Conversation)
		if f.Run != "" {
			what = "run " + f.Run + " of " + what
		}
		fmt.Fprintf(&b, "%-8s  %s (tenant %s), %s: %s\n", f.State, what, term.Printable(f.Tenant), f.Check, f.Detail)
	}
	fmt.Fprintf(&b, "%s, %s: %s messages, events, records and texts compared", term.Plural(s.Conversations, "conversation"),
		term.Plural(s.Runs, "run"), term.Count(s.Checked))
	if s.Resumed > 0 {
		fmt.Fprintf(&b, " (%s by an earlier call)", term.Plural(s.Resumed, "conversation"))
	}
	fmt.Fprintf(&b, "\n%s not as written, %s pruned\n", term.Plural(s.Failed, "conversation"), term.Count(s.Pruned)+" things")
	return b.String()
}
