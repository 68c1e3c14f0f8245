package cli

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/service"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// demoSession is the transcript that the demo compacts.
//
//go:embed demo/session.jsonl
var demoSession []byte

// demoWindow is the context window of the demo, in tokens. It is small, so that the session exceeds it.
const demoWindow = 24_000

func (a *app) demoCommand() *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupMain,
		Short:   "Compact a sample session on a local stack, and show the result",
		Long: `Starts the local stack in the background, as ` + "`precis up --detach`" + ` does, compacts a sample
session of a coding agent that exceeds its window, and shows the compacted context and every stage of the run.
If ANTHROPIC_API_KEY or OPENAI_API_KEY is set, a model of that vendor writes the summary; otherwise it is a
digest, which needs no model.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd, model) },
	}
	cmd.Flags().StringVar(&model, "model", "", "the model that writes the summary, as `VENDOR/NAME`")
	return cmd
}

// demoReport is the JSON of `precis demo`.
type demoReport struct {
	running
	Conversation   string            `json:"conversation"`
	MessagesBefore int               `json:"messages_before"`
	MessagesAfter  int               `json:"messages_after"`
	Summary        string            `json:"summary"`
	Stats          wire.ContextStats `json:"stats"`
	Run            wire.Run          `json:"run"`
	WorkflowURL    string            `json:"workflow_url,omitempty"`
}

func (a *app) demo(cmd *cobra.Command, model string) (err error) {
	ctx := cmd.Context()
	cfg, origins, err := a.config(cmd)
	if err != nil {
		return err
	}
	summarizer, err := demoSummarizer(cfg, origins, model)
	if err != nil {
		return err
	}
	p := a.progress()
	defer p.Clear()
	p.Say("The local stack:")
	up, s, err := a.bringUp(cmd, p, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	if err := s.OpenTemporal(ctx, a.quietLog(s.Config, s.Origins)); err != nil {
		return err
	}
	p.Say("The sample session:")
	report, built, err := a.runDemo(ctx, s, p, summarizer)
	if err != nil {
		return err
	}
	report.running = up
	if up.UIURL != "" {
		report.WorkflowURL = workflowURL(up.Stack, report.Run)
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = a.print(drawDemo(report, built))
	}
	if err == nil && report.Run.Outcome != precis.OutcomeApplied {
		err = fail.Silent(fail.ExitFailed)
	}
	return err
}

// demoSummarizer returns the summarizer of the demo: the one of --model, or the model of a vendor that has a key. It
// returns "" if the settings name the summarizers, or if no vendor has a key, so that the run falls back to the digest.
func demoSummarizer(cfg config.Config, origins config.Origins, model string) (string, error) {
	if model == "" {
		if origins.Of("settings.summarizers").Source != config.SourceDefault {
			return "", nil
		}
		return defaultModel(cfg), nil
	}
	vendor, _, err := pipeline.SummarizerSpec{Model: model}.Split()
	if err != nil {
		return "", fail.Usagef("--model is VENDOR/NAME, such as anthropic/claude-sonnet-5-5, not %q", model)
	}
	if _, ok := cfg.Vendors[vendor]; !ok {
		return "", fail.Usagef("--model: no vendor %q is configured; there are %s", vendor, vendorNames(cfg))
	}
	return model, nil
}

// runDemo imports the sample session and compacts it, as `precis compact` does.
func (a *app) runDemo(ctx context.Context, s *session, p *term.Progress,
	summarizer string,
) (report demoReport, built service.BuiltContext, err error) {
	began := time.Now()
	d, err := transcript.NewDecoder(bytes.NewReader(demoSession), transcript.Options{Format: transcript.ClaudeCode})
	if err != nil {
		return report, built, err
	}
	imported, err := a.importTranscript(ctx, s, d, service.ImportRequest{Window: demoWindow})
	if err != nil {
		return report, built, err
	}
	p.Say("  %-58s %8s", fmt.Sprintf("importing it, %s", term.Plural(imported[0].Messages, "message")),
		term.Took(time.Since(began)))

	began = time.Now()
	done, err := a.compactImported(ctx, s, p, imported[0], service.CompactRequest{Summarizer: summarizer},
		"compacting it")
	if err != nil {
		return report, built, err
	}
	p.Say("  %-58s %8s", fmt.Sprintf("compacting it: %s", done.Run.Outcome), term.Took(time.Since(began)))
	return demoReport{
		Conversation: done.ID, MessagesBefore: done.MessagesBefore, MessagesAfter: done.MessagesAfter,
		Summary: done.Summary, Stats: *done.Stats, Run: done.Run,
	}, done.context, nil
}

// workflowURL returns the URL at which the Temporal UI shows the run.
func workflowURL(stack *devstack.Stack, r wire.Run) string {
	if r.TemporalRunID == "" {
		return stack.UIURL
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history", stack.UIURL, url.PathEscape(stack.Namespace),
		url.PathEscape(r.WorkflowID), r.TemporalRunID)
}

// drawDemo returns the whole result as text.
func drawDemo(d demoReport, built service.BuiltContext) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	r := d.Run
	b.WriteString(heading("The context that the model sees now"))
	b.WriteString(draw.Context(built.Readable()))
	b.WriteString(heading("What was done, stage by stage"))
	b.WriteString(draw.Ladder(r))
	line("")
	if r.Outcome != precis.OutcomeApplied {
		line("The run ended %s: %s", r.Outcome, draw.Failed(r))
		if hint := draw.Hint(r.ErrorKind); hint != "" {
			line("  %s", hint)
		}
	} else {
		line("%s, %s tokens  →  %s, ≈%s tokens (window %s, limit %s)", term.Plural(d.MessagesBefore, "message"),
			term.Tokens(r.TokensBefore, r.Trigger.Estimated), term.Plural(d.MessagesAfter, "message"),
			term.Count(r.TokensAfter),
			term.Count(r.Trigger.Window), term.Count(r.Trigger.Limit))
		line("summary by %s", draw.WrittenBy(r))
		for _, why := range draw.WhyDigest(r, "") {
			line("  %s", why)
		}
		if found := draw.Verification(r); found != "" {
			line("checked against its source: %s", found)
		}
	}

	b.WriteString(heading("Where to look"))
	var t term.Table
	t.Row("run", r.ID)
	if d.WorkflowURL != "" {
		t.Row("its workflow", d.WorkflowURL)
	}
	t.Rows = append(t.Rows, addressRows(d.running).Rows...)
	_ = t.Write(&b)

	b.WriteString(heading("What to try next"))
	self := programName()
	var next term.Table
	next.Row(self+" show "+r.ID+" --summary", "the run again, with any of its texts")
	next.Row(self+" context "+d.Conversation, "the context as it is sent, in the session's own format")
	next.Row(self+" undo "+d.Conversation, "take the compaction back")
	next.Row(self+" compact FILE", "a transcript of your own: Claude Code, Anthropic, OpenAI")
	next.Row(self+" down", "stop the local stack; its data are kept")
	_ = next.Write(&b)
	return b.String()
}

func heading(title string) string {
	return "\n══ " + title + " " + strings.Repeat("═", max(3, 96-len([]rune(title)))) + "\n\n"
}

// programName returns the name under which this program was called, for use in suggested commands.
func programName() string {
	if strings.Contains(os.Args[0], "/") {
		return os.Args[0]
	}
	return "precis"
}
