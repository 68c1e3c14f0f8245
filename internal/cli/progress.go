package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"precis/internal/devstack"
)

// progress is what is told on standard error while something goes on: on a terminal one line that is rewritten,
// elsewhere nothing but what takes long.
type progress struct {
	w     io.Writer
	tty   bool
	mu    sync.Mutex
	shown bool
}

func (a *app) progress() *progress { return &progress{w: a.err, tty: isTerminal(a.err)} }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is the terminal's, in columns.
func (p *progress) width() int {
	if f, ok := p.w.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			return w
		}
	}
	return 80
}

// line rewrites the line, where there is a terminal.
func (p *progress) line(format string, args ...any) {
	if !p.tty {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// One column less: a full line would move the cursor to the next.
	_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", clip(oneLine(fmt.Sprintf(format, args...)), p.width()-1))
	p.shown = true
}

// clear takes the line away.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// say writes a line that stays.
func (p *progress) say(format string, args ...any) {
	p.clear()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// stack tells how a stack comes up: with all, every step with its time, else only while one goes on.
func (p *progress) stack(all bool) func(devstack.Event) {
	quiet := devstack.Print(p.w, "precis: ")
	return func(e devstack.Event) {
		switch {
		case e.Done && all:
			p.say("  %-58s %8s", clip(e.What, 58), took(e.Elapsed))
		case e.Done && p.tty:
			p.clear()
		case p.tty:
			p.line("%s (%s)", e.What, took(e.Elapsed.Round(time.Second)))
		case all:
			if e.Elapsed > 0 && int(e.Elapsed.Seconds())%10 == 0 {
				p.say("  %s (%s)", e.What, took(e.Elapsed.Round(time.Second)))
			}
		default:
			quiet(e)
		}
	}
}

// messages counts on the line while a file is read.
func (p *progress) messages(name string) func(int) {
	return func(n int) {
		if n%200 == 0 {
			p.line("reading %s: %s", name, plural(n, "message"))
		}
	}
}
