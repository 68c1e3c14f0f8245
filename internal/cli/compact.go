package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"precis"
	"precis/internal/cli/fail"
	"precis/internal/service"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

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
		Short:   "Compact a transcript and print the compacted context",
		Long: `Reads a transcript (- is standard input), runs the compaction workflow on each conversation in it, and
prints the compacted context in the same format. A report goes to standard error.

It uses the stack that is running, or the configured one. Without either it starts one for the call and stops it
afterwards. Without a usable model it writes a digest, which needs none: set ANTHROPIC_API_KEY or
OPENAI_API_KEY, or configure a vendor, for a summary by a model.`,
		Example: `  precis compact ~/.claude/projects/my-project/SESSION.jsonl --out compacted.jsonl
  precis compact request.json --focus "the failing test" --summary
  cat session.jsonl | precis compact - --to anthropic > request.json`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compact(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.out, "out", "",
		"write the context to `FILE`, completely or not at all, instead of standard output")
	flags.StringVar(&f.to, "to", "", "`format` of the output (default: that of the file)")
	flags.StringVar(&f.focus, "focus", "", "what the summary must keep above all, in your own `words`")
	flags.BoolVar(&f.full, "full", false, "summarize everything, including the last turn")
	flags.StringVar(&f.summarizer, "summarizer", "",
		"who writes the summary: `LIST` of self, VENDOR/MODEL or digest, tried in this order")
	flags.BoolVar(&f.forceExternal, "force-external", false, "do not call the agent's own model on its own prompt")
	flags.BoolVar(&f.summary, "summary", false, "print the summary too, on standard error")
	flags.BoolVar(&f.keep, "keep", false, "keep the conversation for precis context, undo and the texts of show")
	f.add(flags)
	return cmd
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
	found, err := in.scan(&f.inputFlags)
	if err != nil {
		return err
	}
	if err := f.checkTarget(found.format); err != nil {
		return err
	}
	return a.withServed(cmd, f.keep, func(ctx context.Context, s *session) error {
		if err := a.checkSummarizers(s, f.summarizer); err != nil {
			return err
		}
		c := &compaction{app: a, s: s, flags: f, input: in, progress: a.progress()}
		return c.run(ctx, found)
	})
}

// check validates the flags before anything is read.
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

// checkTarget returns an error if the format of the file cannot be converted to the output format.
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

// succeeded reports whether a run left a usable context: a new one, or the old one if there was nothing to do.
func succeeded(o precis.Outcome) bool {
	return o == precis.OutcomeApplied || o == precis.OutcomeSkipped
}

func (f *inputFlags) importRequest() (service.ImportRequest, error) {
	vendor, model, err := f.vendorModel()
	return service.ImportRequest{ID: f.id, Vendor: vendor, Model: model, Window: f.window, Pick: f.pick}, err
}
