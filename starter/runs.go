package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/runs"
	"precis/internal/store"
	"precis/pipeline"
)

// unfinished is the word for runs that have no outcome yet.
const unfinished = "unfinished"

var outcomes = []string{
	string(store.OutcomeApplied), string(store.OutcomePrepared), string(store.OutcomeSkipped), string(store.OutcomeSuperseded),
	string(store.OutcomeCancelled), string(store.OutcomeFailed), unfinished,
}

type runsFlags struct {
	conversation, outcome, errorKind, since, until string
	digest                                         bool
	limit                                          int
}

func (a *app) runsCommand() *cobra.Command {
	f := &runsFlags{}
	cmd := &cobra.Command{
		Use:     "runs",
		GroupID: groupAudit,
		Short:   "List compactions, the newest first",
		Example: `  precis runs --outcome failed --since 24h
  precis runs --digest --json`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now(), cmd.Flags().Changed("digest"))
			if err != nil {
				return err
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.runs(ctx, s, filter, f.limit) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.conversation, "conversation", "", "those of one `conversation`")
	flags.StringVar(&f.outcome, "outcome", "", "those with an `outcome`: "+strings.Join(outcomes, ", "))
	flags.StringVar(&f.errorKind, "error-kind", "", "those that ended with an error `kind`, such as auth")
	flags.StringVar(&f.since, "since", "", "those asked for since a `time`: a date, a time, or how long ago, such as 24h or 7d")
	flags.StringVar(&f.until, "until", "", "those asked for before a `time`")
	flags.BoolVar(&f.digest, "digest", false, "those whose summary is a digest; --digest=false: those of a model")
	flags.IntVar(&f.limit, "limit", 50, "at most so `many`")
	return cmd
}

// filter reads the flags.
func (f *runsFlags) filter(now time.Time, digest bool) (store.RunFilter, error) {
	out := store.RunFilter{Conversation: f.conversation, ErrorKind: pipeline.ErrorKind(f.errorKind)}
	if f.outcome != "" && !slices.Contains(outcomes, f.outcome) {
		return out, usagef("--outcome is one of %s, not %q", strings.Join(outcomes, ", "), f.outcome)
	}
	if f.outcome == unfinished {
		out.Unfinished = true
	} else {
		out.Outcome = store.Outcome(f.outcome)
	}
	if f.errorKind != "" && !slices.Contains(pipeline.ErrorKinds, out.ErrorKind) {
		return out, usagef("--error-kind: there is no kind %q; docs/errors.md lists them", f.errorKind)
	}
	if digest {
		out.Digest = &f.digest
	}
	if f.limit < 1 {
		return out, usagef("--limit is at least 1, not %d", f.limit)
	}
	var err error
	if out.Since, err = moment("--since", f.since, now); err != nil {
		return out, err
	}
	out.Until, err = moment("--until", f.until, now)
	return out, err
}

// moment reads a time: a date, an RFC 3339 time, or how long before now. A date is midnight UTC.
func moment(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if number, ok := strings.CutSuffix(s, "d"); ok {
		if days, err := strconv.Atoi(number); err == nil && days >= 0 {
			return now.AddDate(0, 0, -days), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, usagef("%s is a date (2026-11-30), a time (2026-11-30T09:00:00Z) or how long ago (90m, 24h, 7d), not %q", flag, s)
}

// runsReport is the JSON of `precis runs`.
type runsReport struct {
	Runs []runs.Run `json:"runs"`
	// Totals count everything that the filter matches, by outcome.
	Totals map[string]int `json:"totals"`
	// More says that the limit left some out.
	More bool `json:"more"`
}

func (a *app) runs(ctx context.Context, s *session, f store.RunFilter, limit int) error {
	report := runsReport{Runs: []runs.Run{}, Totals: map[string]int{}}
	counts, err := s.store.CountRuns(ctx, a.tenant, f)
	if err != nil {
		return err
	}
	for outcome, n := range counts {
		if outcome == "" {
			outcome = unfinished
		}
		report.Totals[string(outcome)] = n
	}
	for len(report.Runs) < limit {
		f.Limit = min(limit-len(report.Runs), 1000)
		page, next, err := s.store.ListRuns(ctx, a.tenant, f)
		if err != nil {
			return err
		}
		for _, r := range page {
			report.Runs = append(report.Runs, runs.Of(r))
		}
		f.Cursor = next
		if next == "" {
			break
		}
	}
	report.More = f.Cursor != ""
	if a.json {
		return a.printJSON(report)
	}
	if len(report.Runs) == 0 {
		a.say("precis: no run matches")
		return nil
	}
	var t table
	t.row("RUN", "ASKED FOR (UTC)", "CONVERSATION", "TRIGGER", "OUTCOME", "ERROR", "SUMMARIZER", "TOKENS", "TOOK")
	for _, r := range report.Runs {
		t.row(runRow(r)...)
	}
	if err := a.printRows(t); err != nil {
		return err
	}
	a.say("%s", totals(report.Totals))
	if report.More {
		a.say("precis: the newest %d are shown; --limit shows more", limit)
	}
	return nil
}

func runRow(r runs.Run) []string {
	outcome := string(r.Outcome)
	if outcome == "" {
		outcome = unfinished
	}
	size := ""
	if r.TokensBefore > 0 {
		size = tokens(r.TokensBefore, r.Trigger.Estimated)
		if r.TokensAfter > 0 {
			size += " → ≈" + count(r.TokensAfter)
		}
	}
	return []string{
		r.ID, when(r.Created), r.Conversation, string(r.Trigger.Kind), outcome, string(r.ErrorKind), r.Summarizer, size, runTook(r),
	}
}

// runTook is how long a run took, or has taken so far.
func runTook(r runs.Run) string {
	if r.Started == nil || r.Finished == nil {
		return ""
	}
	return took(r.Finished.Sub(*r.Started))
}
