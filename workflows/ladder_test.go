package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"precis"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

const (
	good     = "<summary>The parts were read. The last question is open.</summary>"
	goodMark = "The parts were read"
)

// rung is one scenario for a row of the ladder: what the vendor does, and what must become of the run.
type rung struct {
	name string
	// summarizers of the run; the vendors' models have windows of their own.
	summarizers []any
	// answers by model.
	answers map[string][]vendorserver.Answer
	windows map[string]int
	digest  string
	budget  map[string]any

	outcome precis.Outcome
	kind    pipeline.ErrorKind
	by      string // the summarizer that wrote the summary
	digests bool
	path    []string // "summarizer:kind→step"
	calls   map[string]int
}

var (
	alpha = map[string]any{"model": "anthropic/alpha", "context_window": 30000, "max_output": 4000}
	beta  = map[string]any{"model": "openai/beta", "context_window": 60000, "max_output": 4000}
	small = map[string]any{"model": "openai/small", "context_window": 20000, "max_output": 4000}
)

func refuse(status int, typ, code, message string) vendorserver.Answer {
	return vendorserver.Answer{Error: &vendorserver.Error{Status: status, Type: typ, Code: code, Message: message}}
}

func forever(a vendorserver.Answer) []vendorserver.Answer {
	a.Forever = true
	return []vendorserver.Answer{a}
}

func text(s string) vendorserver.Answer { return vendorserver.Answer{Text: s} }

var tooLong = refuse(400, "invalid_request_error", "context_length_exceeded",
	"prompt is too long: 213462 tokens > 200000 maximum")

