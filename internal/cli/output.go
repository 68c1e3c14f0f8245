package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"precis/internal/cli/fail"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// compactReport is the JSON of `precis compact --json`.
type compactReport struct {
	Format        transcript.Format `json:"format"`
	Out           string            `json:"out,omitempty"`
	Conversations []compacted       `json:"conversations"`
	Notes         []noteReport      `json:"notes"`
	Losses        []lossReport      `json:"losses,omitempty"`
}

// noteReport is one thing that was left out of the file.
type noteReport struct {
	Line   int                 `json:"line"`
	Code   transcript.NoteCode `json:"code"`
	What   string              `json:"what,omitempty"`
	Reason string              `json:"reason"`
	Count  int                 `json:"count"`
}

func notesOf(items []transcript.Item) []noteReport {
	out := []noteReport{}
	for _, it := range items {
		out = append(out, noteReport{it.Line, it.Note.Code, it.Note.What, it.Note.Reason, it.Note.Count})
	}
	return out
}

// lossReport is one thing that the output format cannot represent.
type lossReport struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func lossesOf(losses []convert.Loss) []lossReport {
	var out []lossReport
	for _, l := range losses {
		out = append(out, lossReport{l.What, l.Why})
	}
	return out
}

func (a *app) printLosses(losses []convert.Loss) {
	for _, l := range losses {
		a.say("lost:      %s: %s", l.What, l.Why)
	}
}

// writeContexts writes the contexts of one file to standard output or to --out.
func (c *compaction) writeContexts(to transcript.Format, outputs []transcript.Output) ([]convert.Loss, error) {
	var buffer bytes.Buffer
	losses, err := convert.WriteFile(&buffer, to, outputs...)
	if err != nil {
		return nil, fmt.Errorf("write the context: %w", err)
	}
	if c.flags.out == "" {
		return losses, c.print(buffer.String())
	}
	return losses, replaceFile(c.flags.out, buffer.Bytes())
}

// nativeMessages returns a context as JSON values: messages, or for claude-code the records of its messages.
func nativeMessages(o transcript.Output, to transcript.Format) ([]json.RawMessage, []convert.Loss, error) {
	converted, err := convert.Conversation(o.Meta, o.Items, to)
	if err != nil {
		return nil, nil, err
	}
	list := []json.RawMessage{}
	for _, native := range converted.Messages {
		values := json.NewDecoder(bytes.NewReader(native))
		for {
			var v json.RawMessage
			if err := values.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, nil, fmt.Errorf("a message of the context is not JSON: %w", err)
			}
			list = append(list, v)
		}
	}
	return list, converted.Losses, nil
}

// checkOut returns an error for a file that cannot be written, before the work is done.
func checkOut(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fail.Usagef("--out: %s is a directory: name a file", path)
	} else if err == nil && info.Mode().Perm()&0o222 == 0 { // a rename would replace it
		return fail.Usagef("--out: %s is read-only: name another file, or make it writable", path)
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return fail.Usagef("--out: there is no folder %s", dir)
	}
	if !info.IsDir() {
		return fail.Usagef("--out: %s is not a folder", dir)
	}
	return nil
}

// replaceFile replaces a file atomically: a reader sees the old content or the new.
func replaceFile(path string, content []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	mode := os.FileMode(0o644)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() { // a pipe, /dev/null
			return os.WriteFile(path, content, mode)
		}
		mode = info.Mode().Perm()
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(content)
	err = errors.Join(err, fresh.Chmod(mode), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}
