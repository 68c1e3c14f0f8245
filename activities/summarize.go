package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// Summarize calls the current summarizer once, accepts or refuses its answer and checks it against its source; or it
// writes the digest. A failure has its error kind; the ladder decides which fallback follows.
func (a *Activities) Summarize(ctx context.Context, req contract.SummarizeRequest) (contract.SummarizeResult, error) {
	var notes contract.SummarizeNotes
	return recorded(ctx, a, contract.StageSummarize, req.Ref, req.Summarizer.String(), &notes,
		func(ctx context.Context, at *attempt) (contract.SummarizeResult, error) {
			return once(ctx, a, at, &notes, func(run runs.Run) (contract.SummarizeResult, error) {
				return a.summarize(ctx, at, req, run, &notes)
			})
		})
}

func (a *Activities) summarize(ctx context.Context, at *attempt, req contract.SummarizeRequest, run runs.Run,
	notes *contract.SummarizeNotes,
) (contract.SummarizeResult, error) {
	p, err := a.plan(ctx, req.Tenant, req.Plan)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	view, err := a.load(ctx, at, p.Head, p.BeneathDigest)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	w := writing{at: at, req: req, run: run, view: view, plan: p, source: p.source(view), notes: notes}
	switch req.Summarizer.Kind {
	case pipeline.SummarizerDigest:
		return a.digest(ctx, w)
	case pipeline.SummarizerNative:
		return a.nativeSummary(ctx, w)
	}
	return a.modelSummary(ctx, w)
}

// writing is what a summary is written from.
type writing struct {
	at     *attempt
	req    contract.SummarizeRequest
	run    runs.Run
	view   conversation.View
	plan   plan
	source []pipeline.Message
	notes  *contract.SummarizeNotes
}

// digest writes the extractive summary: no model, no network.
func (a *Activities) digest(ctx context.Context, w writing) (contract.SummarizeResult, error) {
	budget, err := digestBudget(ctx, w.view, w.source)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	in := pipeline.DigestInput{Messages: w.source, BudgetChars: budget}
	for _, e := range w.view.Source.Enrichments {
		if e.Key == "todo" {
			in.Todo = string(e.Value)
		}
	}
	redaction, err := w.view.Redaction(ctx, w.source)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	text, err := pipeline.Digest(ctx, in)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	text = redaction.Text(text)
	if err := redaction.Err(); err != nil {
		return contract.SummarizeResult{}, err
	}
	return a.keepSummary(ctx, w, text,
		runs.Facts{Summarizer: w.req.Summarizer.String(), Rung: w.req.Rung, Digest: true}, contract.SummarizeResult{})
}

// digestBudget is the digest's size in chars: the cap of a summary, and never more than a quarter of the
// window, by the density of the text itself.
func digestBudget(ctx context.Context, view conversation.View, source []pipeline.Message) (int, error) {
	tokens := view.Settings.SummaryMaxTokens
	if w := view.Conversation.Window; w > 0 {
		tokens = min(tokens, w/4)
	}
	perToken, err := density(ctx, view, pipeline.Summarizer{}, source)
	if err != nil {
		return 0, err
	}
	if perToken <= 0 {
		perToken = 1
	}
	return max(int(float64(tokens)*perToken), pipeline.DefaultMinUsefulChars), nil
}

// modelSummary calls the model and turns its answer into a summary.
func (a *Activities) modelSummary(ctx context.Context, w writing) (contract.SummarizeResult, error) {
	prompt, err := choosePrompt(w.run, w.view, w.req.Summarizer)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	answer, result, err := a.answer(ctx, w, prompt)
	if err != nil {
		return result, err
	}
	return a.accept(ctx, w, answer.Answer, prompt, pipeline.ModeExplicit, result)
}

// answer calls the model and notes what the call cost.
func (a *Activities) answer(ctx context.Context, w writing, prompt pipeline.Prompt) (
	recordedAnswer, contract.SummarizeResult, error,
) {
	answer, err := a.ask(ctx, w, prompt)
	w.notes.CachedInputTokens = answer.Usage.CachedInput
	return answer, contract.SummarizeResult{InputTokens: answer.Usage.Input, OutputTokens: answer.Usage.Output}, err
}

