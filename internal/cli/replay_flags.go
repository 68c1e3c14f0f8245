package cli

import (
	"slices"
	"time"

	"precis/internal/cli/fail"
	"precis/internal/contract"
	"precis/internal/service"
	"precis/pipeline"
)

type replayFlags struct {
	service.ReplayRequest
	failed, digest                        bool
	errorKind, conversation, since, until string
	concurrency                           int
	dryRun                                bool
	follow, pause, resume, cancel         string
	history                               string
}

// picks reports whether flags pick the runs, instead of arguments that name them.
func (f *replayFlags) picks() bool {
	return f.failed || f.digest || f.errorKind != "" || f.conversation != "" || f.since != "" || f.until != ""
}

// batch returns the id of the batch and what to do with it, and the number of such flags that were given.
func (f *replayFlags) batch() (id, what string, n int) {
	for _, b := range []struct{ id, what string }{
		{f.follow, "follow"},
		{f.pause, "pause"},
		{f.resume, "resume"},
		{f.cancel, "cancel"},
	} {
		if b.id != "" {
			id, what, n = b.id, b.what, n+1
		}
	}
	return id, what, n
}

// check validates the combination of flags.
func (f *replayFlags) check() error {
	switch {
	case f.Apply && !f.Live:
		return fail.Usagef("--apply goes with --live: a replay from the record gives the result that exists already")
	case f.Changes() && !f.Live:
		return fail.Usagef(
			"--summarizer, --prompt, --max-chars and --focus go with --live: a replay from the record changes nothing")
	case f.concurrency < 1 || f.concurrency > contract.MaxBatchConcurrency:
		return fail.Usagef("--concurrency is from 1 to %d, not %d", contract.MaxBatchConcurrency, f.concurrency)
	}
	if err := f.Validate(); err != nil {
		return fail.Usage(err)
	}
	return nil
}

// filter returns the filter of the flags that pick runs.
func (f *replayFlags) filter(now time.Time) (service.ReplayFilter, error) {
	out := service.ReplayFilter{
		Failed: f.failed, Digest: f.digest, ErrorKind: pipeline.ErrorKind(f.errorKind), Conversation: f.conversation,
		Effective: f.Apply,
	}
	if f.errorKind != "" && !slices.Contains(pipeline.ErrorKinds, out.ErrorKind) {
		return out, fail.Usagef("--error-kind: there is no kind %q; docs/errors.md lists them", f.errorKind)
	}
	var err error
	if out.Since, err = moment("--since", f.since, now); err != nil {
		return out, err
	}
	out.Until, err = moment("--until", f.until, now)
	return out, err
}
