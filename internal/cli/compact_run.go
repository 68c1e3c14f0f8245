package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/conversation"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store/runs"
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

	output transcript.Output
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
	for i, im := range imported.Conversations {
		one, err := c.one(ctx, im, i, len(imported.Conversations))
		if err != nil {
			c.forget(ctx, imported.Conversations[i:])
			return err
		}
		all = append(all, one)
		if !succeeded(one.Run.Outcome) {
			failed = fail.Silent(fail.ExitFailed)
		}
	}
	return errors.Join(c.write(all, found), failed)
}

// one compacts one conversation. It works below the service: the output is written from the items of the context, and
// the progress of the run is shown while it waits.
func (c *compaction) one(ctx context.Context, im conversation.Imported, i, n int) (compacted, error) {
	ref := im.Conversation.Ref
	out := compacted{ID: ref.ID, Format: im.Meta.Format, Kept: c.flags.keep}
	before, err := conversation.Load(ctx, c.s.store, ref, conversation.InstallationOf(c.s.config), 0)
	if err != nil {
		return out, err
	}
	out.MessagesBefore = len(before.Context().Items)

	run, _, err := launch.Ask(ctx, c.s.store, c.s.config, ref, runs.Request{
		Focus: c.flags.focus, Full: c.flags.full, ForceExternal: c.flags.forceExternal,
		Summarizer: c.summarizers(before),
	})
	if err != nil {
		return out, err
	}
	title := "compacting"
	if n > 1 {
		title = fmt.Sprintf("compacting %d of %d", i+1, n)
	}
	if run, err = c.wait(ctx, run, title); err != nil {
		return out, err
	}

	view, err := conversation.Load(ctx, c.s.store, ref, conversation.InstallationOf(c.s.config), 0)
	if err != nil {
		return out, err
	}
	current := view.Context()
	stats := view.Stats(current)
	out.Run, out.Stats, out.MessagesAfter = runreport.Of(run), &stats, len(current.Items)
	out.output = transcript.Output{Meta: im.Meta, Items: current.Items, TokensBefore: run.Facts.TokensBefore}
	out.output.Meta.Model = view.Conversation.Model
	if view.Marker != nil {
		out.Summary = string(view.Summary)
	}
	if !c.json {
		c.printOutcome(out, n)
	}
	c.forget(ctx, []conversation.Imported{im})
	return out, nil
}

// summarizers returns the list for the run, "" to use the one of the settings.
func (c *compaction) summarizers(v conversation.View) string {
	if c.flags.summarizer != "" {
		return c.flags.summarizer
	}
	return defaultSummarizers(c.s.config, c.s.origins, v.Conversation.Vendor)
}

// wait waits until a run has ended and shows its progress. If the command is interrupted, it cancels the run.
func (c *compaction) wait(ctx context.Context, run runs.Run, title string) (runs.Run, error) {
	return waitFor(ctx, c.app, c.s, c.progress, run, title)
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
