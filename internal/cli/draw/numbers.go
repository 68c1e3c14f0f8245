package draw

import (
	"encoding/json"
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/cli/term"
	"precis/internal/contract"
)

// numberWords returns the key figures of an attempt at a stage. estimated reports whether the size of the context
// before is an estimate.
func numberWords(s wire.RunStep, estimated bool) string {
	words, known := stageWords[contract.Stage(s.Stage)]
	if !known {
		return ""
	}
	return strings.Join(words(s, estimated), "; ")
}

// stageWords returns the most important figures of an attempt, by stage.
var stageWords = map[contract.Stage]func(s wire.RunStep, estimated bool) []string{
	contract.StageTrigger: triggerNumbers, contract.StageSummarizer: summarizerNumbers,
	contract.StagePartition: partitionNumbers, contract.StageSlim: slimNumbers,
	contract.StageSummarize: summaryNumbers, contract.StageReassemble: reassembleNumbers,
}

// figures collects phrases.
type figures []string

func (f *figures) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func triggerNumbers(s wire.RunStep, _ bool) []string {
	var n contract.TriggerNumbers
	if json.Unmarshal(s.Numbers, &n) != nil || n.Result.Decision.Limit == 0 {
		return nil
	}
	d := n.Result.Decision
	return []string{fmt.Sprintf("%s used, limit %s of %s", term.Tokens(d.Used, d.Estimated), term.Count(d.Limit),
		term.Count(d.Window))}
}

func summarizerNumbers(s wire.RunStep, _ bool) []string {
	var n contract.SummarizerNumbers
	if json.Unmarshal(s.Numbers, &n) != nil || len(n.Result.Ladder) == 0 {
		return nil
	}
	var names []string
	for _, summarizer := range n.Result.Ladder {
		names = append(names, summarizer.String())
	}
	return []string{strings.Join(names, ", then ")}
}

func partitionNumbers(s wire.RunStep, _ bool) []string {
	var n contract.PartitionNumbers
	switch {
	case json.Unmarshal(s.Numbers, &n) != nil:
		return nil
	case n.Result.Nothing != "":
		return []string{n.Result.Nothing}
	case s.Outcome == contract.AttemptFailed:
		return nil
	}
	p := n.Result
	return []string{fmt.Sprintf("%d to summarize (%d to %d), %d stay", p.Summarize, p.CoversFrom, p.CoversTo, p.Tail)}
}

func slimNumbers(s wire.RunStep, _ bool) []string {
	var n contract.SlimNumbers
	if json.Unmarshal(s.Numbers, &n) != nil {
		return nil
	}
	var f figures
	if n.Result.Chars > 0 {
		f.add("%s chars, ≈%s tokens", term.Count(n.Result.Chars), term.Count(n.Result.Tokens))
	}
	if left := n.Result.Omitted + n.Result.DroppedTools; left > 0 {
		f.add("%d left out", left)
	}
	if n.Result.Cut > 0 {
		f.add("%d cut", n.Result.Cut)
	}
	return f
}

func summaryNumbers(s wire.RunStep, _ bool) []string {
	var n contract.SummarizeNumbers
	if json.Unmarshal(s.Numbers, &n) != nil {
		return nil
	}
	var f figures
	if n.Result.InputTokens > 0 {
		f.add("%s tokens in, %s out", term.Count(n.Result.InputTokens), term.Count(n.Result.OutputTokens))
	}
	if n.Result.Tokens > 0 {
		f.add("summary ≈%s tokens", term.Count(n.Result.Tokens))
	}
	if n.Notes.AnswerReused {
		f.add("answer of an earlier attempt")
	}
	return f
}

func reassembleNumbers(s wire.RunStep, estimated bool) []string {
	var n contract.ReassembleNumbers
	if json.Unmarshal(s.Numbers, &n) != nil {
		return nil
	}
	var f figures
	if n.Result.TokensAfter > 0 {
		f.add("%s → ≈%s tokens, limit %s", term.Tokens(n.Result.TokensBefore, estimated),
			term.Count(n.Result.TokensAfter), term.Count(n.Result.Limit))
	}
	if n.Result.Kind != "" {
		f.add("%s", n.Result.Kind)
	}
	return f
}
