package draw

import (
	"encoding/json"
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/contract"
	"precis/pipeline"
)

// WrittenBy returns who wrote the summary, with the rung, the prompt and the model calls.
func WrittenBy(r wire.Run) string {
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
		more = append(more, fmt.Sprintf("%s: %s tokens in, %s out", term.Plural(u.Calls, "model call"),
			term.Count(int(u.Input)), term.Count(int(u.Output))))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// WhyDigest returns for each model why it did not write the summary, nil if the summary is not a digest. asked is the
// value of --summarizer.
func WhyDigest(r wire.Run, asked string) []string {
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

// selfDenied begins the recorded reason why the agent's own model was not allowed. What follows is the cause, which
// other summarizers may share. The record holds the reason as one text.
const selfDenied = "it is not allowed now: "

// notAsked returns which summarizers were left off the ladder, and why, as the second stage recorded it. Summarizers
// with the same reason share a line.
func notAsked(r wire.Run) []string {
	var order []string
	who := map[string][]string{}
	add := func(name, why string) {
		if who[why] == nil {
			order = append(order, why)
		}
		who[why] = append(who[why], name)
	}
	for _, s := range r.Steps {
		var numbers contract.SummarizerNumbers
		if s.Stage != string(contract.StageSummarizer) || s.Outcome == contract.AttemptFailed ||
			json.Unmarshal(s.Numbers, &numbers) != nil {
			continue
		}
		if why := numbers.Result.SelfReason; why != "" {
			add(string(pipeline.SummarizerSelf), strings.TrimPrefix(why, selfDenied))
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

// Omitted returns how much of the covered messages the summarizer did not see, "" if it saw all.
func Omitted(r wire.Run) string {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		s := r.Steps[i]
		if s.Stage != string(contract.StageSlim) || s.Outcome == contract.AttemptFailed {
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

// Verification returns what the check of the summary against its source found, "" if nothing.
func Verification(r wire.Run) string {
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
		parts = append(parts, term.Plural(v.Misattributed, "line")+
			" attributed to the user, which the user did not write")
	}
	return strings.Join(parts, "; ")
}
