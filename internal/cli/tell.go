package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/contract"
	"precis/pipeline"
)

// tell reports what became of a conversation. n is how many there are in the file.
func (c *compaction) tell(one compacted, n int) {
	r := one.Run
	head := string(r.Outcome)
	switch r.Outcome {
	case precis.OutcomeApplied:
		head = "compacted"
	case precis.OutcomeSkipped:
		head = "unchanged"
	}
	title := fmt.Sprintf("%-11s", head+":")
	if n > 1 {
		c.say("")
	}
	switch r.Outcome {
	case precis.OutcomeApplied:
		c.say("%s%s, %s tokens → %s, ≈%s tokens", title, term.Plural(one.MessagesBefore, "message"),
			term.Tokens(r.TokensBefore, r.Trigger.Estimated), term.Plural(one.MessagesAfter, "message"), term.Count(r.TokensAfter))
		if r.TokensAfter > r.TokensBefore {
			c.say("           it is larger than it was: there was too little to summarise")
		}
		c.say("summary:   %s", wroteSummary(r))
		for _, line := range whyDigest(r, c.flags.summarizer) {
			c.say("           %s", line)
		}
		c.say("covered:   messages %d to %d; %s", r.Covers.From, r.Covers.To, keptWords(one))
		if omitted := omittedBySlimming(r); omitted != "" {
			c.say("omitted:   %s", omitted)
		}
		if found := verificationWords(r); found != "" {
			c.say("checked:   %s", found)
		}
	case precis.OutcomeSkipped:
		c.say("%s%s; the context is printed as it is", title, skippedWords(r.Reason))
	default:
		c.say("%s%s", title, failedWords(r))
		if hint := hintFor(r.ErrorKind); hint != "" {
			c.say("           %s", hint)
		}
	}
	c.say("run:       %s  %s", r.ID, c.runHint(r))
	if c.flags.keep {
		c.say("kept as:   conversation %s  (precis context %s)", one.ID, one.ID)
	}
	if c.flags.summary && one.Summary != "" {
		c.say("")
		c.say("%s", term.Printable(one.Summary))
	}
}

func (c *compaction) runHint(r wire.Run) string {
	if c.s.ephemeral {
		return "(its record is gone with the stack of this call; --keep, or a stack that runs, keeps it)"
	}
	return fmt.Sprintf("(precis show %s)", r.ID)
}

