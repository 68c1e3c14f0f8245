package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store/runs"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/request"
)

// fitRounds bounds how often an input is slimmed to what the estimate says of it: the density of the text,
// from which the budget in chars is made, is measured and so is nearly right the first time.
const fitRounds = 4

// externalInput is the prepared request to an external summarizer, kept as an artifact.
type externalInput struct {
	System        string `json:"system,omitempty"`
	User          string `json:"user"`
	PromptName    string `json:"prompt_name"`
	PromptVersion string `json:"prompt_version"`
}

// Slim prepares the input of the summarizer whose turn it is, so that it fits before it is sent: for "self"
// the agent's own request with one instruction behind it, for every other the rendering, slimmed to the
// budget. A request that cannot fit is an error of kind input_tokens_exceeded, as if the model had said so.
func (a *Activities) Slim(ctx context.Context, req contract.SlimRequest) (contract.SlimResult, error) {
	var notes contract.SlimNotes
	return recorded(ctx, a, contract.StageSlim, req.Ref, req.Summarizer.String(), &notes,
		func(ctx context.Context, at *attempt) (
			contract.SlimResult, error,
		) {
			return once(ctx, a, at, &notes, func(run runs.Run) (contract.SlimResult, error) {
				return a.slim(ctx, at, req, run, &notes)
			})
		})
}

func (a *Activities) slim(ctx context.Context, at *attempt, req contract.SlimRequest, run runs.Run,
	notes *contract.SlimNotes) (
	contract.SlimResult, error,
) {
	p, err := a.plan(ctx, req.Tenant, req.Plan)
	if err != nil {
		return contract.SlimResult{}, err
	}
	view, err := a.load(ctx, at, p.Head, p.BeneathDigest)
	if err != nil {
		return contract.SlimResult{}, err
	}
	req.Variation.MaxTokens = view.Settings.SummaryMaxTokens
	prompt, err := choosePrompt(run, view, req.Summarizer)
	if err != nil {
		return contract.SlimResult{}, err
	}
	if run.Focus, err = redactedFocus(ctx, view, run.Focus); err != nil {
		return contract.SlimResult{}, err
	}
	switch req.Summarizer.Kind {
	case pipeline.SummarizerSelf:
		return a.selfInput(ctx, at, req, run, view, prompt)
	case pipeline.SummarizerNative:
		return a.nativeInput(ctx, at, req, run, view, p, prompt)
	}
	return a.externalInput(ctx, at, req, run, view, p, prompt, notes)
}

// choosePrompt picks the prompt: the run's own, else the one in the settings, else by vendor and use.
func choosePrompt(run runs.Run, view conversation.View, s pipeline.Summarizer) (pipeline.Prompt, error) {
	override := run.Prompt
	if override == "" {
		override = view.Settings.Prompt
	}
	// The native prompt goes with the vendor's native compaction alone; everything else is explicit.
	mode := pipeline.ModeExplicit
	if s.Kind == pipeline.SummarizerNative {
		mode = pipeline.ModeBeta
	}
	p, err := pipeline.ChoosePrompt(s.Vendor, run.Kind == pipeline.TriggerManual, mode, override)
	if err != nil {
		return p, pipeline.Errorf(pipeline.BadRequest, "%w", err)
	}
	return p, nil
}

// calibrated scales a local estimate to what the summarizer's tokenizer makes of it: by the last real figure where the
// conversation's model is of the same vendor. An estimate never goes down: to be short costs a refused call.
func calibrated(view conversation.View, s pipeline.Summarizer, tokens int) int {
	ratio := view.Models.TokenRatio(s.Vendor, s.Model)
	if s.Vendor == view.Conversation.Vendor {
		ratio = view.Calibration()
	}
	return int(float64(tokens) * max(ratio, 1))
}

