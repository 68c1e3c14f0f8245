package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/contract"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/pipeline"
)

func (a *app) showCommand() *cobra.Command {
	var want runreport.Include
	wide := false
	cmd := &cobra.Command{
		Use:     "show RUN",
		GroupID: groupAudit,
		Short:   "Show what a run did, stage by stage",
		Long: `Prints a run: its trigger, its outcome, and its way down the ladder, every attempt at every stage with what it
found and what was done next. The texts come on request; those of a conversation whose content was deleted are gone.
RUN is a run's id, or the end of it that ` + "`precis runs`" + ` prints.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd, func(ctx context.Context,
				s *session,
			) error {
				return a.show(ctx, s, args[0], want, wide)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&want.Prompts, "prompts", false, "print what the models were sent")
	flags.BoolVar(&want.Answers, "answers", false, "print what the models wrote")
	flags.BoolVar(&want.Summary, "summary", false, "print the summary")
	flags.BoolVar(&want.Context, "context", false, "print the new context, one native message a line")
	flags.BoolVar(&want.Omitted, "omitted", false, "list the messages that a summarizer did not see whole")
	flags.BoolVar(&wide, "wide", false, "print a line for each step, with its rung and worker, however wide")
	return cmd
}

func (a *app) show(ctx context.Context, s *session, id string, want runreport.Include, wide bool) error {
	ref, err := a.findRun(ctx, s, id)
	if err != nil {
		return err
	}
	stored, err := s.store.Runs.Get(ctx, ref)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no run %q; `precis runs` lists them", id)
	}
	if err != nil {
		return err
	}
	r := runreport.Priced(runreport.Of(stored), s.config.Prices)
	if want.Any() {
		if r.RunTexts, err = runreport.Load(ctx, s.store, stored, want); err != nil {
			return err
		}
	}
	if r.Comparison, err = runreport.LoadComparison(ctx, s.store, stored); err != nil {
		return err
	}
	r.Comparison = runreport.PricedComparison(r.Comparison, s.config.Prices)
	if a.json {
		return a.printJSON(r)
	}
	if r.ReplayOf != "" {
		if err := a.print(drawReplay(r) + "\n"); err != nil {
			return err
		}
	}
	ladder := drawLadder(r)
	if wide {
		ladder = drawSteps(r)
	}
	return a.print(drawRun(r) + "\n" + ladder + drawTexts(r.RunTexts))
}

// drawRun is a run for a person, but for its steps.
func drawRun(r wire.Run) string {
	var b strings.Builder
	var head term.Facts
	outcome := string(r.Outcome)
	if outcome == "" {
		outcome = unfinished
	}
	if r.ErrorKind != "" && string(r.ErrorKind) != outcome {
		outcome += ", " + string(r.ErrorKind)
	}
	if r.Undone != nil {
		outcome += ", undone " + term.When(*r.Undone) + " UTC"
	}
	if r.Reason != "" {
		outcome += ": " + r.Reason
	}
	head.Add("run", r.ID)
	head.Add("outcome", outcome)
	head.Add("conversation", r.Conversation)
	head.Add("trigger", triggerWords(r))
	head.Add("focus", r.Focus)
	head.Add("replay of", r.ReplayOf)
	if r.Summarizer != "" {
		head.Add("summary by", wroteSummary(r))
	}
	if r.Covers.To > 0 {
		head.Add("covers", fmt.Sprintf("messages %d to %d (%d summarised), sha256 %s", r.Covers.From, r.Covers.To,
			r.Covers.Messages, r.Covers.SHA256))
	}
	if r.TokensBefore > 0 {
		head.Add("tokens", sizeWords(r))
	}
	if u := r.Usage; u.Calls > 0 {
		text := fmt.Sprintf("%s: %s tokens in (%s cached), %s out", term.Plural(u.Calls, "model call"), term.Count(int(u.Input)),
			term.Count(int(u.CachedInput)), term.Count(int(u.Output)))
		if u.Lost > 0 {
			text += fmt.Sprintf("; %d without an answer", u.Lost)
		}
		head.Add("usage", text)
		if len(r.Models) > 1 {
			for _, m := range r.Models {
				head.Add("", fmt.Sprintf("%s: %s, %s in, %s out", m.Model, term.Plural(m.Calls, "call"), term.Count(int(m.Input)),
					term.Count(int(m.Output))))
			}
		}
		head.Add("cost", costWords(r.Cost, r.Models))
	}
	head.Add("checked", verificationWords(r))
	head.Add("asked for", term.When(r.Created)+" UTC")
	head.Add("took", runTook(r))
	head.Add("workflow", r.WorkflowID)
	head.Add("versions", versionWords(r.Versions))
	head.Write(&b, term.LineWidth)
	return b.String()
}

func triggerWords(r wire.Run) string {
	text := string(r.Trigger.Kind)
	if r.Trigger.Reason != "" {
		text += ": " + r.Trigger.Reason
	}
	return text
}

func versionWords(raw json.RawMessage) string {
	var v map[string]string
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, k+" "+v[k])
	}
	return strings.Join(parts, ", ")
}

// noSteps is said of a run that no worker has taken up.
const noSteps = "no step yet: the run waits for a worker\n"

// drawLadder shows the attempts at every stage in the order in which they were made: a line for each, and below it what
// it found, what went wrong and what was done next.
func drawLadder(r wire.Run) string {
	if len(r.Steps) == 0 {
		return noSteps
	}
	var t term.Table
	t.Row("STEP", "STAGE", "SUMMARIZER", "OUTCOME", "TIME", "NEXT")
	for _, s := range r.Steps {
		t.Row(stepName(s), s.Stage, s.Summarizer, stepOutcome(s), term.Took(time.Duration(s.MS)*time.Millisecond),
			nextWords(s))
	}
	t.Fit(2, 5)
	var lines strings.Builder
	_ = t.Write(&lines)
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(lines.String(), "\n"), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if i == 0 {
			continue
		}
		const indent = "      "
		for _, text := range []string{numberWords(r.Steps[i-1], r.Trigger.Estimated), r.Steps[i-1].Message} {
			for _, wrapped := range term.Wrap(term.OneLine(text), term.LineWidth-len(indent)) {
				b.WriteString(indent + wrapped + "\n")
			}
		}
	}
	return b.String()
}

// drawSteps is the ladder with a line for each attempt.
func drawSteps(r wire.Run) string {
	if len(r.Steps) == 0 {
		return noSteps
	}
	var t term.Table
	t.Row("STEP", "STAGE", "RUNG", "SUMMARIZER", "OUTCOME", "STARTED (UTC)", "MS", "NUMBERS", "NEXT", "WORKER",
		"MESSAGE")
	for _, s := range r.Steps {
		t.Row(stepName(s), s.Stage, s.Rung, s.Summarizer, stepOutcome(s), term.When(s.Started), fmt.Sprint(s.MS),
			numberWords(s, r.Trigger.Estimated),
			nextWords(s), s.Worker, s.Message)
	}
	var b strings.Builder
	_ = t.Write(&b)
	return b.String()
}

// stepName numbers a step of the run and, behind the first, the attempt at it.
func stepName(s wire.RunStep) string {
	if s.Attempt > 1 {
		return fmt.Sprintf("%d.%d", s.Call, s.Attempt)
	}
	return fmt.Sprint(s.Call)
}

func stepOutcome(s wire.RunStep) string {
	if s.ErrorKind != "" {
		return string(s.ErrorKind)
	}
	return string(s.Outcome)
}

func nextWords(s wire.RunStep) string {
	if s.Next == "" {
		return ""
	}
	return "→ " + s.Next
}

// numberWords are the key figures of a step. estimated says that the context's size before is an estimate.
func numberWords(s wire.RunStep, estimated bool) string {
	var n struct {
		Skip     string
		Decision *struct {
			Used, Limit, Window int
			Estimated           bool
		}
		Ladder       []pipeline.Summarizer
		Nothing      string
		Summarize    int
		Tail         int
		CoversFrom   int64 `json:"covers_from"`
		CoversTo     int64 `json:"covers_to"`
		Chars        int
		Tokens       int
		Omitted      int
		Cut          int
		DroppedTools int  `json:"dropped_tools"`
		InputTokens  int  `json:"input_tokens"`
		OutputTokens int  `json:"output_tokens"`
		Reused       bool `json:"answer_reused"`
		TokensBefore int  `json:"tokens_before"`
		TokensAfter  int  `json:"tokens_after"`
		Limit        int
		Kind         pipeline.ErrorKind
	}
	if json.Unmarshal(s.Numbers, &n) != nil {
		return ""
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch s.Stage {
	case "trigger":
		if n.Decision != nil {
			add("%s used, limit %s of %s", term.Tokens(n.Decision.Used, n.Decision.Estimated), term.Count(n.Decision.Limit),
				term.Count(n.Decision.Window))
		}
	case "summarizer":
		var names []string
		for _, rung := range n.Ladder {
			names = append(names, rung.String())
		}
		if len(names) > 0 {
			add("%s", strings.Join(names, ", then "))
		}
	case "partition":
		if n.Nothing != "" {
			add("%s", n.Nothing)
		} else if s.Outcome != contract.AttemptFailed {
			add("%d to summarise (%d to %d), %d stay", n.Summarize, n.CoversFrom, n.CoversTo, n.Tail)
		}
	case "slim":
		if n.Chars > 0 {
			add("%s chars, ≈%s tokens", term.Count(n.Chars), term.Count(n.Tokens))
		}
		if left := n.Omitted + n.DroppedTools; left > 0 {
			add("%d left out", left)
		}
		if n.Cut > 0 {
			add("%d cut", n.Cut)
		}
	case "summarise":
		if n.InputTokens > 0 {
			add("%s tokens in, %s out", term.Count(n.InputTokens), term.Count(n.OutputTokens))
		}
		if n.Tokens > 0 {
			add("summary ≈%s tokens", term.Count(n.Tokens))
		}
		if n.Reused {
			add("answer of an earlier attempt")
		}
	case "reassemble":
		if n.TokensAfter > 0 {
			add("%s → ≈%s tokens, limit %s", term.Tokens(n.TokensBefore, estimated), term.Count(n.TokensAfter), term.Count(n.Limit))
		}
		if n.Kind != "" {
			add("%s", n.Kind)
		}
	}
	return strings.Join(parts, "; ")
}

// drawTexts are the texts that were asked for, each under a heading.
func drawTexts(t *wire.RunTexts) string {
	if t == nil {
		return ""
	}
	var b strings.Builder
	section := func(title, text string) {
		b.WriteString("\n── " + title + " " + strings.Repeat("─", max(3, term.LineWidth-4-len([]rune(title)))) + "\n")
		b.WriteString(strings.TrimRight(term.Printable(text), "\n") + "\n")
	}
	for _, p := range t.Prompts {
		title := fmt.Sprintf("prompt of step %d, for %s", p.Call, p.Summarizer)
		if p.Body != "" {
			section(title, p.Body)
			continue
		}
		section(title+": system", p.System)
		section(title+": user", p.User)
	}
	for _, answer := range t.Answers {
		title := fmt.Sprintf("answer to step %d.%d, by %s", answer.Call, answer.Attempt, answer.Summarizer)
		if answer.ErrorKind != "" {
			title += ", " + string(answer.ErrorKind)
		}
		text := answer.Text
		if text == "" {
			text = answer.Raw
		}
		section(title, text)
	}
	for _, o := range t.Omitted {
		var rows term.Table
		rows.Row("MESSAGE", "ROLE", "CHARS", "FATE")
		for _, m := range o.Messages {
			rows.Row(fmt.Sprint(m.Seq), string(m.Role), term.Count(m.Chars), string(m.Fate))
		}
		var list strings.Builder
		_ = rows.Write(&list)
		section(fmt.Sprintf("not whole in the input of step %d, for %s", o.Call, o.Summarizer), list.String())
	}
	if t.Summary != "" {
		section("summary", t.Summary)
	}
	if t.Checked != nil {
		var found strings.Builder
		list := func(title string, items []string) {
			if len(items) > 0 {
				found.WriteString(title + ":\n")
				for _, item := range items {
					found.WriteString("- " + term.OneLine(item) + "\n")
				}
			}
		}
		list("rules of the user's that the model left out", t.Checked.ConstraintsMissing)
		list("added to the summary", t.Checked.Appended)
		list("names and numbers that are not in the source", t.Checked.UnsupportedIdentifiers)
		list("said of the user, who did not say it", t.Checked.Misattributed)
		if found.Len() == 0 {
			found.WriteString("nothing is missing, and nothing is made up\n")
		}
		section("what the check of the summary found", found.String())
	}
	if t.Context != "" {
		section("context", t.Context)
	}
	if t.Deleted > 0 {
		b.WriteString(
			fmt.Sprintf("\n%s deleted with the content of the conversation; `precis compact --keep` keeps them.\n",
				term.PluralWere(t.Deleted, "text")))
	}
	return b.String()
}
