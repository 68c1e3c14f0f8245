package devstack

import (
	"fmt"
	"io"
	"time"
)

const (
	// eventEvery is how often a running step is reported.
	eventEvery = time.Second
	// printAfter is when a step is slow enough to be printed, and printEvery how often then.
	printAfter = 2 * time.Second
	printEvery = 10 * time.Second
)

// Event reports a step: when it begins, every second while it runs, and when it is done. A step that fails has no event
// with Done; the call returns its error.
type Event struct {
	What    string        `json:"what"`
	Elapsed time.Duration `json:"elapsed"`
	Done    bool          `json:"done"`
}

// Print returns a Progress that writes lines for a log or a test: only about steps of more than two seconds, then every
// ten seconds. Each line begins with prefix.
func Print(w io.Writer, prefix string) func(Event) {
	var next time.Duration
	return func(e Event) {
		switch {
		case e.Elapsed == 0:
			next = printAfter
		case e.Done && next > printAfter:
			_, _ = fmt.Fprintf(w, "%s%s: done in %s\n", prefix, e.What, e.Elapsed.Round(time.Second))
		case !e.Done && e.Elapsed >= next:
			_, _ = fmt.Fprintf(w, "%s%s (%s)\n", prefix, e.What, e.Elapsed.Round(time.Second))
			next = e.Elapsed + printEvery
		}
	}
}

// step calls do and reports its progress. do may add details of what it is doing.
func (o Options) step(what string, do func(at func(detail string)) error) error {
	if o.Progress == nil {
		return do(func(string) {})
	}
	begun := time.Now()
	details := make(chan string)
	finished := make(chan error)
	o.Progress(Event{What: what})
	go func() {
		finished <- do(func(detail string) { details <- detail })
	}()
	tick := time.NewTicker(eventEvery)
	defer tick.Stop()
	now := what
	for {
		select {
		case detail := <-details:
			now = what + ": " + detail
		case <-tick.C:
			o.Progress(Event{What: now, Elapsed: time.Since(begun)})
		case err := <-finished:
			if err == nil {
				o.Progress(Event{What: what, Elapsed: time.Since(begun), Done: true})
			}
			return err
		}
	}
}
