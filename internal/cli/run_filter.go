package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"precis"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/service"
	"precis/pipeline"
)

var outcomes = []string{
	string(precis.OutcomeApplied), string(precis.OutcomePrepared), string(precis.OutcomeSkipped),
	string(precis.OutcomeSuperseded), string(precis.OutcomeCancelled), string(precis.OutcomeFailed),
	string(precis.OutcomeReplayed), draw.Unfinished,
}

var triggers = []string{
	string(pipeline.TriggerTokens), string(pipeline.TriggerTurns), string(pipeline.TriggerManual),
	string(pipeline.TriggerBackground), string(pipeline.TriggerOverflow),
}

// filterFlags are the flags that pick runs.
type filterFlags struct {
	conversation, outcome, errorKind, since, until, trigger, summarizer, replayOf string

	digest bool
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.conversation, "conversation", "", "only runs of the conversation `ID`")
	flags.StringVar(&f.outcome, "outcome", "",
		"only runs with this outcome: `OUTCOME` is "+strings.Join(outcomes, ", "))
	flags.StringVar(&f.errorKind, "error-kind", "", "only runs that ended with an error of this `KIND`, such as auth")
	flags.BoolVar(&f.digest, "digest", false,
		"only runs whose summary is a digest; --digest=false: only those with one by a model")
	flags.StringVar(&f.since, "since", "",
		"only runs requested since a `TIME`: a date, a time, or how long ago, such as 24h or 7d")
	flags.StringVar(&f.until, "until", "", "only runs requested before a `TIME`")
	flags.StringVar(&f.trigger, "trigger", "", "only runs started by `TRIGGER`: "+strings.Join(triggers, ", "))
	flags.StringVar(&f.summarizer, "summarizer", "",
		"only runs whose summary was written by `WHO`: self, VENDOR/MODEL or digest")
	flags.StringVar(&f.replayOf, "replay-of", "", "only replays of `RUN`")
}

// filter returns the filter of the flags. digest reports whether --digest was given.
func (f *filterFlags) filter(now time.Time, digest bool) (service.RunFilter, error) {
	out := service.RunFilter{
		Conversation: f.conversation, ErrorKind: pipeline.ErrorKind(f.errorKind),
		Trigger: pipeline.TriggerKind(f.trigger), Summarizer: f.summarizer, ReplayOf: f.replayOf,
	}
	if f.outcome != "" && !slices.Contains(outcomes, f.outcome) {
		return out, fail.Usagef("--outcome is one of %s, not %q", strings.Join(outcomes, ", "), f.outcome)
	}
	if f.outcome == draw.Unfinished {
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
