package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
	"precis/pipeline/transcript"
)

// compacted is one conversation of the file with its outcome.
type compacted struct {
	ID     string            `json:"id"`
	Format transcript.Format `json:"format"`
	// Kept reports whether the conversation can still be read by its id.
	Kept           bool `json:"kept"`
	MessagesBefore int  `json:"messages_before"`
	MessagesAfter  int  `json:"messages_after"`
	// Messages is the compacted context in its native format; for claude-code the records of its messages. It is
	// omitted if the context was written to a file.
	Messages []json.RawMessage  `json:"messages,omitempty"`
	Summary  string             `json:"summary,omitempty"`
	Stats    *wire.ContextStats `json:"stats,omitempty"`
	Run      wire.Run           `json:"run"`

	context service.BuiltContext
	output  transcript.Output
}

// compaction is one execution of `precis compact`.
type compaction struct {
	*app
	s        *session
	flags    *compactFlags
	input    *input
	progress *term.Progress
}

// run imports the file, compacts its conversations one after the other and writes the contexts.
func (c *compaction) run(ctx context.Context, found contents) error {
	imported, err := c.storeFile(ctx, c.s, c.input, &c.flags.inputFlags, !c.flags.keep)
	if err != nil {
		return err
	}
	if !c.json {
		c.printNotes(found.notes)
	}
	var all []compacted
	var failed error
	for i, im := range imported {
		one, err := c.one(ctx, im, i, len(imported))
		if err != nil {
			c.forget(ctx, imported[i:]...)
			return err
		}
		c.forget(ctx, im)
		all = append(all, one)
		if !succeeded(one.Run.Outcome) {
			failed = fail.Silent(fail.ExitFailed)
		}
	}
	return errors.Join(c.write(all, found), failed)
}

// forget deletes the content of conversations that are not kept.
func (c *compaction) forget(ctx context.Context, list ...service.Imported) {
	if c.flags.keep {
		return
	}
	for _, im := range list {
		c.app.forget(ctx, c.s, im.Ref)
	}
}

// one compacts one conversation of n and reports its outcome.
func (c *compaction) one(ctx context.Context, im service.Imported, i, n int) (compacted, error) {
	title := "compacting"
	if n > 1 {
		title = fmt.Sprintf("compacting %d of %d", i+1, n)
	}
	summarizer := c.flags.summarizer
	if summarizer == "" { // "" again uses the list of the settings
		summarizer = defaultSummarizers(c.s.Config, c.s.Origins, im.Vendor)
	}
	out, err := c.compactImported(ctx, c.s, c.progress, im, service.CompactRequest{
		Focus: c.flags.focus, Full: c.flags.full, ForceExternal: c.flags.forceExternal, Summarizer: summarizer,
	}, title)
	if err != nil {
		return out, err
	}
	out.Kept = c.flags.keep
	if !c.json {
		c.printOutcome(out, n)
	}
	return out, nil
}

// compactImported compacts a conversation that was imported, and shows the progress of the run after a title. If the
// command is interrupted, it cancels the run.
func (a *app) compactImported(ctx context.Context, s *session, p *term.Progress, im service.Imported,
	req service.CompactRequest, title string,
) (compacted, error) {
	out := compacted{ID: im.Ref.ID, Format: im.Meta.Format}
	got, err := a.service(s).CompactAndWait(ctx, im.Ref, req, a.follower(p, title))
	p.Clear()
	if err != nil {
		return out, a.interrupted(ctx, got.Run, err)
	}
	out.MessagesBefore, out.MessagesAfter = got.MessagesBefore, len(got.Context.Items)
	out.Run, out.Stats, out.Summary, out.context = got.Run, &got.Context.Stats, got.Context.Summary, got.Context
	out.output = transcript.Output{
		Meta: im.Meta, Items: got.Context.Items, Sendable: true, TokensBefore: got.Run.TokensBefore,
	}
	out.output.Meta.Model = got.Context.Meta.Model
	return out, nil
}

// write writes the contexts to standard output or to the file.
func (c *compaction) write(all []compacted, found contents) error {
	to := transcript.Format(c.flags.to)
	var outputs []transcript.Output
	for _, one := range all {
		if succeeded(one.Run.Outcome) {
			outputs = append(outputs, one.output)
		}
	}
	if to == "" {
		to = found.format
	}
	report := compactReport{Format: to, Out: c.flags.out, Conversations: all, Notes: notesOf(found.notes)}
	if len(outputs) > 0 && (!c.json || c.flags.out != "") {
		losses, err := c.writeContexts(to, outputs)
		if err != nil {
			return err
		}
		report.Losses = lossesOf(losses)
		if !c.json {
			c.printLosses(losses)
		}
	}
	if !c.json {
		return nil
	}
	if c.flags.out == "" {
		for i := range all {
			if !succeeded(all[i].Run.Outcome) {
				continue
			}
			messages, losses, err := nativeMessages(all[i].output, to)
			if err != nil {
				return err
			}
			all[i].Messages = messages
			report.Losses = append(report.Losses, lossesOf(losses)...)
		}
	}
	return c.printJSON(report)
}
