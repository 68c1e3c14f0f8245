package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/draw"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/eval"
	"precis/internal/runreport"
	"precis/internal/service"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// evalTimeout limits one compaction; it is longer than the time budget of a run.
const evalTimeout = 15 * time.Minute

// evalModel measures the summaries of a model, which are made as usual: each conversation grows in the store, and the
// compaction workflow compacts it.
func (a *app) evalModel(cmd *cobra.Command, files []string, f *evalFlags) error {
	return a.withServed(cmd, false, func(ctx context.Context, s *session) error {
		vendor, name, err := pipeline.SummarizerSpec{Model: f.model}.Split()
		if err != nil {
			return fail.Usage(err)
		}
		if _, ok := s.Config.Vendors[vendor]; !ok {
			return fail.Usagef("--model: no vendor %q is configured; there are %s", vendor, vendorNames(s.Config))
		}
		m := &modelEval{
			flags: f, vendor: vendor, name: name, session: s,
			service: s.Service(slog.New(slog.DiscardHandler), nil),
		}
		report := eval.NewReport(f.Options, []eval.Method{{Policy: eval.Ours}})
		report.Rows[0].Model = f.model
		report.Rows[0].Summarizer = "model"
		skipped, err := a.eachConversation(ctx, files, f, func(c transcript.Conversation) error {
			out, err := m.survive(ctx, a, c)
			if err == nil {
				report.Add([]eval.Outcome{out})
			}
			return err
		})
		if err != nil {
			return err
		}
		a.say("model:     %s: %s, %s tokens in, %s out; %s; %s wrote a digest instead", f.model,
			term.Plural(m.used.Calls, "call"),
			term.Count(int(m.used.Input)), term.Count(int(m.used.Output)), m.costWords(), term.Plural(m.digests, "run"))
		return a.writeEval(evalReport{report, skipped}, f)
	})
}

// modelEval grows conversations in the store.
type modelEval struct {
	flags        *evalFlags
	vendor, name string
	session      *session
	service      *service.Service
	used         wire.RunUsage
	models       []wire.RunModelUsage
	digests      int
}

func (m *modelEval) costWords() string {
	if m.used.Calls == 0 {
		return "no cost"
	}
	return draw.Cost(runreport.CostOf(m.models, m.session.Config.Prices), m.models)
}

// survive grows one conversation and compacts it whenever it reaches the limit.
func (m *modelEval) survive(ctx context.Context, a *app, c transcript.Conversation) (eval.Outcome, error) {
	t := eval.NewTracker(m.flags.Generations)
	limit, rests := m.flags.Limit(), eval.Rests(c.Messages)
	size := 0
	for _, msg := range c.Messages {
		size += msg.Tokens
	}
	if size < limit {
		return t.Outcome(), nil // the conversation never reaches the limit
	}
	settings, err := json.Marshal(map[string]any{
		"trigger": map[string]any{"auto": false}, "summary_max_tokens": m.flags.SummaryTokens, "digest": "always",
		"summarizers": []string{m.flags.model}, "force_external": true,
	})
	if err != nil {
		return t.Outcome(), fmt.Errorf("encode the settings: %w", err)
	}
	made, _, err := m.service.CreateConversation(ctx, a.tenant, service.NewConversation{
		Format: string(c.Format), Model: wire.Model{Vendor: m.vendor, Name: m.name, ContextWindow: m.flags.Window},
		Settings: settings,
	})
	if err != nil {
		return t.Outcome(), err
	}
	ref := service.ConversationRef{Tenant: a.tenant, ID: made.ID}
	defer a.forget(ctx, m.session, ref)
	tokens := 0
	for i, msg := range c.Messages {
		if _, err := m.service.Append(ctx, ref,
			service.AppendRequest{Messages: []json.RawMessage{msg.Native}}); err != nil {
			return t.Outcome(), fmt.Errorf("append message %d: %w", i+1, err)
		}
		t.Add(msg)
		if tokens += msg.Tokens; tokens < limit || !rests[i] {
			continue
		}
		before := tokens
		run, ended, err := m.service.Compact(ctx, ref,
			service.CompactRequest{Summarizer: m.flags.model, Wait: evalTimeout})
		switch {
		case err != nil:
			return t.Outcome(), err
		case !ended:
			return t.Outcome(), fmt.Errorf("run %s has not ended within %s", run.ID, evalTimeout)
		}
		m.used.Calls += run.Usage.Calls
		m.used.Input += run.Usage.Input
		m.used.Output += run.Usage.Output
		m.models = append(m.models, run.Models...)
		if run.Digest {
			m.digests++
		}
		if run.Outcome != precis.OutcomeApplied {
			continue
		}
		built, err := m.service.BuildContext(ctx, ref)
		if err != nil {
			return t.Outcome(), err
		}
		tokens = built.Tokens
		if err := t.Compacted(ctx, run.Covers.To, contextText(built), before, tokens); err != nil {
			return t.Outcome(), err
		}
	}
	return t.Outcome(), nil
}

// contextText returns all text of a context that a model can read.
func contextText(c service.BuiltContext) string {
	var b strings.Builder
	for _, item := range c.Items {
		if item.Made != nil {
			b.WriteString(item.Made.Text + "\n")
		}
		if item.Message != nil {
			b.WriteString(pipeline.RenderMessage(*item.Message) + "\n")
		}
	}
	return b.String()
}
