package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/eval"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

type evalFlags struct {
	eval.Options
	format, model string
	svg, out      string
	lenient       bool
	maxBytes      int64
}

func (a *app) evalCommand() *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:     "eval FILES…",
		GroupID: groupAudit,
		Short:   "Measure how much of recorded sessions survives compactions",
		Long: `Grows each conversation in the files (for a folder: all files in it) message by message, compacts it
whenever it reaches its window, and checks after each compaction what is left of what was said before: limits
that the user set, other words of the user, open tasks, paths, identifiers, numbers. No model and no stack are
needed: it compares the digest, and a program in place of a model, each with our way of trimming the input and
with two others. docs/fidelity.md has the method and the results. With --model the same is done on a stack, with
that model's summaries.`,
		Example: `  precis eval sessions/ --svg fidelity.svg
  precis eval session.jsonl --generations 3 --window 64000 --json
  precis eval session.jsonl --model openai/gpt-4.1-mini`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return err
			}
			files, err := filesIn(args)
			if err != nil {
				return err
			}
			if f.model != "" {
				return a.evalModel(cmd, files, f)
			}
			return a.evalFiles(cmd.Context(), files, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.Generations, "generations", eval.DefaultGenerations, "follow what was said through `N` compactions")
	flags.IntVar(&f.Window, "window", eval.DefaultWindow, "context window in `TOKENS`")
	flags.IntVar(&f.SummaryTokens, "summary-tokens", eval.DefaultSummaryTokens, "largest summary in `TOKENS`")
	flags.StringVar(&f.model, "model", "",
		"let `VENDOR/NAME` write the summaries, on the running stack or one started for the call")
	flags.StringVar(&f.svg, "svg", "", "draw the report into `FILE`")
	flags.StringVar(&f.out, "out", "",
		"write the report into the folder `DIR`: fidelity.txt, fidelity.json and fidelity.svg")
	flags.StringVar(&f.format, "format", string(transcript.Auto), "`FORMAT` of the files: "+formatNames())
	flags.BoolVar(&f.lenient, "lenient", false, "skip damaged lines and messages instead of leaving out the file")
	flags.Int64Var(&f.maxBytes, "max-bytes", 256<<20,
		"leave out files larger than `BYTES`; one file is in memory at a time")
	return cmd
}

func (f *evalFlags) check(args []string) error {
	switch {
	case len(args) == 0:
		return fail.Usagef("`precis eval` needs FILES…; `precis eval --help` shows the usage")
	case f.Generations < 1 || f.Generations > 100:
		return fail.Usagef("--generations is 1 to 100, not %d", f.Generations)
	case f.Window < 1000:
		return fail.Usagef("--window is at least 1000 tokens, not %d", f.Window)
	case f.SummaryTokens < 100 || f.SummaryTokens > f.Window/2:
		return fail.Usagef("--summary-tokens is 100 to half of the window (%d), not %d", f.Window/2, f.SummaryTokens)
	}
	if transcript.Format(f.format) != transcript.Auto {
		if err := knownFormat("--format", f.format); err != nil {
			return err
		}
	}
	if f.model != "" {
		if _, _, err := (pipeline.SummarizerSpec{Model: f.model}).Split(); err != nil {
			return fail.Usagef("--model is VENDOR/NAME, such as anthropic/claude-sonnet-5-5, not %q", f.model)
		}
	}
	if f.svg != "" {
		return checkOut(f.svg)
	}
	return nil
}

// filesIn lists the files, and all files in the folders, each once and in order.
func filesIn(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		err := filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, fail.Usagef("%s cannot be read: %w", arg, err)
		}
	}
	return slices.Compact(files), nil
}

// evalReport is the JSON of `precis eval`.
type evalReport struct {
	*eval.Report
	// Skipped lists the files that could not be read, with their reasons.
	Skipped []skippedFile `json:"skipped"`
}

