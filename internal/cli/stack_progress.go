package cli

import (
	"time"

	"precis/internal/cli/term"
	"precis/internal/devstack"
)

// stackProgress shows the start of a local stack: with all every step with its time, otherwise each step only while it
// lasts.
func stackProgress(p *term.Progress, all bool) func(devstack.Event) {
	quiet := devstack.Print(p.Writer, "precis: ")
	return func(e devstack.Event) {
		switch {
		case e.Done && all:
			p.Say("  %-58s %8s", term.Clip(e.What, 58), term.Took(e.Elapsed))
		case e.Done && p.Terminal:
			p.Clear()
		case p.Terminal:
			p.Line("%s (%s)", e.What, term.Took(e.Elapsed.Round(time.Second)))
		case all:
			if e.Elapsed > 0 && int(e.Elapsed.Seconds())%10 == 0 {
				p.Say("  %s (%s)", e.What, term.Took(e.Elapsed.Round(time.Second)))
			}
		default:
			quiet(e)
		}
	}
}
