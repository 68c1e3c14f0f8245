package term

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Progress shows the progress of a command: on a terminal as one line that is rewritten, elsewhere not at all.
type Progress struct {
	Writer io.Writer
	// Terminal reports whether Writer is a terminal.
	Terminal bool

	mu    sync.Mutex
	shown bool
}

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress { return &Progress{Writer: w, Terminal: isTerminal(w)} }

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width returns the width of the terminal, in columns.
func (p *Progress) width() int {
	if f, ok := p.Writer.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			return w
		}
	}
	return 80
}

// Line rewrites the line; without a terminal it does nothing.
func (p *Progress) Line(format string, args ...any) {
	if !p.Terminal {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// One column less: a full line would move the cursor to the next line.
	_, _ = fmt.Fprintf(p.Writer, "\r\x1b[K%s", Clip(OneLine(fmt.Sprintf(format, args...)), p.width()-1))
	p.shown = true
}

// Clear removes the line.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = fmt.Fprint(p.Writer, "\r\x1b[K")
		p.shown = false
	}
}

// Say writes a line that is not rewritten.
func (p *Progress) Say(format string, args ...any) {
	p.Clear()
	_, _ = fmt.Fprint(p.Writer, Printable(fmt.Sprintf(format, args...))+"\n")
}

// Messages returns a callback that shows the number of messages while a file is read.
func (p *Progress) Messages(name string) func(int) {
	return func(n int) {
		if n%200 == 0 {
			p.Line("reading %s: %s", name, Plural(n, "message"))
		}
	}
}