// selfInput is the agent's own last request, byte for byte, and the instruction behind it: the provider's
// cache of the agent is hit.
func (a *Activities) selfInput(ctx context.Context, at *attempt, req contract.SlimRequest, run runs.Run,
	view conversation.View,
	prompt pipeline.Prompt,
) (contract.SlimResult, error) {
	current, err := view.Context(ctx)
	if err != nil {
		return contract.SlimResult{}, err
	}
	messages, err := transcript.EncodeItems(view.Codec, current.Items)
	if err != nil {
		return contract.SlimResult{}, err
	}
	instruction, err := view.Codec.Make(pipeline.Made{
		Role: pipeline.RoleUser,
		Text: pipeline.SelfInstruction(prompt, run.Focus, req.Variation),
	})
	if err != nil {
		return contract.SlimResult{}, err
	}
	tokens := calibrated(view, req.Summarizer,
		current.Stats.Tokens+view.Overhead()+pipeline.EstimateText(string(instruction)))
	if !pipeline.FitsWindow(view.Settings.Settings, req.Summarizer, tokens) {
		return contract.SlimResult{}, tooLarge(req.Summarizer, tokens)
	}
	maxOutput := pipeline.MaxOutputFor(view.Settings.Settings, req.Summarizer, tokens)
	body, err := request.Build(request.Input{
		Format: transcript.Format(view.Conversation.Format), Envelope: view.Conversation.Envelope,
		System: view.Conversation.System, Tools: view.Conversation.Tools, Model: req.Summarizer.Model,
		MaxTokens: maxOutput, Messages: messages, Append: instruction, Summarized: view.Marker != nil,
	})
	if err != nil {
		return contract.SlimResult{}, err
	}
	if body, err = llm.WithCompactionEdit(body, view.NativeForm()); err != nil {
		return contract.SlimResult{}, err
	}
	sha, chars, err := a.keepInput(ctx, at, view, body)
	if err != nil {
		return contract.SlimResult{}, err
	}
	return contract.SlimResult{Input: sha, Chars: chars, Tokens: tokens, MaxOutput: maxOutput},
		nil
}

// externalInput renders what is summarized and slims it until the whole request fits the summarizer.
func (a *Activities) externalInput(ctx context.Context, at *attempt, req contract.SlimRequest, run runs.Run,
	view conversation.View, p plan, prompt pipeline.Prompt, notes *contract.SlimNotes,
) (contract.SlimResult, error) {
	source := p.source(view)
	in := pipeline.SlimInput{
		Messages: source, ToolDropThreshold: view.Settings.ToolDropThreshold,
		MinUsefulChars: view.Settings.MinUsefulChars, TranscriptHint: view.TranscriptHint(),
	}
	redaction, err := view.Redaction(ctx, source)
	if err != nil {
		return contract.SlimResult{}, err
	}
	in.Redact = redaction.Func() // each text whole, before anything is cut
	if in.OldRules = view.OldRules; !in.OldRules {
		in.Nonce = nonceOf(run)
	}
	fixed := pipeline.ExternalRequest(prompt, pipeline.Slimmed{Nonce: in.Nonce}, run.Focus, req.Variation)
	promptTokens := pipeline.EstimateText(fixed.System) + pipeline.EstimateText(fixed.User)
	perToken, err := density(ctx, view, req.Summarizer, source)
	if err != nil {
		return contract.SlimResult{}, err
	}
	in.BudgetChars = pipeline.InputBudgetChars(view.Settings.Settings, req.Summarizer, promptTokens, perToken)
	if in, err = in.Share(ctx, req.Factor); err != nil {
		return contract.SlimResult{}, err
	}
	if in.BudgetChars <= 0 {
		return contract.SlimResult{}, tooLarge(req.Summarizer, promptTokens)
	}
	for range fitRounds {
		slimmed, err := pipeline.Slim(ctx, in)
		if err != nil {
			return contract.SlimResult{}, err
		}
		if err := redaction.Err(); err != nil {
			return contract.SlimResult{}, err
		}
		request := pipeline.ExternalRequest(prompt, slimmed, run.Focus, req.Variation)
		tokens := calibrated(view, req.Summarizer,
			pipeline.EstimateText(request.System)+pipeline.EstimateText(request.User))
		if !pipeline.FitsWindow(view.Settings.Settings, req.Summarizer, tokens) {
			in.BudgetChars = in.BudgetChars * 3 / 4
			continue
		}
		body, err := json.Marshal(externalInput{
			System: request.System, User: request.User, PromptName: prompt.Name, PromptVersion: prompt.Version,
		})
		if err != nil {
			return contract.SlimResult{}, fmt.Errorf("encode the summarizer's input: %w", err)
		}
		sha, _, err := a.keepInput(ctx, at, view, body)
		if err != nil {
			return contract.SlimResult{}, err
		}
		if err := a.keepOmissions(ctx, at, slimmed); err != nil {
			return contract.SlimResult{}, err
		}
		*notes = contract.SlimNotes{BudgetChars: in.BudgetChars, Valves: slimmed.Valves, Binaries: slimmed.Binaries}
		return contract.SlimResult{
			Input: sha, Chars: pipeline.Chars(request.System) + pipeline.Chars(request.User), Tokens: tokens,
			MaxOutput: pipeline.MaxOutputFor(view.Settings.Settings, req.Summarizer, tokens),
			Omitted:   slimmed.Placeholders, Cut: slimmed.Cut, DroppedTools: slimmed.DroppedTools,
		}, nil
	}
	return contract.SlimResult{}, tooLarge(req.Summarizer, promptTokens)
}