var rungs = []rung{
	{
		name:        "external overflow slims harder, three times, then a larger window",
		summarizers: []any{alpha, small, beta},
		answers:     map[string][]vendorserver.Answer{"alpha": forever(tooLong), "beta": {text(good)}},
		outcome:     precis.OutcomeApplied, by: "openai/beta",
		path: []string{
			"anthropic/alpha:input_tokens_exceeded→slim_harder",
			"anthropic/alpha:input_tokens_exceeded→slim_harder", "anthropic/alpha:input_tokens_exceeded→slim_harder",
			"anthropic/alpha:input_tokens_exceeded→larger_window",
		},
		calls: map[string]int{"alpha": 4, "small": 0, "beta": 1},
	},
	{
		name: "overflow everywhere ends in the digest", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": forever(tooLong)},
		outcome: precis.OutcomeApplied, by: "digest", digests: true,
		path: []string{
			"anthropic/alpha:input_tokens_exceeded→slim_harder",
			"anthropic/alpha:input_tokens_exceeded→slim_harder", "anthropic/alpha:input_tokens_exceeded→slim_harder",
			"anthropic/alpha:input_tokens_exceeded→larger_window",
		},
		calls: map[string]int{"alpha": 4},
	},
	{
		name: "too many bytes is as too many tokens", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {refuse(413, "request_too_large", "",
			"Request exceeds the maximum size"), text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		path:  []string{"anthropic/alpha:input_too_large→slim_harder"},
		calls: map[string]int{"alpha": 2},
	},
	{
		name:        "cut off at the output limit asks for less, then with half the input, then the next",
		summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{"alpha": forever(vendorserver.Answer{
			Text:   "<summary>half a summ",
			Finish: "max_tokens",
		}), "beta": {text(good)}}, outcome: precis.OutcomeApplied, by: "openai/beta",
		path: []string{
			"anthropic/alpha:output_too_long→shorter_output", "anthropic/alpha:output_too_long→half_input",
			"anthropic/alpha:output_too_long→next_summarizer",
		},
		calls: map[string]int{"alpha": 3, "beta": 1},
	},
	{
		name: "a summary as large as what it replaces", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {
			text("<summary>" + scenario.Distinct("x", 6000) + "</summary>"),
			text(good),
		}},
		budget:  map[string]any{"summary_max_tokens": 100000},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		path:  []string{"anthropic/alpha:not_smaller→shorter_output"},
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "an empty answer is asked for once more", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {text("  \n "), text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		path:  []string{"anthropic/alpha:empty_output→once_more"},
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "thinking alone is empty, twice goes to the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{"alpha": forever(vendorserver.Answer{Content: []vendorserver.Block{{
			Type:     "thinking",
			Thinking: "hm", Signature: "sig",
		}}, Finish: "end_turn"}), "beta": {text(good)}},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:empty_output→once_more", "anthropic/alpha:empty_output→next_summarizer"},
		calls: map[string]int{"alpha": 2, "beta": 1},
	},
	{
		name: "no finish reason is malformed", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {{Text: good, Finish: "none"}, text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		path:  []string{"anthropic/alpha:malformed_output→once_more"},
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "a tool call instead of text", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {{ToolCalls: []vendorserver.ToolCall{{
			ID: "t1", Name: "read",
			Arguments: "{}",
		}}}, text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		path:  []string{"anthropic/alpha:tool_call_output→once_more"},
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "a refusal goes to the next, no retry", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{"alpha": forever(vendorserver.Answer{
			Text:   "I can't help with that.",
			Finish: "refusal",
		}), "beta": {text(good)}},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:refused→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "a wrong key goes to the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{"alpha": forever(refuse(401, "authentication_error", "",
			"invalid x-api-key")), "beta": {text(good)}},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:auth→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "no credit goes to the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{
			"alpha": forever(refuse(402, "", "", "Insufficient balance")),
			"beta":  {text(good)},
		},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:quota→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "an unknown model goes to the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{
			"alpha": forever(refuse(404, "not_found_error", "", "model: alpha")),
			"beta":  {text(good)},
		},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:model_not_found→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "a bad request goes to the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{"alpha": forever(refuse(400, "invalid_request_error", "",
			"temperature: out of range")), "beta": {text(good)}},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:bad_request→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "a refused shape is rebuilt as plain text, once, then the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{
			"alpha": forever(refuse(400, "invalid_request_error", "",
				"messages.12: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01")),
			"beta": {text(good)},
		},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path: []string{
			"anthropic/alpha:malformed_history→plain_text",
			"anthropic/alpha:malformed_history→next_summarizer",
		},
		calls: map[string]int{"alpha": 2, "beta": 1},
	},
	{
		name: "a dropped stream is retried by itself", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {{CloseAfterText: "<summary>half"}, text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "a server error is retried by itself", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {refuse(500, "api_error", "", "boom"), text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "a rate limit waits for the time of Retry-After", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {{Error: &vendorserver.Error{
			Status: 429, Type: "rate_limit_error",
			RetryAfter: "1",
		}}, text(good)}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "an overloaded vendor is retried by itself", summarizers: []any{alpha},
		answers: map[string][]vendorserver.Answer{"alpha": {
			refuse(529, "overloaded_error", "", "Overloaded"),
			text(good),
		}},
		outcome: precis.OutcomeApplied, by: "anthropic/alpha",
		calls: map[string]int{"alpha": 2},
	},
	{
		name: "a rate limit longer than the run's time goes to the next", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{"alpha": forever(vendorserver.Answer{Error: &vendorserver.Error{
			Status: 429,
			Type:   "rate_limit_error", RetryAfter: "3600",
		}}), "beta": {text(good)}},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:rate_limited→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "a vendor whose connections break goes to the next after its attempts", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{
			"alpha": forever(vendorserver.Answer{CloseAfterText: "<summary>half"}),
			"beta":  {text(good)},
		},
		outcome: precis.OutcomeApplied, by: "openai/beta",
		path:  []string{"anthropic/alpha:network→next_summarizer"},
		calls: map[string]int{"alpha": 4, "beta": 1},
	},
	{
		name: "every model failed: the digest", summarizers: []any{alpha, beta},
		answers: map[string][]vendorserver.Answer{
			"alpha": forever(vendorserver.Answer{Finish: "refusal"}),
			"beta":  forever(refuse(401, "", "invalid_api_key", "Incorrect API key provided")),
		},
		outcome: precis.OutcomeApplied, by: "digest", digests: true,
		path:  []string{"anthropic/alpha:refused→next_summarizer", "openai/beta:auth→next_summarizer"},
		calls: map[string]int{"alpha": 1, "beta": 1},
	},
	{
		name: "every model failed and no digest: failed, the context as before", summarizers: []any{alpha},
		digest: "never", answers: map[string][]vendorserver.Answer{"alpha": forever(
			vendorserver.Answer{Finish: "refusal"})},
		outcome: precis.OutcomeFailed, kind: pipeline.Refused,
		calls: map[string]int{"alpha": 1},
	},
	{
		name: "the token budget of the run is spent: the digest", summarizers: []any{alpha},
		budget: map[string]any{"run_token_budget": 100}, outcome: precis.OutcomeApplied, by: "digest", digests: true,
		path:  []string{"anthropic/alpha:→digest"},
		calls: map[string]int{"alpha": 0},
	},
}

func TestLadder(t *testing.T) {
	t.Parallel()
	for _, r := range rungs {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := scenario.New(t, vendorserver.Script{Models: r.answers, Windows: r.windows})
			s.StartWorker()
			settings := map[string]any{"summarizers": r.summarizers}
			if r.digest != "" {
				settings["digest"] = r.digest
			}
			for k, v := range r.budget {
				settings[k] = v
			}
			ref := s.Create(scenario.Conversation{Window: 11000, Settings: settings, Messages: scenario.Turns(6, 2000)})
			before := s.Context(ref)

			run := s.Compact(ref, runs.Request{})

			way := s.Attempts(run)
			defer func() {
				if t.Failed() {
					t.Logf("%s %s %s by %s\n%s", run.Outcome, run.ErrorKind, run.Reason, run.Facts.Summarizer, way)
				}
			}()
			if run.Outcome != r.outcome || run.ErrorKind != r.kind {
				t.Errorf("outcome %s %q, want %s %q", run.Outcome, run.ErrorKind, r.outcome, r.kind)
			}
			if r.by != "" && run.Facts.Summarizer != r.by || run.Facts.Digest != r.digests {
				t.Errorf("summary by %s (digest %t), want %s (%t)", run.Facts.Summarizer, run.Facts.Digest, r.by,
					r.digests)
			}
			if path := s.Fallbacks(run); r.path != nil && !slices.Equal(path, r.path) {
				t.Errorf("path %q\nwant %q", path, r.path)
			}
			calls := map[string]int{}
			for _, req := range s.Vendor.Requests() {
				calls[req.Model]++
			}
			for model, want := range r.calls {
				if calls[model] != want {
					t.Errorf("%d calls of %s, want %d", calls[model], model, want)
				}
			}
			noTwoRequestsAlike(t, s.Vendor.Requests(), r)
			after := s.Context(ref)
			if after[len(after)-1] != before[len(before)-1] {
				t.Errorf("the last message changed: %s", after[len(after)-1])
			}
			if r.outcome == precis.OutcomeFailed && !slices.Equal(before, after) {
				t.Errorf("a failed run changed the context")
			}
			if r.outcome == precis.OutcomeApplied && !r.digests && !strings.Contains(after[0], goodMark) {
				t.Errorf("the context begins with %s", after[0])
			}
			wantIdenticalReplay(t, s, run)
		})
	}
}

// A retry after a bad answer always differs from the request before; one after a transient failure does not.
func noTwoRequestsAlike(t *testing.T, requests []vendorserver.Request, r rung) {
	t.Helper()
	if r.path == nil || strings.Contains(r.path[0], "network") {
		return
	}
	seen := map[string]bool{}
	for _, req := range requests {
		key := req.Model + string(req.Body)
		if seen[key] {
			t.Errorf("two requests to %s are the same", req.Model)
		}
		seen[key] = true
	}
}