type skippedFile struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// eachConversation reads the files one after the other, calls do for each of their conversations, and shows progress.
func (a *app) eachConversation(ctx context.Context, files []string, f *evalFlags,
	do func(transcript.Conversation) error,
) ([]skippedFile, error) {
	skipped := []skippedFile{}
	progress := a.progress()
	defer progress.Clear()
	began := time.Now()
	for i, path := range files {
		if err := ctx.Err(); err != nil {
			return skipped, err
		}
		progress.Line("%d of %d: %s · %s", i+1, len(files), filepath.Base(path), term.Took(time.Since(began)))
		file, err := readTranscript(path, f)
		if err != nil {
			progress.Clear()
			a.say("left out:  %s: %s", path, fail.Explain(err))
			skipped = append(skipped, skippedFile{path, term.OneLine(fail.Explain(err))})
			continue
		}
		for _, c := range file.Conversations {
			if err := ctx.Err(); err != nil {
				return skipped, err
			}
			for j := range c.Messages {
				c.Messages[j].Tokens = pipeline.EstimateMessage(c.Messages[j])
			}
			if err := do(c); err != nil {
				return skipped, err
			}
		}
	}
	return skipped, nil
}

func readTranscript(path string, f *evalFlags) (transcript.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return transcript.File{}, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return transcript.File{}, err
	}
	if info.Size() > f.maxBytes {
		return transcript.File{}, fmt.Errorf("the file has %s bytes, more than --max-bytes",
			term.Count(int(info.Size())))
	}
	read, err := transcript.Read(file, transcript.Options{Format: transcript.Format(f.format), Lenient: f.lenient})
	var e *pipeline.Error
	if errors.As(err, &e) {
		return read, errors.New(e.Message)
	}
	return read, err
}

// evalFiles measures the methods that need no model.
func (a *app) evalFiles(ctx context.Context, files []string, f *evalFlags) error {
	report := eval.NewReport(f.Options, eval.Methods)
	skipped, err := a.eachConversation(ctx, files, f, func(c transcript.Conversation) error {
		var outcomes []eval.Outcome
		for _, m := range eval.Methods {
			out, err := eval.Survive(ctx, c.Messages, m, f.Options)
			if err != nil {
				return err
			}
			outcomes = append(outcomes, out)
		}
		report.Add(outcomes)
		return nil
	})
	if err != nil {
		return err
	}
	return a.writeEval(evalReport{report, skipped}, f)
}

// writeEval writes the report. If files were left out, the command fails at the end.
func (a *app) writeEval(r evalReport, f *evalFlags) error {
	if err := f.files(r); err != nil {
		return err
	}
	var err error
	if a.json {
		err = a.printJSON(r)
	} else {
		err = a.print(r.Text())
	}
	if err == nil && r.Compacted == 0 && r.Conversations > 0 {
		a.say("precis: no conversation reached the window of %s tokens: --window N makes it smaller",
			term.Count(f.Window))
	}
	if err == nil && len(r.Skipped) > 0 {
		a.say("precis: %s left out", term.PluralWere(len(r.Skipped), "file"))
		return fail.Silent(fail.ExitFailed)
	}
	return err
}

// files writes the report into the files that the flags name.
func (f *evalFlags) files(r evalReport) error {
	if f.svg == "" && f.out == "" {
		return nil
	}
	svg, err := r.SVG()
	if err != nil {
		return err
	}
	write := func(path string, fill func(io.Writer) error) error {
		file, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return errors.Join(fill(file), file.Close())
	}
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}
	}
	if f.svg != "" {
		if err := write(f.svg, text(string(svg))); err != nil {
			return err
		}
	}
	if f.out == "" {
		return nil
	}
	if err := os.MkdirAll(f.out, 0o777); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return errors.Join(
		write(filepath.Join(f.out, "fidelity.svg"), text(string(svg))),
		write(filepath.Join(f.out, "fidelity.txt"), text(r.Text())),
		write(filepath.Join(f.out, "fidelity.json"), func(w io.Writer) error { return (&app{out: w}).printJSON(r) }),
	)
}
