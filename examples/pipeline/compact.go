package main

import (
	"context"
	"fmt"
	"io"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// Model is the model that writes the summary. It gets a system prompt and one user message.
type Model struct {
	// Summarizer has the vendor (which picks the prompt), the name and the window.
	pipeline.Summarizer
	// Ask calls the model; nil means that the digest is used. The answer has at most maxOutput tokens.
	Ask func(request pipeline.SummaryRequest, maxOutput int) (pipeline.Answer, error)
}

// Done is the result of Compact.
type Done struct {
	// Decision is whether a compaction was due, with the numbers. If it was not, the context is only trimmed.
	Decision pipeline.TriggerDecision
	// Nothing is the reason why a compaction that was due had nothing to summarize, "" if it had something.
	Nothing string
	// Refused is the reason why the digest replaces the model's summary, nil if it does not.
	Refused error
	// Checked is what was missing in the summary, and what was added to it.
	Checked pipeline.Verification
	// Before and After are the whole context, in tokens by the local estimate.
	Before, After int
	// Summarized and Kept count messages.
	Summarized, Kept int
}

// Compact reads a transcript, compacts it when it is due for the window, in tokens, and writes the context in the same
// format. The stages are those of precis; the ladder of fallbacks is the shortest possible: the model, else the digest.
//
// It stops when ctx is done, within any of the stages.
func Compact(ctx context.Context, in io.Reader, out io.Writer, window int, settings pipeline.Settings, model Model) (
	Done, error,
) {
	// Decode: every message keeps its bytes.
	file, err := transcript.Read(in, transcript.Options{})
	if err != nil {
		return Done{}, err
	}
	if len(file.Conversations) == 0 {
		return Done{}, fmt.Errorf("the file has no conversation; docs/formats.md lists the formats")
	}
	talk := file.Conversations[0]

	// Trim: what would be sent to the model without a compaction.
	sent := pipeline.ContextInput{Live: talk.Messages, Settings: settings, Window: window, Vendor: talk.Vendor}
	before, err := pipeline.BuildContext(ctx, sent)
	if err != nil {
		return Done{}, err
	}
	overhead := pipeline.EstimateText(string(talk.System)) + pipeline.EstimateText(string(talk.Tools))
	done := Done{Before: before.Stats.Tokens + overhead, After: before.Stats.Tokens + overhead}
	write := func(c pipeline.Context) (Done, error) {
		_, err := convert.WriteFile(out, file.Format,
			transcript.Output{Meta: talk.Meta, Items: c.Items, TokensBefore: done.Before})
		return done, err
	}

	// 1. Trigger. If you have the vendor's figure of the last request, set ServerTokens too.
	done.Decision = pipeline.EvaluateTrigger(pipeline.TriggerInput{Window: window, EstimateAll: done.Before}, settings)
	if !done.Decision.Fired {
		return write(before)
	}

	// 3. Partition. (2, who writes the summary, is given.)
	part, err := pipeline.PartitionMessages(ctx, pipeline.PartitionInput{
		Messages: talk.Messages, Settings: settings,
		Window: window,
	})
	if err != nil {
		return done, err
	}
	if part.Nothing != "" {
		done.Nothing = part.Nothing
		return write(before)
	}
	source, tail := pick(talk.Messages, part.ToSummarize), pick(talk.Messages, part.Tail)
	done.Summarized, done.Kept = len(source), len(tail)

	// 4 and 5. Slim, ask, accept; or the digest.
	summary, err := summarize(ctx, source, settings, model)
	if err != nil {
		done.Refused = err
		summary, err = pipeline.Digest(ctx,
			pipeline.DigestInput{Messages: source, BudgetChars: 4 * settings.SummaryMaxTokens})
		if err != nil {
			return done, err
		}
	}
	// Verify: limits that the user set are in the summary word for word, or are appended.
	summary, done.Checked, err = pipeline.VerifySummary(ctx, summary, source, tail)
	if err != nil {
		return done, err
	}

	// 6. Reassemble: system, environment, summary, tail.
	sent.SummaryText = pipeline.SummaryText(pipeline.SummaryTextInput{
		Summary: summary, Digest: done.Refused != nil, UnderWay: pipeline.UnderWay(talk.Messages),
		TailKept: len(tail) > 0, Repeated: len(part.Carried),
	})
	sent.Live = nil
	for _, list := range [][]int{part.System, part.UserInfo, part.Carried, part.Tail} {
		sent.Live = append(sent.Live, pick(talk.Messages, list)...)
	}
	after, err := pipeline.BuildContext(ctx, sent)
	if err != nil {
		return done, err
	}
	done.After = after.Stats.Tokens + overhead
	return write(after)
}

// summarize asks the model once. Its errors have the kinds from which precis's ladder chooses a fallback.
func summarize(ctx context.Context, source []pipeline.Message, settings pipeline.Settings, model Model) (
	string, error,
) {
	if model.Ask == nil {
		return "", pipeline.Errorf(pipeline.ModelNotFound, "no model was given")
	}
	prompt, err := pipeline.ChoosePrompt(model.Vendor, false, pipeline.ModeExplicit, settings.Prompt)
	if err != nil {
		return "", err
	}
	fixed := pipeline.ExternalRequest(prompt, pipeline.Slimmed{}, "", pipeline.Variation{})
	promptTokens := pipeline.EstimateText(fixed.System) + pipeline.EstimateText(fixed.User)
	input, err := pipeline.Slim(ctx, pipeline.SlimInput{
		Messages: source, ToolDropThreshold: settings.ToolDropThreshold, MinUsefulChars: settings.MinUsefulChars,
		BudgetChars: pipeline.InputBudgetChars(settings, model.Summarizer, promptTokens, 0),
	})
	if err != nil {
		return "", err
	}
	request := pipeline.ExternalRequest(prompt, input, "", pipeline.Variation{})
	tokens := pipeline.EstimateText(request.System) + pipeline.EstimateText(request.User)
	answer, err := model.Ask(request, pipeline.MaxOutputFor(settings, model.Summarizer, tokens))
	if err != nil {
		return "", err
	}
	replaced := 0
	for _, m := range source {
		replaced += pipeline.EstimateMessage(m)
	}
	return pipeline.AcceptSummary(ctx, answer,
		pipeline.AcceptLimits{ReplacedTokens: replaced, MaxTokens: settings.SummaryMaxTokens, Prompt: prompt})
}

func pick(messages []pipeline.Message, indexes []int) []pipeline.Message {
	out := make([]pipeline.Message, len(indexes))
	for i, at := range indexes {
		out[i] = messages[at]
	}
	return out
}
