package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// unfinished is the word for runs that have no outcome yet.
const unfinished = runreport.Unfinished

var outcomes = []string{
	string(precis.OutcomeApplied), string(precis.OutcomePrepared), string(precis.OutcomeSkipped),
	string(precis.OutcomeSuperseded), string(precis.OutcomeCancelled), string(precis.OutcomeFailed),
	string(precis.OutcomeReplayed), unfinished,
}

var triggers = []string{
	string(pipeline.TriggerTokens), string(pipeline.TriggerTurns), string(pipeline.TriggerManual),
	string(pipeline.TriggerBackground), string(pipeline.TriggerOverflow),
}

// filterFlags pick runs.
type filterFlags struct {
	conversation, outcome, errorKind, since, until, trigger, summarizer, replayOf string

	digest bool
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.conversation, "conversation", "", "only those of the conversation `ID`")
	flags.StringVar(&f.outcome, "outcome", "", "only those that ended so: `OUTCOME` is "+strings.Join(outcomes, ", "))
	flags.StringVar(&f.errorKind, "error-kind", "", "only those that ended with an error of this `KIND`, such as auth")
	flags.BoolVar(&f.digest, "digest", false,
		"only those whose summary is a digest; --digest=false: only those of a model")
	flags.StringVar(&f.since, "since", "",
		"only those asked for since a `TIME`: a date, a time, or how long ago, such as 24h or 7d")
	flags.StringVar(&f.until, "until", "", "only those asked for before a `TIME`")
	flags.StringVar(&f.trigger, "trigger", "", "only those started by `TRIGGER`: "+strings.Join(triggers, ", "))
	flags.StringVar(&f.summarizer, "summarizer", "",
		"only those whose summary was written by `WHO`: self, VENDOR/MODEL or digest")
	flags.StringVar(&f.replayOf, "replay-of", "", "only those that repeat `RUN`")
}

// filter reads the flags. digest says whether that one was given.
func (f *filterFlags) filter(now time.Time, digest bool) (runs.Filter, error) {
	out := runs.Filter{
		Conversation: f.conversation, ErrorKind: pipeline.ErrorKind(f.errorKind),
		Trigger: pipeline.TriggerKind(f.trigger), Summarizer: f.summarizer, ReplayOf: f.replayOf,
	}
	if f.outcome != "" && !slices.Contains(outcomes, f.outcome) {
		return out, fail.Usagef("--outcome is one of %s, not %q", strings.Join(outcomes, ", "), f.outcome)
	}
	if f.outcome == unfinished {
		out.Unfinished = true
	} else {
		out.Outcome = precis.Outcome(f.outcome)
	}
	if f.errorKind != "" && !slices.Contains(pipeline.ErrorKinds, out.ErrorKind) {
		return out, fail.Usagef("--error-kind: there is no kind %q; docs/errors.md lists them", f.errorKind)
	}
	if f.trigger != "" && !slices.Contains(triggers, f.trigger) {
		return out, fail.Usagef("--trigger is one of %s, not %q", strings.Join(triggers, ", "), f.trigger)
	}
	if digest {
		out.Digest = &f.digest
	}
	var err error
	if out.Since, err = moment("--since", f.since, now); err != nil {
		return out, err
	}
	out.Until, err = moment("--until", f.until, now)
	return out, err
}

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
		Short:   "List compactions, the newest first, or sum them up",
		Long: `Lists runs, the newest first; one that failed shows its error kind. A run is named by the end of its id, which every
command takes; --wide and --json have all of it. With --summarise it counts them by outcome and error kind, with their model calls, tokens, time
(the median, and what 95 of 100 stay below) and cost. A plus behind a cost says that some model has no price.`,
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
	flags.StringVar(&f.cursor, "cursor", "", "go on behind a list that was cut, from the `CURSOR` that it ended with")
	return cmd
}

// findRun gives the run that a person names: by its id, or by the end of it.
func (a *app) findRun(ctx context.Context, s *session, id string) (store.RunRef, error) {
	ref, err := s.store.Runs.FindByEnd(ctx, a.tenant, id)
	if errors.Is(err, store.ErrInvalid) {
		return ref, fail.Usage(err)
	}
	return ref, err
}

// mostDays is how many days ago a time can be: more than two centuries, and less than a date of PostgreSQL's goes back.
const mostDays = 100_000

