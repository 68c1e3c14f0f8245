// Package draw shows runs, replays, batches and their evidence to a person at a terminal.
package draw

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
)

// Run returns a run as text, without its stages.
func Run(r wire.Run) string {
	var b strings.Builder
	var head term.Facts
	outcome := string(r.Outcome)
	if outcome == "" {
		outcome = Unfinished
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
		head.Add("summary by", WrittenBy(r))
	}
	if r.Covers.To > 0 {
		head.Add("covers", fmt.Sprintf("messages %d to %d (%d summarized), sha256 %s", r.Covers.From, r.Covers.To,
			r.Covers.Messages, r.Covers.SHA256))
	}
	if r.TokensBefore > 0 {
		head.Add("tokens", sizeWords(r))
	}
	if u := r.Usage; u.Calls > 0 {
		text := fmt.Sprintf("%s: %s tokens in (%s cached), %s out", term.Plural(u.Calls, "model call"),
			term.Count(int(u.Input)),
			term.Count(int(u.CachedInput)), term.Count(int(u.Output)))
		if u.Lost > 0 {
			text += fmt.Sprintf("; %d without an answer", u.Lost)
		}
		head.Add("usage", text)
		if len(r.Models) > 1 {
			for _, m := range r.Models {
				head.Add("", fmt.Sprintf("%s: %s, %s in, %s out", m.Model, term.Plural(m.Calls, "call"),
					term.Count(int(m.Input)),
					term.Count(int(m.Output))))
			}
		}
		head.Add("cost", Cost(r.Cost, r.Models))
	}
	head.Add("checked", Verification(r))
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
