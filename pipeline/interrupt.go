package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
)

// A stage is interruptible: it takes a context, looks at it again and again while it works, and stops soon after the
// context is done, also in the middle of one large message. Otherwise a cancelled or timed-out activity would keep its
// core busy until the end. All of that is in this file: exported functions call interruptible, and what they call
// spends from the work that they get, by the bytes that it reads.

const (
	// workBytes is how many bytes are read between two looks at the context: a few milliseconds of the slowest search.
	workBytes = 64 << 10
	// workItem is what one message, part, line or match counts beside its bytes.
	workItem = 32
	// pieceBytes is the largest piece of a text that is given to a regular expression, which cannot be interrupted.
	pieceBytes = 32 << 10
)

// work is what a stage does under a context. A nil work is never interrupted.
type work struct {
	ctx  context.Context
	left int // bytes until the next look at ctx
}

// interruption is the value of the panic that ends a stage.
type interruption struct{ err error }

// interruptible calls a stage with its work. If the context is done before the stage is, the stage ends and the error
// wraps that of the context; the result is then the zero value.
func interruptible[T any](ctx context.Context, stage string, do func(*work) T) (result T, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interruption:
			err = fmt.Errorf("%s was interrupted: %w", stage, r.err)
		default:
			panic(r)
		}
	}()
	w := &work{ctx: ctx}
	w.spend(0)
	return do(w), nil
}

// spend counts one item with n bytes as work, and ends the stage if its context is done.
func (w *work) spend(n int) {
	if w == nil {
		return
	}
	if w.left -= n + workItem; w.left > 0 {
		return
	}
	w.left = workBytes
	if err := w.ctx.Err(); err != nil {
		panic(interruption{err})
	}
}

// pieces divides a text into pieces of at most pieceBytes, each with its position, for regular expressions that match
// within a line: behind a line end, in a longer line behind a space, and in a text without either between two chars.
// What is longer than a piece is not found.
func (w *work) pieces(s string) iter.Seq2[int, string] {
	return w.divide(s, func(window string) int {
		if at := strings.LastIndexByte(window, '\n'); at >= 0 {
			return at + 1
		}
		return strings.LastIndexByte(window, ' ') + 1
	})
}

// tagPieces is pieces for regular expressions that match from one "<" to before the next.
func (w *work) tagPieces(s string) iter.Seq2[int, string] {
	return w.divide(s, func(window string) int { return strings.LastIndexByte(window, '<') })
}

// divide divides a text at the positions that cut returns for the next pieceBytes of it; 0 is for none.
func (w *work) divide(s string, cut func(window string) int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(s); {
			size := len(s) - at
			if size > pieceBytes {
				if size = cut(s[at : at+pieceBytes]); size <= 0 {
					size = runeStart(s, at+pieceBytes) - at
				}
			}
			w.spend(size)
			if !yield(at, s[at:at+size]) {
				return
			}
			at += size
		}
	}
}

// find returns the position of the first match in the pieces of a text, nil for none.
func (w *work) find(re *regexp.Regexp, s string) []int {
	for at, piece := range w.pieces(s) {
		if m := re.FindStringIndex(piece); m != nil {
			return []int{at + m[0], at + m[1]}
		}
	}
	return nil
}

// findAll returns the positions of all matches with their groups in the given pieces of a text.
func findAll(re *regexp.Regexp, pieces iter.Seq2[int, string]) [][]int {
	var all [][]int
	for at, piece := range pieces {
		for _, m := range re.FindAllStringSubmatchIndex(piece, -1) {
			for i := range m {
				if m[i] >= 0 {
					m[i] += at
				}
			}
			all = append(all, m)
		}
	}
	return all
}

// replaceAll replaces all matches in the pieces of a text.
func (w *work) replaceAll(re *regexp.Regexp, s, with string) string {
	if len(s) <= pieceBytes {
		w.spend(len(s))
		return re.ReplaceAllString(s, with)
	}
	var out strings.Builder
	for _, piece := range w.pieces(s) {
		out.WriteString(re.ReplaceAllString(piece, with))
	}
	return out.String()
}

// lower returns a text in lower case.
func (w *work) lower(s string) string {
	if len(s) <= workBytes {
		w.spend(len(s))
		return strings.ToLower(s)
	}
	var out strings.Builder
	out.Grow(len(s))
	for len(s) > 0 {
		n := len(s)
		if n > workBytes {
			n = runeStart(s, workBytes)
		}
		w.spend(n)
		out.WriteString(strings.ToLower(s[:n]))
		s = s[n:]
	}
	return out.String()
}

// words writes the words of a text with single spaces between them, and one in front if out is not empty.
func (w *work) words(out *strings.Builder, s string) {
	for word := range strings.FieldsSeq(s) {
		w.spend(len(word))
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(word)
	}
}

// decode decodes a text that is one JSON value.
func (w *work) decode(s []byte, to any) error {
	if len(s) <= workBytes {
		w.spend(len(s))
		return json.Unmarshal(s, to)
	}
	d := json.NewDecoder(&pacedReader{Reader: bytes.NewReader(s), work: w})
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// pacedReader spends what is read from it.
type pacedReader struct {
	io.Reader
	*work
}

func (r *pacedReader) Read(to []byte) (int, error) {
	n, err := r.Reader.Read(to[:min(len(to), workBytes)])
	r.spend(n)
	return n, err
}

// bytesOf returns how many bytes of text a message has, as an amount of work.
func bytesOf(m Message) int {
	n := 0
	for _, p := range m.Parts {
		n += partBytes(p)
	}
	return n
}

func partBytes(p Part) int {
	n := len(p.Text) + len(p.Input) + len(p.Raw)
	for _, c := range p.Content {
		n += len(c.Text) + workItem
	}
	return n
}
