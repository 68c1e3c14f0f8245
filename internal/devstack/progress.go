package devstack

import (
	"fmt"
	"io"
	"time"
)

const (
	// tellEvery is how often a step that goes on is told.
	tellEvery = time.Second
	// printAfter is when a step is slow enough to be printed, and printEvery how often then.
	printAfter = 2 * time.Second
	printEvery = 10 * time.Second
)

// Event is one step of bringing a stack up: told when it begins, every second while it goes on, and when it is
// done. A step that fails is not told as done; its error comes from the call.
type Event struct {
	What    string        `json:"what"`
	Elapsed time.Duration `json:"elapsed"`
	Done    bool          `json:"done"`
}

// Print returns a Progress that writes lines, for a log or a test: only about steps that take longer than two
// seconds, then every ten. Each line begins with prefix.
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

// step does one thing and tells the progress of it. The thing may say more exactly what it is at.
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
	tick := time.NewTicker(tellEvery)
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
