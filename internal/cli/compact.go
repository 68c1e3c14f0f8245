package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/launch"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// lookEvery is how often the progress line looks at a run's steps.
const lookEvery = 250 * time.Millisecond

type compactFlags struct {
	inputFlags
	focus, summarizer   string
	full, forceExternal bool
	out, to             string
	summary, keep       bool
}

func (a *app) compactCommand() *cobra.Command {
	f := &compactFlags{}
	cmd := &cobra.Command{
		Use:     "compact FILE",
		GroupID: groupMain,
		Short:   "Compact a transcript and print the context that comes of it",
		Long: `Reads a transcript (- is standard input), runs the compaction workflow on each conversation in it, and prints
the compacted context in the same format. What became of it goes to standard error.

It uses the stack that is running, or the configured one. Without either it brings one up for the call and takes
it down again. Without a model to ask it writes a digest, which needs none: set ANTHROPIC_API_KEY or
OPENAI_API_KEY, or configure a vendor, for a model's summary.`,
		Example: `  precis compact ~/.claude/projects/my-project/SESSION.jsonl --out compacted.jsonl
  precis compact request.json --focus "the failing test" --summary
  cat session.jsonl | precis compact - --to anthropic > request.json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compact(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.out, "out", "", "write the context to `FILE`, whole or not at all, instead of standard output")
	flags.StringVar(&f.to, "to", "", "`format` of the output (default: that of the file)")
	flags.StringVar(&f.focus, "focus", "", "what the summary is to keep first, in your own `words`")
	flags.BoolVar(&f.full, "full", false, "summarise everything, the last turn too")
	flags.StringVar(&f.summarizer, "summarizer", "",
		"who writes the summary: `LIST` of self, VENDOR/MODEL or digest, tried in this order")
	flags.BoolVar(&f.forceExternal, "force-external", false, "do not ask the agent's own model on its own prompt")
	flags.BoolVar(&f.summary, "summary", false, "print the summary too, on standard error")
	flags.BoolVar(&f.keep, "keep", false, "keep the conversation: for precis context, undo, and the texts in show")
	f.add(flags)
	return cmd
}

// compacted is one conversation of the file and what became of it.
type compacted struct {
	ID     string            `json:"id"`
	Format transcript.Format `json:"format"`
	// Kept says that the conversation can still be read by its id.
	Kept           bool `json:"kept"`
	MessagesBefore int  `json:"messages_before"`
	MessagesAfter  int  `json:"messages_after"`
	// Messages is the compacted context, native; for claude-code the records of its messages. Left out when it
	// went to a file.
	Messages []json.RawMessage  `json:"messages,omitempty"`
	Summary  string             `json:"summary,omitempty"`
	Stats    *wire.ContextStats `json:"stats,omitempty"`
	Run      wire.Run           `json:"run"`

	output transcript.Output
}

// compaction is one call of the command under way.
type compaction struct {
	*app
	s        *session
	flags    *compactFlags
	input    *input
	progress *term.Progress
}

func (a *app) compact(cmd *cobra.Command, path string, f *compactFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	in, err := a.openInput(cmd.Context(), path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	found, err := in.look(&f.inputFlags)
	if err != nil {
		return err
	}
	if err := f.checkTarget(found.format); err != nil {
		return err
	}
	return a.withServed(cmd, f.keep, func(ctx context.Context, s *session) error {
		if err := f.checkSummarizers(s); err != nil {
			return err
		}
		c := &compaction{app: a, s: s, flags: f, input: in, progress: a.progress()}
		return c.run(ctx, found)
	})
}

// check refuses wrong flags before anything is read.
func (f *compactFlags) check() error {
	if err := f.inputFlags.check(); err != nil {
		return err
	}
	if f.to != "" {
		if err := knownFormat("--to", f.to); err != nil {
			return err
		}
	}
	if f.id != "" && !f.keep {
		return fail.Usagef("--id names a conversation that is kept: it needs --keep")
	}
	if f.out != "" {
		return checkOut(f.out)
	}
	return nil
}

// checkTarget refuses an output format that the file's cannot be brought into.
func (f *compactFlags) checkTarget(from transcript.Format) error {
	if f.to == "" || transcript.Format(f.to) == from {
		return nil
	}
	if _, err := convert.WriteFile(io.Discard, transcript.Format(f.to),
		transcript.Output{Meta: transcript.Meta{Format: from}}); err != nil {
		var e *pipeline.Error
		if errors.As(err, &e) {
			return fail.Usagef("--to: %s", e.Message)
		}
		return err
	}
	return nil
}

// checkSummarizers refuses a list that names what is not there.
func (f *compactFlags) checkSummarizers(s *session) error {
	if f.summarizer == "" {
		return nil
	}
	for _, name := range strings.Split(f.summarizer, ",") {
		name = strings.TrimSpace(name)
		if name == "self" || name == string(pipeline.SummarizerDigest) {
			continue
		}
		vendor, _, err := pipeline.SummarizerSpec{Model: name}.Split()
		if err != nil {
			return fail.Usagef("--summarizer: %q is neither self, digest nor VENDOR/MODEL", name)
		}
		if _, ok := s.config.Vendors[vendor]; !ok {
			return fail.Usagef("--summarizer: no vendor %q is configured; there are %s", vendor, vendorNames(s.config))
		}
	}
	return nil
}

// run imports the file, compacts its conversations one after the other and writes what came of it.
func (c *compaction) run(ctx context.Context, found contents) error {
	imported, err := c.storeFile(ctx, c.s, c.input, &c.flags.inputFlags, !c.flags.keep)
	if err != nil {
		return err
	}
	if !c.json {
		c.tellNotes(found.notes)
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

// succeeded says whether a run left a context to be used: a new one, or the old where there was nothing to do.
func succeeded(o precis.Outcome) bool {
	return o == precis.OutcomeApplied || o == precis.OutcomeSkipped
}

func (f *inputFlags) importOptions(tenant string) (conversation.ImportOptions, error) {
	vendor, model, err := f.vendorModel()
	return conversation.ImportOptions{
		Tenant: tenant, ID: f.id, Vendor: vendor, Model: model, Window: f.window, TrustCompactions: true, Pick: f.pick,
	}, err
}

// importError says what to do about a transcript that cannot be stored.
func (a *app) importError(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fail.Usagef("there is no tenant %q", a.tenant)
	case errors.Is(err, store.ErrInvalid):
		return fail.Usage(err)
	}
	return err
}

// one compacts one conversation.
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
		c.tell(out, n)
	}
	c.forget(ctx, []conversation.Imported{im})
	return out, nil
}

// summarizers is the list for the run, "" where the settings have it.
func (c *compaction) summarizers(v conversation.View) string {
	if c.flags.summarizer != "" {
		return c.flags.summarizer
	}
	return defaultSummarizers(c.s.config, c.s.origins, v.Conversation.Vendor)
}

// wait waits for a run's end and shows how far it is. When the command is interrupted the run is cancelled.
func (c *compaction) wait(ctx context.Context, run runs.Run, title string) (runs.Run, error) {
	return waitFor(ctx, c.app, c.s, c.progress, run, title)
}

func waitFor(ctx context.Context, a *app, s *session, p *term.Progress, run runs.Run, title string) (runs.Run, error) {
	began := time.Now()
	type end struct {
		run runs.Run
		err error
	}
	ended := make(chan end, 1)
	go func() {
		got, err := s.launcher().Wait(ctx, run)
		ended <- end{got, err}
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	defer p.Clear()
	for {
		select {
		case e := <-ended:
			if ctx.Err() == nil || e.err == nil {
				return e.run, e.err
			}
			p.Clear()
			a.say("precis: interrupted; cancelling run %s (once more to leave at once)", run.Ref.ID)
			got, err := s.launcher().Cancel(context.WithoutCancel(ctx), run)
			if err != nil {
				return got, err
			}
			a.say("precis: run %s ended %s", got.Ref.ID, got.Outcome)
			return got, fail.Silent(fail.ExitFailed)
		case <-tick.C:
			if !p.Terminal {
				continue
			}
			if now, err := s.store.Runs.Get(ctx, run.Ref); err == nil {
				p.Line("%s: %s · %s", title, doing(now), term.Took(time.Since(began)))
			}
		}
	}
}

// doing says in a few words what a run is at.
func doing(r runs.Run) string {
	if len(r.Attempts) == 0 {
		return "waiting for a worker"
	}
	s := r.Attempts[len(r.Attempts)-1]
	text := string(s.Stage)
	if s.Summarizer != "" {
		text += " by " + s.Summarizer
	}
	if s.Rung != "" && s.Rung != contract.RungFirst {
		text += " (" + string(s.Rung) + ")"
	}
	if s.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	if s.Outcome == contract.AttemptFailed && s.ErrorKind != "" {
		text += ": " + string(s.ErrorKind)
	}
	return text
}

// forget removes what was said in conversations that are not to be kept. Their runs stay on record.
func (c *compaction) forget(ctx context.Context, list []conversation.Imported) {
	if !c.flags.keep {
		c.app.forget(ctx, c.s, list)
	}
}

func (a *app) forget(ctx context.Context, s *session, list []conversation.Imported) {
	if s.ephemeral {
		return // it goes as a whole
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	for _, im := range list {
		if err := s.store.Retention.DeleteContent(ctx, im.Conversation.Ref); err != nil {
			a.say("precis: the content of conversation %s was not deleted: %s", im.Conversation.Ref.ID, fail.Explain(err))
		}
	}
}

// write puts the contexts out.
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
			c.tellLosses(losses)
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