// accept turns an answer into a summary that can be kept, checked against its source.
func (a *Activities) accept(ctx context.Context, w writing, answer pipeline.Answer, prompt pipeline.Prompt,
	mode pipeline.Mode, result contract.SummarizeResult,
) (contract.SummarizeResult, error) {
	view, p, source := w.view, w.plan, w.source
	text, err := pipeline.AcceptSummary(ctx, answer, pipeline.AcceptLimits{
		ReplacedTokens: p.SummarizeTokens, MaxTokens: view.Settings.SummaryMaxTokens, Prompt: prompt,
	})
	if err != nil {
		return result, err
	}
	redaction, err := view.Redaction(ctx, view.Live()) // the agent's own model may have seen them
	if err != nil {
		return result, err
	}
	text = redaction.Text(text)
	text, found, err := checked(ctx, text, source, p.kept(view), userMessagesBudget(view))
	if err != nil {
		return result, err
	}
	text = redaction.Text(text) // what the check appended is the source's own
	if err := redaction.Err(); err != nil {
		return result, err
	}
	result.ConstraintsMissing = len(found.ConstraintsMissing)
	result.UnsupportedIdentifiers = len(found.UnsupportedIdentifiers)
	result.Misattributed = len(found.Misattributed)
	verification, err := json.Marshal(map[string]int{
		"constraints_missing":     result.ConstraintsMissing,
		"unsupported_identifiers": result.UnsupportedIdentifiers,
		"misattributed":           result.Misattributed,
	})
	if err != nil {
		return result, fmt.Errorf("encode the verification: %w", err)
	}
	details, err := json.Marshal(found)
	if err != nil {
		return result, fmt.Errorf("encode the verification: %w", err)
	}
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(w.at.ref), contract.ArtifactVerification, details)
	if err != nil {
		return result, err
	}
	w.at.artifact(contract.ArtifactVerification, artifact.SHA256)
	return a.keepSummary(ctx, w, text, runs.Facts{
		Summarizer: w.req.Summarizer.String(), Rung: w.req.Rung, PromptName: prompt.Name, PromptVersion: prompt.Version,
		Mode: mode, Verification: verification,
	}, result)
}

// checked puts the user's real messages into a summary and checks the rest of it against its source.
func checked(ctx context.Context, text string, source, tail []pipeline.Message, budget int) (
	string, pipeline.Verification, error,
) {
	users, err := pipeline.SummarizedUsers(ctx, source)
	if err != nil {
		return "", pipeline.Verification{}, err
	}
	if text, err = pipeline.UserMessagesSection(ctx, text, users, budget); err != nil {
		return "", pipeline.Verification{}, err
	}
	return pipeline.VerifySummary(ctx, text, source, tail)
}

// userMessagesBudget is the room of the real user messages in a summary, in chars: a quarter of its cap at
// three chars a token.
func userMessagesBudget(view conversation.View) int { return view.Settings.SummaryMaxTokens * 3 / 4 }

// keepSummary stores an accepted summary and what is known of it.
func (a *Activities) keepSummary(ctx context.Context, w writing, text string, facts runs.Facts,
	result contract.SummarizeResult,
) (contract.SummarizeResult, error) {
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(w.at.ref), contract.ArtifactSummaryText, []byte(text))
	if err != nil {
		return result, err
	}
	w.at.artifact(contract.ArtifactSummary, artifact.SHA256)
	if err := a.Store.Runs.RecordFacts(ctx, runOf(w.at.ref), facts); err != nil {
		return result, err
	}
	result.Summary, result.Tokens = artifact.SHA256, pipeline.EstimateText(text)
	return result, nil
}

// asError returns the pipeline's own error in err, nil if there is none.
func asError(err error) *pipeline.Error {
	var e *pipeline.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
