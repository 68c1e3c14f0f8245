package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/request"
)

// The vendor's own compaction (mode beta) gets the beginning of the agent's own request. Its result goes to the same
// vendor and model family unchanged. Where only the vendor can read the result, the summarizers that
// follow on the list write a summary beside it.

// withNative puts the vendor's own compaction in front of the first model in mode beta that has one.
// Why there is none is noted.
func (a *Activities) withNative(ctx context.Context, at *attempt, notes *contract.SummarizerNotes,
	ladder []pipeline.Summarizer, view conversation.View,
) ([]pipeline.Summarizer, error) {
	for i, s := range ladder {
		if s.Kind == pipeline.SummarizerDigest || s.Mode != pipeline.ModeBeta {
			continue
		}
		able, err := a.nativeAbility(at, notes, s, view)
		if err != nil {
			return nil, err
		}
		form, reason := contract.NativeForm(able.Form), able.Why
		now, err := view.Context(ctx)
		if err != nil {
			return nil, err
		}
		if tokens := calibrated(view, s, now.Stats.Tokens+view.Overhead()); reason == "" &&
			tooSmallFor(form, tokens) {
			reason = tooSmallReason(tokens)
		}
		if reason != "" {
			notes.NotNative = append(notes.NotNative,
				pipeline.SkippedSummarizer{Model: s.Vendor + "/" + s.Model, Reason: reason})
			continue
		}
		native := s
		native.Kind, native.Form, native.Fallback = pipeline.SummarizerNative, string(form), false
		out := append(append([]pipeline.Summarizer{}, ladder[:i]...), native)
		return append(out, ladder[i:]...), nil
	}
	return ladder, nil
}

// nativeAbility returns the form in which a vendor compacts for a model by itself, or why it does not; in a replay from
// the record what the original noted.
func (a *Activities) nativeAbility(at *attempt, notes *contract.SummarizerNotes, s pipeline.Summarizer,
	view conversation.View) (
	contract.NativeAbility, error,
) {
	able := contract.NativeAbility{Vendor: s.Vendor, Model: s.Model}
	if at.record == nil {
		form, why := view.CanCompactNatively(a.vendor(s.Vendor), s.Model)
		able.Form, able.Why = string(form), why
	} else {
		known, err := at.record.given()
		if err != nil {
			return able, err
		}
		i := slices.IndexFunc(known.Native, func(n contract.NativeAbility) bool {
			return n.Vendor == s.Vendor && n.Model == s.Model
		})
		if i < 0 {
			return able, errNotRecorded(at.record.original, "whether "+s.Vendor+" compacts for "+s.Model)
		}
		able = known.Native[i]
	}
	notes.Given.Native = append(notes.Given.Native, able)
	return able, nil
}

// tooSmallFor reports whether Anthropic would refuse to compact so few tokens.
func tooSmallFor(form contract.NativeForm, tokens int) bool {
	return form.Format() == contract.ProtocolAnthropic && tokens < pipeline.MinAnthropicCompactionInputTokens
}

func tooSmallReason(tokens int) string {
	return fmt.Sprintf("≈%d input tokens are under the %d from which Anthropic's compaction is used", tokens,
		pipeline.MinAnthropicCompactionInputTokens)
}

// vendor is the configured vendor as its client knows it, without its key.
func (a *Activities) vendor(name string) llm.Vendor {
	v := a.Config.Vendors[name]
	return llm.Vendor{Name: name, Type: v.Type, BaseURL: v.BaseURL}
}

// nativeInput is the request for the vendor's own compaction of what the plan covers.
func (a *Activities) nativeInput(ctx context.Context, at *attempt, req contract.SlimRequest, run runs.Run,
	view conversation.View, p plan, prompt pipeline.Prompt,
) (contract.SlimResult, error) {
	form := contract.NativeForm(req.Summarizer.Form)
	messages, tokens, err := view.NativeMessages(ctx, p.CoversTo)
	if err != nil {
		return contract.SlimResult{}, err
	}
	instructions := ""
	if form.Readable() {
		instructions = pipeline.SelfInstruction(prompt, run.Focus, req.Variation)
	}
	tokens = calibrated(view, req.Summarizer, tokens+view.Overhead()+pipeline.EstimateText(instructions))
	if tooSmallFor(form, tokens) {
		return contract.SlimResult{}, pipeline.Errorf(pipeline.BadRequest, "%s: it was not sent",
			tooSmallReason(tokens))
	}
	if !pipeline.FitsWindow(view.Settings.Settings, req.Summarizer, tokens) {
		return contract.SlimResult{}, tooLarge(req.Summarizer, tokens)
	}
	maxOutput := pipeline.MaxOutputFor(view.Settings.Settings, req.Summarizer, tokens)
	body, err := request.Build(request.Input{
		Format: transcript.Format(view.Conversation.Format), Envelope: view.Conversation.Envelope,
		System: view.Conversation.System, Tools: view.Conversation.Tools,
		Model: req.Summarizer.Model, MaxTokens: maxOutput, Messages: messages,
	})
	if err != nil {
		return contract.SlimResult{}, err
	}
	if body, err = llm.NativeBody(form, body, instructions); err != nil {
		return contract.SlimResult{}, err
	}
	sha, chars, err := a.keepInput(ctx, at, view, body)
	if err != nil {
		return contract.SlimResult{}, err
	}
	return contract.SlimResult{Input: sha, Chars: chars, Tokens: tokens, MaxOutput: maxOutput},
		nil
}

