package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// inputFlags are the flags that control how a transcript is read.
type inputFlags struct {
	format  string
	lenient bool
	pick    int
	model   string
	window  int
	id      string
}

func (f *inputFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "format", string(transcript.Auto), "`format` of the file: "+formatNames())
	flags.IntVar(&f.pick, "pick", 0, "take only the `N`-th conversation of the file")
	flags.BoolVar(&f.lenient, "lenient", false, "skip damaged lines and messages instead of refusing the file")
	flags.StringVar(&f.model, "model", "",
		"the agent's model as `VENDOR/NAME`, if the file does not name it or names it wrongly")
	flags.IntVar(&f.window, "window", 0,
		"the model's context window in `tokens` (default: the known window of the model)")
	flags.StringVar(&f.id, "id", "", "`id` for the conversation (default: a new one)")
}

func formatNames() string {
	names := []string{string(transcript.Auto)}
	for _, f := range transcript.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// check validates the flags.
func (f *inputFlags) check() error {
	if transcript.Format(f.format) != transcript.Auto {
		if err := knownFormat("--format", f.format); err != nil {
			return err
		}
	}
	switch {
	case f.pick < 0:
		return fail.Usagef("--pick counts from 1 and cannot be %d", f.pick)
	case f.window < 0:
		return fail.Usagef("--window is a number of tokens and cannot be %d", f.window)
	}
	_, _, err := f.vendorModel()
	return err
}

func knownFormat(flag, name string) error {
	if slices.Contains(transcript.Formats(), transcript.Format(name)) {
		return nil
	}
	return fail.Usagef("%s: unknown format %q; the formats are %s", flag, name, formatNames())
}

// vendorModel splits --model.
func (f *inputFlags) vendorModel() (vendor, model string, err error) {
	if f.model == "" {
		return "", "", nil
	}
	vendor, model, err = pipeline.SummarizerSpec{Model: f.model}.Split()
	if err != nil {
		return "", "", fail.Usagef("--model is VENDOR/NAME, such as anthropic/claude-sonnet-5-5, not %q", f.model)
	}
	return vendor, model, nil
}

// input is a transcript on disk, which can be read more than once.
type input struct {
	name string
	file *os.File
}

func (in *input) Close() error { return in.file.Close() }

// rewind returns a reader from the beginning of the file.
func (in *input) rewind() (io.Reader, error) {
	if _, err := in.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s again: %w", in.name, err)
	}
	return in.file, nil
}

// openInput opens a transcript, - for standard input.
func (a *app) openInput(ctx context.Context, name string) (*input, error) {
	if name == "-" {
		return spool(ctx, "standard input", a.in)
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, fail.Usagef("%s is a directory: name a transcript file in it", name)
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(name)
	}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fail.Usagef("%s cannot be read: %w", name, err)
	}
	if info.Mode().IsRegular() {
		return &input{name: name, file: file}, nil
	}
	defer func() { _ = file.Close() }()
	return spool(ctx, name, file)
}

// spool copies an input that can be read only once to an unnamed temporary file, so that errors in it are found before
// anything is stored or started.
func spool(ctx context.Context, name string, r io.Reader) (*input, error) {
	file, err := os.CreateTemp("", "precis-input-*")
	if err != nil {
		return nil, fmt.Errorf("copy %s to a temporary file: %w", name, err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("copy %s to a temporary file: %w", name, err), file.Close())
	}
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(file, r)
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done(): // the read cannot be interrupted; the program ends
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), file.Close())
	}
	return &input{name: name, file: file}, nil
}

// contents is what scan found in a transcript.
type contents struct {
	format        transcript.Format
	conversations int
	messages      int
	notes         []transcript.Item
}

// scan reads the whole transcript, so that an error in it is reported before anything is stored or started.
func (in *input) scan(f *inputFlags) (contents, error) {
	var c contents
	d, err := in.decoder(f)
	if err != nil {
		return c, err
	}
	c.format = d.Format()
	for {
		it, err := d.Next()
		switch {
		case errors.Is(err, io.EOF):
			return c, c.check(in.name, f.pick)
		case err != nil:
			return c, in.fault(err)
		case it.Start != nil:
			c.conversations++
		case it.Message != nil:
			c.messages++
		case it.Note != nil:
			c.notes = append(c.notes, it)
		}
	}
}

func (c contents) check(name string, pick int) error {
	switch {
	case c.conversations == 0:
		return fail.Usagef("%s contains no conversation", name)
	case pick > c.conversations:
		return fail.Usagef("%s: there is no conversation number %d (--pick); the file holds %s", name, pick,
			term.Plural(c.conversations, "conversation"))
	}
	return nil
}

// decoder returns a decoder at the beginning of the transcript.
func (in *input) decoder(f *inputFlags) (*transcript.Decoder, error) {
	r, err := in.rewind()
	if err != nil {
		return nil, err
	}
	d, err := transcript.NewDecoder(r, transcript.Options{Format: transcript.Format(f.format), Lenient: f.lenient})
	if err != nil {
		return nil, in.fault(err)
	}
	return d, nil
}

// fault adds the name of the file to an error, and makes a malformed transcript an error of usage.
func (in *input) fault(err error) error {
	var e *pipeline.Error
	if errors.As(err, &e) && e.Kind == pipeline.BadRequest {
		return fail.Usagef("%s: %s", in.name, e.Message)
	}
	return fmt.Errorf("read %s: %w", in.name, err)
}

// printNotes lists what was left out of a transcript.
func (a *app) printNotes(notes []transcript.Item) {
	var records []string
	total := 0
	for _, it := range notes {
		n := it.Note
		if n.Code == transcript.NoteRecord && n.What != "" {
			records = append(records, fmt.Sprintf("%s ×%d", n.What, n.Count))
			total += n.Count
			continue
		}
		line := fmt.Sprintf("line %d: %s", it.Line, term.OneLine(n.Reason))
		if n.Count > 1 {
			line += fmt.Sprintf(" (×%d, this is the first)", n.Count)
		}
		a.say("note:      %s", line)
	}
	if total > 0 {
		a.say("note:      %s of the client itself, not messages: %s", term.Plural(total, "record"),
			strings.Join(records, ", "))
	}
}