// nonceOf returns the mark of the elements of a run's record. The run's id is random and not known before the run, so
// that no message can have it. All requests of a run have the same one, so that the vendor's cache is hit, and so has a
// replay of the run from its record.
func nonceOf(run runs.Run) string {
	id := run.Ref.ID
	if run.ReplayOf != "" && !run.Replay.Live {
		id = run.ReplayOf
	}
	sum := sha256.Sum256([]byte(string(contract.StageSlim) + " " + id))
	return hex.EncodeToString(sum[:8])
}

// density is how many chars of the source make a token, by its local estimate. The error is that of ctx, if it is done
// first.
func density(ctx context.Context, view conversation.View, s pipeline.Summarizer, source []pipeline.Message) (
	float64, error,
) {
	chars, tokens := 0, 0
	for _, m := range source {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("measuring the messages was interrupted: %w", err)
		}
		text := pipeline.RenderMessage(m)
		chars += pipeline.Chars(text)
		tokens += pipeline.EstimateText(text)
	}
	if tokens == 0 {
		return 0, nil
	}
	return float64(chars) / float64(calibrated(view, s, tokens)), nil
}

func tooLarge(s pipeline.Summarizer, tokens int) error {
	return &pipeline.Error{
		Kind: pipeline.InputTokensExceeded, ActualTokens: tokens, LimitTokens: s.Window,
		Message: fmt.Sprintf("a request of about %d tokens does not fit the window of %s (%d): it was not sent", tokens,
			s, s.Window),
	}
}

// redactedFocus returns the focus of a run as it is sent. It is redacted alone: what looks like the beginning of a key
// must not take the rest of the instruction with it.
func redactedFocus(ctx context.Context, view conversation.View, focus string) (string, error) {
	if view.OldRules || focus == "" {
		return focus, nil
	}
	redaction, err := view.Redaction(ctx, nil)
	if err != nil {
		return "", err
	}
	return redaction.Text(focus), redaction.Err()
}

// keepInput stores the prepared request and returns its hash and its size in chars. Every request to a model passes
// through here and is sent as it is stored: with the setting redact, whatever is secret in it is taken out here.
func (a *Activities) keepInput(ctx context.Context, at *attempt, view conversation.View, body []byte) (
	sha string, chars int, err error,
) {
	redaction, err := view.Redaction(ctx, view.Live())
	if err != nil {
		return "", 0, err
	}
	if body, err = redaction.Request(body); err != nil {
		return "", 0, err
	}
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(at.ref), contract.ArtifactInput, body)
	if err != nil {
		return "", 0, err
	}
	at.artifact(contract.ArtifactInput, artifact.SHA256)
	return artifact.SHA256, pipeline.Chars(string(body)), nil
}

// keepOmissions records which messages the summarizer does not see whole.
func (a *Activities) keepOmissions(ctx context.Context, at *attempt, s pipeline.Slimmed) error {
	if len(s.Omitted) == 0 {
		return nil
	}
	data, err := json.Marshal(s.Omitted)
	if err != nil {
		return fmt.Errorf("encode the list of omissions: %w", err)
	}
	artifact, err := a.Store.Artifacts.Put(ctx, conversationOf(at.ref), contract.ArtifactOmitted, data)
	if err != nil {
		return err
	}
	at.artifact(contract.ArtifactOmitted, artifact.SHA256)
	return nil
}