// moment reads a time: a date, an RFC 3339 time, or how long before now. A date is midnight UTC.
func moment(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04",
		time.DateOnly,
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if number, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(number); err == nil && days >= 0 && days <= mostDays {
			return now.AddDate(0, 0, -days), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fail.Usagef(
		"%s is a date (2026-11-30), a time (2026-11-30T09:00:00Z) or how long ago (90m, 24h, 7d), not %q", flag, s)
}

// runsReport is the JSON of `precis runs`.
type runsReport struct {
	Runs []wire.Run `json:"runs"`
	// Totals count everything that the filter matches, by outcome.
	Totals map[string]int `json:"totals"`
	// More says that the limit left some out, Next is the cursor for those.
	More bool   `json:"more"`
	Next string `json:"next,omitempty"`
}

func (a *app) runs(ctx context.Context, s *session, f runs.Filter, flags *runsFlags) error {
	report := runsReport{Runs: []wire.Run{}, Totals: map[string]int{}}
	counts, err := s.store.Runs.Count(ctx, a.tenant, f)
	if err != nil {
		return err
	}
	for outcome, n := range counts {
		if outcome == "" {
			outcome = unfinished
		}
		report.Totals[string(outcome)] = n
	}
	for len(report.Runs) < flags.limit {
		f.Limit = min(flags.limit-len(report.Runs), 1000)
		page, next, err := s.store.Runs.List(ctx, a.tenant, f)
		if errors.Is(err, store.ErrInvalid) {
			return fail.Usagef("--cursor: %q is none that a list ended with", flags.cursor)
		}
		if err != nil {
			return err
		}
		for _, r := range page {
			report.Runs = append(report.Runs, runreport.Priced(runreport.Of(r), s.config.Prices))
		}
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
	if err := a.printRows(runRows(report.Runs, flags.wide)); err != nil {
		return err
	}
	a.say("%s", term.Totals(report.Totals))
	if report.More {
		a.say("precis: the list stops after %d; --limit shows more, --cursor %s goes on", len(report.Runs), report.Next)
	}
	return nil
}

// runRows is a list of runs, within a line each or with all columns.
func runRows(list []wire.Run, wide bool) term.Table {
	var t term.Table
	if wide {
		t.Row("RUN", "ASKED FOR (UTC)", "CONVERSATION", "TRIGGER", "OUTCOME", "ERROR", "SUMMARIZER", "TOKENS", "TOOK",
			"CALLS", "COST")
		for _, r := range list {
			t.Row(r.ID, term.When(r.Created), r.Conversation, string(r.Trigger.Kind), endWord(r), string(r.ErrorKind),
				r.Summarizer,
				sizeWords(r), runTook(r), term.Count(r.Usage.Calls), costCell(r.Cost))
		}
		return t
	}
	t.Row("RUN", "ASKED (UTC)", "CONV", "TRIGGER", "OUTCOME", "TOKENS", "COST")
	for _, r := range list {
		outcome := endWord(r)
		if r.Outcome == precis.OutcomeFailed && r.ErrorKind != "" {
			outcome = string(r.ErrorKind) // that it failed goes without saying, and takes room
		}
		size := ""
		if r.TokensBefore > 0 {
			size = term.Short(r.TokensBefore)
		}
		if r.TokensAfter > 0 {
			size += "→" + term.Short(r.TokensAfter)
		}
		cost := costCell(r.Cost)
		if r.Usage.Calls == 0 {
			cost = ""
		}
		t.Row(shortRun(r.ID), r.Created.UTC().Format("01-02 15:04"), shortConversation(r.Conversation),
			string(r.Trigger.Kind), outcome, size, cost)
	}
	t.Fit(2, 4)
	return t
}

// shortRun is the end of a run's id.
func shortRun(id string) string { return id[max(0, len(id)-runs.ShortID):] }

// shortConversation is a conversation's id, of one that we made its end: those of one day begin alike.
func shortConversation(id string) string {
	if uuid.Validate(id) == nil {
		return "…" + id[len(id)-6:]
	}
	return id
}

// endWord is how a run ended, and that its marker was taken back.
func endWord(r wire.Run) string {
	switch {
	case r.Outcome == "":
		return unfinished
	case r.Undone != nil:
		return string(r.Outcome) + ", undone"
	}
	return string(r.Outcome)
}

// sizeWords are the context's tokens before and after.
func sizeWords(r wire.Run) string {
	if r.TokensBefore == 0 {
		return ""
	}
	size := term.Tokens(r.TokensBefore, r.Trigger.Estimated)
	if r.TokensAfter > 0 {
		size += " → ≈" + term.Count(r.TokensAfter)
	}
	return size
}

// runTook is how long a run took, or has taken so far.
func runTook(r wire.Run) string {
	if r.Started == nil || r.Finished == nil {
		return ""
	}
	return term.Took(r.Finished.Sub(*r.Started))
}

// sumRuns prints the runs by outcome and error kind.
func (a *app) sumRuns(ctx context.Context, s *session, f runs.Filter) error {
	found, err := s.store.Runs.Summarize(ctx, a.tenant, f)
	if err != nil {
		return err
	}
	groups := runreport.GroupsOf(found, s.config.Prices)
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
		t.Row(outcome, term.Count(g.Runs), term.Count(g.Digests), term.Count(g.Usage.Calls), term.Short(int(g.Usage.Input)),
			term.Short(int(g.Usage.Output)),
			timeCell(g.MedianMS), timeCell(g.P95MS), costCell(g.Cost))
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
	a.sayUnpriced(runreport.CostOf(all, s.config.Prices), all)
	return nil
}

func timeCell(ms int64) string {
	if ms == 0 {
		return ""
	}
	return term.Took(time.Duration(ms) * time.Millisecond)
}

// sayUnpriced tells which models have no price.
func (a *app) sayUnpriced(c *wire.RunCost, models []wire.RunModelUsage) {
	var names []string
	for _, m := range models {
		if c == nil || slices.Contains(c.NoPriceFor, m.Model) {
			names = append(names, m.Model)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		a.say("%s", fmt.Sprintf("precis: %s", noPrice(names)))
	}
}
