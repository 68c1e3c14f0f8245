package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

type verifyFlags struct {
	all, restart bool
	conversation string
	heads        string
}

func (a *app) verifyCommand() *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:     "verify RUN…",
		GroupID: groupAudit,
		Short:   "Prove that the record of a run was not changed",
		Long: `Recomputes everything that a run commits to: the messages that it covers are unchanged and complete;
the run, its stages and its model calls are what was recorded when it ended; every text has the hash that was
recorded for it; the summary is the one that was written; and the context that the agent was given follows from
them byte for byte. Every difference is named by table, row and column. Content that was pruned is reported
apart from content that was tampered with.

--all verifies every conversation of the store, of all tenants unless --tenant names one. If it is interrupted,
the same command continues where it stopped.

--heads compares the store with a file of ` + "`precis heads`" + `, and finds what was rewritten together with all its
hashes, and conversations that were removed.`,
		Example: `  precis verify 3f9c2e
  precis verify --all
  precis verify --conversation my-agent-7 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			sweep := f.all || f.conversation != ""
			switch {
			case f.heads != "" && (sweep || len(args) > 0):
				return fail.Usagef("--heads compares the whole store with published heads: use it alone")
			case f.heads != "":
				return a.withStore(cmd, func(ctx context.Context, s *session) error {
					return a.verifyHeads(ctx, s, f.heads)
				})
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
				w := service.SweepRequest{Conversation: f.conversation, Restart: f.restart}
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
	flags.StringVar(&f.heads, "heads", "", "compare with the published heads in a `file`")
	flags.BoolVar(&f.restart, "restart", false, "start from the beginning, even if an earlier call was interrupted")
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
		r, err := a.service(s).Verify(ctx, ref)
		if service.CodeOf(err) == service.CodeNotFound {
			return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
		}
		if err != nil {
			return err
		}
		failed = failed || !r.OK
		reports = append(reports, r)
		if !a.json {
			if err := a.print(draw.Report(r)); err != nil {
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

// verifyAll verifies many conversations, of all tenants if the request names none.
func (a *app) verifyAll(ctx context.Context, s *session, w service.SweepRequest) error {
	p := a.progress()
	defer p.Clear()
	swept, err := a.service(s).VerifyAll(ctx, w, func(done service.Swept) {
		p.Line("verified %s of %s, %s: %s not as written", term.Count(done.Conversations),
			term.Plural(done.Total, "conversation"), term.Plural(done.Runs, "run"), term.Count(done.Failed))
	})
	p.Clear()
	if err != nil {
		if ctx.Err() != nil {
			a.say("precis: interrupted after %s of %s; the same command continues from there",
				term.Count(swept.Conversations),
				term.Plural(swept.Total, "conversation"))
		}
		return err
	}
	if a.json {
		if err := a.printJSON(swept); err != nil {
			return err
		}
	} else if err := a.print(draw.Swept(swept)); err != nil {
		return err
	}
	if swept.Failed > 0 {
		return fail.Silent(fail.ExitFailed)
	}
	return nil
}
