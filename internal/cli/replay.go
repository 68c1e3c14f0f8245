package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/service"
)

func (a *app) replayCommand() *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:     "replay RUN…",
		GroupID: groupAudit,
		Short:   "Replay runs: from their record, or with other models",
		Long: `Replays runs that have ended. A replay from the record calls no model: every stage is done again with
what the run knew then, each result and the new context are compared byte for byte, and the first difference is
shown. With --live the models are called again, with the changes that the flags name, on the conversation as it
was then; the two summaries are shown side by side, and nothing is applied without --apply.

With --history it is Temporal's own history of a workflow that is replayed: it shows whether this build could
continue a run that another build has started, or would break it.

With --failed, --digest, --error-kind, --since and --until it replays all matching runs as a batch. A batch
keeps running when this command is interrupted; --follow, --pause, --resume and --cancel control it by its id.
With --live --apply the conversations whose last run failed, or whose summary is a digest, get a new summary.`,
		Example: `  precis replay RUN                                              is the result the same?
  precis replay RUN --live --summarizer openai/NAME              what would another model write?
  precis replay --failed --since 24h --dry-run                   what failed last night?
  precis replay --failed --digest --since 24h --live --apply     run it again
  precis replay --history history.json                           could this build continue that run?`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.replay(cmd, args, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.Live, "live", false, "call the models again")
	flags.BoolVar(&f.Apply, "apply", false,
		"with --live: apply the new summary, unless the conversation has changed since")
	flags.StringVar(&f.Summarizer, "summarizer", "",
		"with --live: who writes the summary: `LIST` of self, VENDOR/MODEL or digest")
	flags.StringVar(&f.Prompt, "prompt", "", "with --live: the `name` of the prompt")
	flags.IntVar(&f.MaxChars, "max-chars", 0, "with --live: maximum `number` of chars of input for the summarizer")
	flags.StringVar(&f.Focus, "focus", "", "with --live: what the summary is to keep first, in your own `words`")
	flags.BoolVar(&f.failed, "failed", false, "replay all runs that failed")
	flags.BoolVar(&f.digest, "digest", false, "replay all runs whose summary is a digest")
	flags.StringVar(&f.errorKind, "error-kind", "",
		"replay runs that failed with this `kind`, or, for a digest, whose models did")
	flags.StringVar(&f.conversation, "conversation", "", "replay runs of one `conversation`")
	flags.StringVar(&f.since, "since", "",
		"replay runs requested since a `time`: a date, a time, or how long ago, such as 24h or 7d")
	flags.StringVar(&f.until, "until", "", "replay runs requested before a `time`")
	flags.IntVar(&f.concurrency, "concurrency", 4, "maximum `number` of replays running at the same time")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list what would be replayed, and replay nothing")
	flags.StringVar(&f.history, "history", "",
		"replay the Temporal history of the workflow `ID`, or of a file, against this build")
	flags.StringVar(&f.follow, "follow", "", "follow the batch `ID` until it ends")
	flags.StringVar(&f.pause, "pause", "", "pause the batch `ID`: running replays finish, no new ones start")
	flags.StringVar(&f.resume, "resume", "", "resume the paused batch `ID`")
	flags.StringVar(&f.cancel, "cancel", "", "cancel the batch `ID` and its running replays")
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
		return fail.Usagef("--%s takes the id of a batch alone", what)
	case n == 1:
		return a.withServed(cmd, true, func(ctx context.Context, s *session) error { return a.steer(ctx, s, id, what) })
	case len(args) == 0 && !f.picks():
		return fail.Usagef("`precis replay` needs runs, or flags that pick them: --failed, --digest, --error-kind, " +
			"--conversation, --since, --until; `precis replay --help` describes them")
	case len(args) > 0 && f.picks():
		return fail.Usagef("runs are either named, or picked by flags such as --failed and --digest, not both")
	case len(args) > 0 && f.dryRun:
		return fail.Usagef("--dry-run goes with flags that pick runs, such as --failed and --digest")
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
		b, err := a.service(s).StartBatch(ctx, a.tenant,
			service.BatchRequest{Filter: filter, Replay: f.ReplayRequest, Concurrency: f.concurrency})
		if err != nil {
			return err
		}
		return a.followBatch(ctx, s, b)
	})
}

// replayRuns replays runs one after the other.
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
		if _, err := a.service(s).GetRun(ctx, ref, nil); service.CodeOf(err) == service.CodeNotFound {
			return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
		}
		title := "replaying run " + id
		if len(ids) > 1 {
			title = fmt.Sprintf("replaying run %d of %d", i+1, len(ids))
		}
		run, err := a.replayRun(ctx, s, ref, f.ReplayRequest, title)
		if err != nil {
			return err
		}
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

// replayRun replays a run and returns the replay with its comparison. If the command is interrupted, it cancels the
// replay.
func (a *app) replayRun(ctx context.Context, s *session, of service.RunRef, req service.ReplayRequest,
	title string,
) (wire.Run, error) {
	svc := a.service(s)
	asked, err := svc.Replay(ctx, of, req)
	if err != nil {
		return asked, err
	}
	p := a.progress()
	ref := service.RunRef{Tenant: of.Tenant, ID: asked.ID}
	ended, err := svc.Follow(ctx, ref, a.follower(p, title))
	p.Clear()
	if err != nil {
		return ended, a.interrupted(ctx, ended, err)
	}
	return svc.GetRun(ctx, ref, nil)
}

// replayedWell reports whether a replay reached its end: identical to the record, or, if it was live, compared or
// applied as requested.
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
