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

// numberWords are the key figures of an attempt, by its stage. estimated says that the context's size before is an
// estimate.
func numberWords(s wire.RunStep, estimated bool) string {
	words, known := stageWords[contract.Stage(s.Stage)]
	if !known {
		return ""
	}
	return strings.Join(words(s, estimated), "; ")
}

// stageWords has the figures of each stage that are worth a person's attention.
var stageWords = map[contract.Stage]func(s wire.RunStep, estimated bool) []string{
	contract.StageTrigger: triggerNumbers, contract.StageSummarizer: summarizerNumbers,
	contract.StagePartition: partitionNumbers, contract.StageSlim: slimNumbers,
	contract.StageSummarize: summaryNumbers, contract.StageReassemble: reassembleNumbers,
}

// figures collects phrases.
type figures []string

func (f *figures) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func triggerNumbers(s wire.RunStep, _ bool) []string {
	var n struct {
		Decision *struct {
			Used, Limit, Window int
			Estimated           bool
		}
	}
	if json.Unmarshal(s.Numbers, &n) != nil || n.Decision == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s used, limit %s of %s", term.Tokens(n.Decision.Used, n.Decision.Estimated),
		term.Count(n.Decision.Limit), term.Count(n.Decision.Window))}
}

func summarizerNumbers(s wire.RunStep, _ bool) []string {
	var n struct{ Ladder []pipeline.Summarizer }
	if json.Unmarshal(s.Numbers, &n) != nil || len(n.Ladder) == 0 {
		return nil
	}
	var names []string
	for _, summarizer := range n.Ladder {
		names = append(names, summarizer.String())
	}
	return []string{strings.Join(names, ", then ")}
}

func partitionNumbers(s wire.RunStep, _ bool) []string {
	var n struct {
		Nothing         string
		Summarize, Tail int
		CoversFrom      int64 `json:"covers_from"`
		CoversTo        int64 `json:"covers_to"`
	}
	switch {
	case json.Unmarshal(s.Numbers, &n) != nil:
		return nil
	case n.Nothing != "":
		return []string{n.Nothing}
	case s.Outcome == contract.AttemptFailed:
		return nil
	}
	return []string{fmt.Sprintf("%d to summarise (%d to %d), %d stay", n.Summarize, n.CoversFrom, n.CoversTo, n.Tail)}
}

func slimNumbers(s wire.RunStep, _ bool) []string {
	var n struct {
		Chars, Tokens, Omitted, Cut int
		DroppedTools                int `json:"dropped_tools"`
	}
	if json.Unmarshal(s.Numbers, &n) != nil {
		return nil
	}
	var f figures
	if n.Chars > 0 {
		f.add("%s chars, ≈%s tokens", term.Count(n.Chars), term.Count(n.Tokens))
	}
	if left := n.Omitted + n.DroppedTools; left > 0 {
		f.add("%d left out", left)
	}
	if n.Cut > 0 {
		f.add("%d cut", n.Cut)
	}
	return f
}

func summaryNumbers(s wire.RunStep, _ bool) []string {
	var n struct {
		Tokens       int
		InputTokens  int  `json:"input_tokens"`
		OutputTokens int  `json:"output_tokens"`
		Reused       bool `json:"answer_reused"`
	}
	if json.Unmarshal(s.Numbers, &n) != nil {
		return nil
	}
	var f figures
	if n.InputTokens > 0 {
		f.add("%s tokens in, %s out", term.Count(n.InputTokens), term.Count(n.OutputTokens))
	}
	if n.Tokens > 0 {
		f.add("summary ≈%s tokens", term.Count(n.Tokens))
	}
	if n.Reused {
		f.add("answer of an earlier attempt")
	}
	return f
}

func reassembleNumbers(s wire.RunStep, estimated bool) []string {
	var n struct {
		TokensBefore int `json:"tokens_before"`
		TokensAfter  int `json:"tokens_after"`
		Limit        int
		Kind         pipeline.ErrorKind
	}
	if json.Unmarshal(s.Numbers, &n) != nil {
		return nil
	}
	var f figures
	if n.TokensAfter > 0 {
		f.add("%s → ≈%s tokens, limit %s", term.Tokens(n.TokensBefore, estimated), term.Count(n.TokensAfter),
			term.Count(n.Limit))
	}
	if n.Kind != "" {
		f.add("%s", n.Kind)
	}
	return f
}
