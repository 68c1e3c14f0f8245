package faults

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"precis/internal/testkit/vendorserver"
)

// The models of a play: the agent's own, and those that only summarize. The first two share one list of answers, in the
// order of the model calls. A case with second_answers lists the model second for them.
const (
	agentModel  = "agent"
	firstModel  = "summarizer"
	secondModel = "second"
	otherModel  = "other" // a case switches to it
)

// plainWords are keys of an answer with the same meaning in a vendorserver.Script.
var plainWords = []string{
	"text", "finish", "tool_calls", "error", "sse_error", "raw", "status", "hang", "delay_ms", "close_after_text",
	"forever", "reject_over_tokens", "validate_pairing", "require_max_tokens_between", "echo_last_prompt",
}

// answer is an answer of a case: one for the scripted vendor, and what a vendorserver.Script cannot say.
type answer struct {
	vendorserver.Answer
	useVariant bool
	// countCJK is the number of tokens that the vendor counts for each wide char, 0 for its usual count.
	countCJK int
}

// answerOf reads an answer of a case.
func answerOf(raw map[string]json.RawMessage) (answer, error) {
	var a answer
	plain := map[string]json.RawMessage{}
	for key, value := range raw {
		var err error
		switch {
		case slices.Contains(plainWords, key):
			plain[key] = value
		case key == "content":
			a.Content, err = blocksOf(value)
		case key == "then_text":
			err = json.Unmarshal(value, &a.Text)
		case key == "use_variant":
			err = json.Unmarshal(value, &a.useVariant)
		case key == "count_cjk_as":
			err = json.Unmarshal(value, &a.countCJK)
		case key == "echo_marks":
			a.EchoMatch = `MARK-\d+`
		case key == "echo_previous_summary":
			var plus string
			if err = json.Unmarshal(raw["plus"], &plus); err == nil {
				a.Func = echoSummary(plus)
			}
		case key == "plus": // belongs to echo_previous_summary
		default:
			err = fmt.Errorf("unknown key %q in an answer", key)
		}
		if err != nil {
			return a, err
		}
	}
	body, err := json.Marshal(plain)
	if err != nil {
		return a, err
	}
	if err := strict(body, &a.Answer); err != nil {
		return a, fmt.Errorf("read an answer: %w", err)
	}
	return a, nil
}

// blocksOf reads the content blocks of an answer.
func blocksOf(raw json.RawMessage) ([]vendorserver.Block, error) {
	var list []struct {
		Type, Thinking, Signature string
		Content                   *string
	}
	if err := strict(raw, &list); err != nil {
		return nil, fmt.Errorf("read the content of an answer: %w", err)
	}
	var out []vendorserver.Block
	for _, b := range list {
		block := vendorserver.Block{Type: b.Type, Thinking: b.Thinking, Signature: b.Signature}
		if b.Content != nil {
			block.Text = *b.Content
		}
		out = append(out, block)
	}
	return out, nil
}

// priorSummary matches the previous summary in a request, to the agent's own model or to another one.
var priorSummary = regexp.MustCompile(`(?s)<conversation_summary>.*?</conversation_summary>`)

// echoSummary answers with the previous summary plus a text. Every second answer also repeats the element around the
// summary.
func echoSummary(plus string) func(vendorserver.Request) vendorserver.Answer {
	return func(r vendorserver.Request) vendorserver.Answer {
		prior := priorSummary.FindString(r.Text)
		if r.N%2 == 0 {
			prior = strings.TrimSuffix(strings.TrimPrefix(prior, summaryBegin), summaryEnd)
		}
		return vendorserver.Answer{Text: prior + plus}
	}
}

// scriptOf builds the vendor's script for a case.
func scriptOf(f fault, variant int) (vendorserver.Script, error) {
	s := vendorserver.Script{Models: map[string][]vendorserver.Answer{}}
	cjk := 0
	list := func(raw []map[string]json.RawMessage) ([]vendorserver.Answer, error) {
		out := []vendorserver.Answer{}
		for _, r := range raw {
			a, err := answerOf(r)
			if err == nil && a.useVariant {
				a, err = answerOf(f.AnswerVariants[variant])
			}
			if err != nil {
				return nil, err
			}
			cjk = max(cjk, a.countCJK)
			out = append(out, a.Answer)
		}
		return out, nil
	}
	var err error
	if s.Answers, err = list(f.Answers); err != nil {
		return s, err
	}
	if f.SecondAnswers != nil {
		if s.Models[secondModel], err = list(f.SecondAnswers); err != nil {
			return s, err
		}
	}
	if cjk > 0 {
		s.CountTokens = func(text string) int { return countWide(text, cjk) }
	}
	return s, nil
}

// countWide counts the given number of tokens for each wide char, and one token for four other chars.
func countWide(text string, each int) int {
	wide, others := 0, 0
	for _, r := range text {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			wide++
		} else {
			others++
		}
	}
	return wide*each + others/4
}
