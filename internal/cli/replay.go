package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
)

func (a *app) replayCommand() *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:     "replay RUN…",
		GroupID: groupAudit,
		Short:   "Repeat runs: from their record, or with other models",
		Long: `Repeats runs that have ended. From the record, no model is called: every stage is done again with what the run
knew then, each result and the new context are compared byte for byte, and the first difference is shown. With --live
the models are asked anew, with the changes that are given, on what the conversation was then; the two summaries are
shown side by side, and nothing is applied unless --apply says so.

With --history it is Temporal's own record of a workflow that is replayed: whether this build would take up a run
that another one has begun, or break it.

With --failed, --digest, --error-kind, --since and --until it repeats all the runs that match. That goes on by itself,
also when this command is interrupted; --follow, --pause, --resume and --cancel take it up again by its id. With --live
--apply the conversations whose last run failed, or that stand on a digest, get a summary.`,
		Example: `  precis replay RUN                                              does the same come out?
  precis replay RUN --live --summarizer openai/NAME              what would another model write?
  precis replay --failed --since 24h --dry-run                   what failed last night?
  precis replay --failed --digest --since 24h --live --apply     run it again
  precis replay --history history.json                           would this build go on with that run?`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd, args, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.Live, "live", false, "ask the models anew")
	flags.BoolVar(&f.Apply, "apply", false,
		"with --live: make the new summary take effect, unless the conversation has moved on")
	flags.StringVar(&f.Summarizer, "summarizer", "",
		"with --live: who writes the summary: `LIST` of self, VENDOR/MODEL or digest")
	flags.StringVar(&f.Prompt, "prompt", "", "with --live: the `name` of the prompt")
	flags.IntVar(&f.MaxChars, "max-chars", 0, "with --live: at most so `many` chars of input for the summarizer")
	flags.StringVar(&f.Focus, "focus", "", "with --live: what the summary is to keep first, in your own `words`")
	flags.BoolVar(&f.failed, "failed", false, "all runs that failed")
	flags.BoolVar(&f.digest, "digest", false, "all runs whose summary is a digest")
	flags.StringVar(&f.errorKind, "error-kind", "", "those that failed with a `kind`, or for a digest whose models did")
	flags.StringVar(&f.conversation, "conversation", "", "those of one `conversation`")
	flags.StringVar(&f.since, "since", "",
		"those asked for since a `time`: a date, a time, or how long ago, such as 24h or 7d")
	flags.StringVar(&f.until, "until", "", "those asked for before a `time`")
	flags.IntVar(&f.concurrency, "concurrency", 4, "at most so `many` at once")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list what would be repeated, and repeat nothing")
	flags.StringVar(&f.history, "history", "",
		"replay the Temporal history of a workflow, by its `ID`, or of a file with one, against this build")
	flags.StringVar(&f.follow, "follow", "", "follow the repetition with an `ID`")
	flags.StringVar(&f.pause, "pause", "", "let nothing new of the repetition with an `ID` begin")
	flags.StringVar(&f.resume, "resume", "", "let the repetition with an `ID` go on")
	flags.StringVar(&f.cancel, "cancel", "", "end the repetition with an `ID`, and what is under way of it")
	return cmd
}

func (a *app) replay(cmd *cobra.Command, args []string, f *replayFlags) error {
	id, what, n := f.batch()
	switch {
	case f.history != "" && (n > 0 || len(args) > 0 || f.picks() || f.Live || f.dryRun):
		return fail.Usagef("--history takes a workflow's id, or a file, alone")
	case f.history != "":
		return a.replayHistory(cmd, f.history)
	case n > 1:
		return fail.Usagef("one of --follow, --pause, --resume and --cancel at a time")
	case n == 1 && (len(args) > 0 || f.picks() || f.Live || f.dryRun):
		return fail.Usagef("--%s takes the id of a repetition alone", what)
	case n == 1:
		return a.withServed(cmd, true, func(ctx context.Context, s *session) error { return a.steer(ctx, s, id, what) })
	case len(args) == 0 && !f.picks():
		return fail.Usagef("`precis replay` needs runs, or says which: --failed, --digest, --error-kind, " +
			"--conversation, --since, --until; `precis replay --help` tells more")
	case len(args) > 0 && f.picks():
		return fail.Usagef("runs are named, or picked by --failed, --digest and their like, not both")
	case len(args) > 0 && f.dryRun:
		return fail.Usagef("--dry-run goes with --failed, --digest and their like")
	}
	if err := f.check(); err != nil {
		return err
	}
	if len(args) > 0 {
		return a.withServed(cmd, true,
			func(ctx context.Context, s *session) error { return a.replayRuns(ctx, s, args, f) })
	}
	filter, err := f.filter(time.Now())
	if err != nil {
		return err
	}
	if f.dryRun {
		return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.dryReplay(ctx, s, filter, f) })
	}
	return a.withServed(cmd, true, func(ctx context.Context, s *session) error {
		if err := a.checkSummarizers(s, f.Summarizer); err != nil {
			return err
		}
		b, err := s.launcher().StartBatch(ctx, a.tenant,
			launch.BatchRequest{Filter: filter, Replay: f.ReplayRequest, Concurrency: f.concurrency})
		if err != nil {
			return err
		}
		return a.followBatch(ctx, s, b)
	})
}

// replayRuns repeats runs one after the other.
func (a *app) replayRuns(ctx context.Context, s *session, ids []string, f *replayFlags) error {
	if err := a.checkSummarizers(s, f.Summarizer); err != nil {
		return err
	}
	var list []wire.Run
	var failed error
	for i, id := range ids {
		ref, err := a.findRun(ctx, s, id)
		if err != nil {
			return err
		}
		if _, err := s.store.Runs.Get(ctx, ref); errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
		}
		asked, _, err := launch.AskReplay(ctx, s.store, s.config, ref, f.ReplayRequest)
		if err != nil {
			return err
		}
		title := "repeating run " + id
		if len(ids) > 1 {
			title = fmt.Sprintf("repeating run %d of %d", i+1, len(ids))
		}
		ended, err := waitFor(ctx, a, s, a.progress(), asked, title)
		if err != nil {
			return err
		}
		run := runreport.Priced(runreport.Of(ended), s.config.Prices)
		if run.Comparison, err = runreport.LoadComparison(ctx, s.store, ended); err != nil {
			return err
		}
		run.Comparison = runreport.PricedComparison(run.Comparison, s.config.Prices)
		list = append(list, run)
		if !replayedWell(run) {
			failed = fail.Silent(fail.ExitFailed)
		}
		if a.json {
			continue
		}
		if i > 0 {
			if err := a.print("\n"); err != nil {
				return err
			}
		}
		if err := a.print(draw.Replay(run)); err != nil {
			return err
		}
	}
	if a.json {
		var report any = list
		if len(list) == 1 {
			report = list[0]
		}
		if err := a.printJSON(report); err != nil {
			return err
		}
	}
	return failed
}

// replayedWell says whether a replay did what it was asked for, and found no difference.
func replayedWell(r wire.Run) bool {
	switch {
	case r.Comparison == nil:
		return false
	case !r.Comparison.Live:
		return r.Comparison.Identical
	case r.Apply:
		return r.Outcome == precis.OutcomeApplied || r.Outcome == precis.OutcomePrepared
	}
	return r.Outcome == precis.OutcomeReplayed
}