// wroteSummary says who wrote the summary and how it came to that.
func wroteSummary(r wire.Run) string {
	text := r.Summarizer
	if text == string(pipeline.SummarizerSelf) && len(r.Models) == 1 {
		text += ", " + r.Models[0].Model
	}
	if r.Digest {
		text = "digest, written without a model"
	}
	var more []string
	if r.Rung != "" && r.Rung != string(contract.RungFirst) {
		more = append(more, "rung "+r.Rung)
	}
	if r.Prompt.Name != "" && !r.Digest {
		more = append(more, fmt.Sprintf("prompt %s %s", r.Prompt.Name, r.Prompt.Version))
	}
	if u := r.Usage; u.Calls > 0 {
		more = append(more, fmt.Sprintf("%s: %s tokens in, %s out", term.Plural(u.Calls, "model call"), term.Count(int(u.Input)),
			term.Count(int(u.Output))))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// whyDigest tells for each model why it did not write the summary.
func whyDigest(r wire.Run, asked string) []string {
	if !r.Digest {
		return nil
	}
	if asked == string(pipeline.SummarizerDigest) {
		return []string{"as asked for with --summarizer digest"}
	}
	reasons := notAsked(r)
	for _, s := range r.Steps {
		if s.Outcome == contract.AttemptFailed && s.Summarizer != "" && s.Next != "" {
			reasons = append(reasons, fmt.Sprintf("%s: %s, %s", s.Summarizer, s.ErrorKind, term.OneLine(s.Message)))
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"no model is configured"}
	}
	if r.Usage.Calls == 0 {
		reasons = append(
			reasons, "for a model's summary set ANTHROPIC_API_KEY or OPENAI_API_KEY, or configure a vendor")
	}
	return reasons
}

// notAsked tells which summarizers were left off the ladder, and why, as the second stage recorded it. Those with
// the same reason share a line.
func notAsked(r wire.Run) []string {
	var order []string
	who := map[string][]string{}
	add := func(name, why string) {
		why = strings.TrimPrefix(why, "it is not allowed now: ")
		if who[why] == nil {
			order = append(order, why)
		}
		who[why] = append(who[why], name)
	}
	for _, s := range r.Steps {
		var numbers contract.Numbers[struct {
			SelfReason string `json:"self_reason"`
		}, contract.SummarizerNotes]
		if s.Stage != "summarizer" || s.Outcome == contract.AttemptFailed || json.Unmarshal(s.Numbers, &numbers) != nil {
			continue
		}
		if why := numbers.Result.SelfReason; why != "" {
			add("self", why)
		}
		for _, left := range numbers.Notes.Skipped {
			add(left.Model, left.Reason)
		}
	}
	var reasons []string
	for _, why := range order {
		reasons = append(reasons, strings.Join(who[why], ", ")+": "+why)
	}
	return reasons
}

func keptWords(one compacted) string {
	kept := one.MessagesAfter - 1
	if kept <= 0 {
		return "nothing stays word for word"
	}
	return term.Plural(kept, "message") + " beside the summary"
}

// omittedBySlimming tells what of the covered messages the summarizer was not shown.
func omittedBySlimming(r wire.Run) string {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		s := r.Steps[i]
		if s.Stage != "slim" || s.Outcome == contract.AttemptFailed {
			continue
		}
		var n struct {
			Omitted, Cut int
			DroppedTools int `json:"dropped_tools"`
		}
		if json.Unmarshal(s.Numbers, &n) != nil || r.Digest {
			return ""
		}
		var parts []string
		for _, p := range []struct {
			n    int
			what string
		}{{n.DroppedTools, "of tools left out"}, {n.Omitted, "replaced by placeholders"}, {n.Cut, "cut"}} {
			if p.n > 0 {
				parts = append(parts, term.Plural(p.n, "message")+" "+p.what)
			}
		}
		if len(parts) == 0 {
			return ""
		}
		return strings.Join(parts, ", ") + " in what the summarizer read"
	}
	return ""
}

// verificationWords tell what the check of the summary against its source found.
func verificationWords(r wire.Run) string {
	var v struct {
		ConstraintsMissing     int `json:"constraints_missing"`
		UnsupportedIdentifiers int `json:"unsupported_identifiers"`
		Misattributed          int `json:"misattributed"`
	}
	if json.Unmarshal(r.Verification, &v) != nil {
		return ""
	}
	var parts []string
	if v.ConstraintsMissing > 0 {
		parts = append(parts, term.Plural(v.ConstraintsMissing, "rule")+
			" of the user's that the summary left out, appended word for word")
	}
	if v.UnsupportedIdentifiers > 0 {
		noun := "names or numbers"
		if v.UnsupportedIdentifiers == 1 {
			noun = "name or number"
		}
		parts = append(parts, term.Count(v.UnsupportedIdentifiers)+" "+noun+" not found in the source")
	}
	if v.Misattributed > 0 {
		parts = append(parts, term.Plural(v.Misattributed, "line")+" said to be the user's, which the user did not write")
	}
	return strings.Join(parts, "; ")
}

// skippedWords are the reasons for which nothing was done.
func skippedWords(reason string) string {
	switch reason {
	case "empty":
		return "there is nothing to compact: the conversation has no messages"
	case "all_protected":
		return "nothing can be summarised: all of it is what a compaction keeps"
	case "already_compacted":
		return "it is compacted already, and no message came since; --focus or another --summarizer compacts it again"
	}
	return reason
}

func failedWords(r wire.Run) string {
	text := r.Reason
	if r.ErrorKind != "" && string(r.ErrorKind) != string(r.Outcome) {
		text = fmt.Sprintf("%s: %s", r.ErrorKind, text)
	}
	return term.OneLine(text)
}

// hintFor says what a person can do about a failed run.
func hintFor(kind pipeline.ErrorKind) string {
	const orDigest = "; --set settings.digest=always takes the digest instead"
	switch kind {
	case pipeline.Auth:
		return "check the vendor's API key: `precis config` shows where it comes from" + orDigest
	case pipeline.Quota:
		return "the vendor's account has no credit left: top it up, or name another model with --summarizer" + orDigest
	case pipeline.ModelNotFound:
		return "name a model that the vendor has with --summarizer, and check the vendor's key" + orDigest
	case pipeline.RateLimited, pipeline.Overloaded, pipeline.ServerError, pipeline.Network, pipeline.Timeout:
		return "try again later, or name a second model with --summarizer" + orDigest
	case pipeline.Refused, pipeline.EmptyOutput, pipeline.MalformedOutput, pipeline.ToolCallOutput,
		pipeline.OutputTooLong,
		pipeline.NotSmaller, pipeline.InputTokensExceeded, pipeline.InputTooLarge, pipeline.BadRequest,
		pipeline.MalformedHistory:
		return "name another model with --summarizer" + orDigest
	case pipeline.BudgetExceeded:
		return "raise settings.run_time_budget_seconds or settings.run_token_budget" + orDigest
	case pipeline.NoShrink:
		return "a shorter last message, or a model with a larger window, would help"
	case pipeline.Conflict:
		return "the conversation changed meanwhile: run it again"
	case pipeline.Internal:
		return "this is a fault of precis: please report it with the output of `precis show RUN`"
	}
	return ""
}

func vendorNames(c config.Config) string {
	return strings.Join(slices.Sorted(maps.Keys(c.Vendors)), ", ")
}