// nativeSummary has the vendor compact and stores the result. Where that is readable it is the summary as well,
// held to the same checks as any other.
func (a *Activities) nativeSummary(ctx context.Context, w writing) (contract.SummarizeResult, error) {
	req, view, p := w.req, w.view, w.plan
	prompt, err := choosePrompt(w.run, view, req.Summarizer)
	if err != nil {
		return contract.SummarizeResult{}, err
	}
	answer, result, err := a.answer(ctx, w, prompt)
	if err != nil {
		return result, err
	}
	missing, err := pipeline.MissingLimits(ctx, answer.NativeText, w.source, p.kept(view))
	if err != nil {
		return result, err
	}
	form := contract.NativeForm(req.Summarizer.Form)
	use := conversation.NativeUse{
		Vendor: req.Summarizer.Vendor, Family: llm.Family(req.Summarizer.Vendor, req.Summarizer.Model),
		Model: req.Summarizer.Model, Format: view.Conversation.Format, Form: form,
		Tokens: pipeline.EstimateText(answer.NativeText),
		Note:   pipeline.LimitsNote(missing),
	}
	if !form.Readable() {
		use.Tokens += answer.Usage.Output // the opaque part, by the vendor's own count
	}
	if use.Tokens >= p.SummarizeTokens {
		return result, pipeline.Errorf(pipeline.NotSmaller,
			"the vendor's compaction has ≈%d tokens, what it replaces ≈%d", use.Tokens, p.SummarizeTokens)
	}
	if form.Readable() {
		text := pipeline.Answer{Text: answer.NativeText, Finish: pipeline.FinishStop}
		if result, err = a.accept(ctx, w, text, prompt, pipeline.ModeBeta, result); err != nil {
			return result, err
		}
	}
	blocks, err := a.Store.Artifacts.Put(ctx, conversationOf(req.Ref), contract.ArtifactNative, answer.Native)
	if err != nil {
		return result, err
	}
	uses, err := a.Store.Artifacts.Put(ctx, conversationOf(req.Ref), contract.ArtifactNativeUse, use.JSON())
	if err != nil {
		return result, err
	}
	w.at.artifact(contract.ArtifactNative, blocks.SHA256)
	w.notes.NativeForm, w.notes.NativeTokens = string(form), use.Tokens
	result.Native, result.NativeUse = blocks.SHA256, uses.SHA256
	return result, nil
}

// nativeOf notes the result of the vendor's own compaction on the marker, and returns it. A run that summarized
// nothing keeps what is there.
func (a *Activities) nativeOf(ctx context.Context, req contract.ReassembleRequest, view conversation.View,
	marker *markers.NewMarker,
) ([]byte, error) {
	if req.Summary == "" {
		if view.Marker != nil {
			marker.Native, marker.NativeUse = view.Marker.Native, view.Marker.NativeUse
		}
		return view.Source.Native, nil
	}
	if req.Native == "" {
		return nil, nil
	}
	native, err := a.Store.Artifacts.Get(ctx, req.Tenant, req.Native)
	if err != nil {
		return nil, err
	}
	use, err := a.Store.Artifacts.Get(ctx, req.Tenant, req.NativeUse)
	if err != nil {
		return nil, err
	}
	marker.Native, marker.NativeUse = req.Native, json.RawMessage(use)
	if u, ok, err := conversation.NativeUseOf(*marker); err != nil {
		return nil, err
	} else if ok {
		// Which of the two is read depends on the model of that time: the larger one is counted.
		marker.SummaryTokens = max(marker.SummaryTokens, u.Tokens)
	}
	return native, nil
}
