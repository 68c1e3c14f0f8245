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

// The models of a play: the agent's own, and those that only summarize. The first two take from the same list of
// answers, in the order of the calls; a case with answers for another one is asked of second.
const (
	agentModel  = "agent"
	firstModel  = "summarizer"
	secondModel = "second"
	otherModel  = "other" // that a case changes to
)

// plainWords are keys of an answer that mean the same to the scripted vendor.
var plainWords = []string{
	"text", "finish", "tool_calls", "error", "sse_error", "raw", "status", "hang", "delay_ms", "close_after_text",
	"forever", "reject_over_tokens", "validate_pairing", "require_max_tokens_between", "echo_last_prompt",
}

// answer is an answer of a script, with what the vendor itself has no word for.
type answer struct {
	vendorserver.Answer
	useVariant bool
	// countCJK makes the vendor count so many tokens for each wide char, 0: as it is used to.
	countCJK int
}

// answerOf reads an answer of the collection.
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
		case key == "plus": // belongs to the one before
		default:
			err = fmt.Errorf("unknown word %q in an answer of the script", key)
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
		return a, fmt.Errorf("an answer of the script: %w", err)
	}
	return a, nil
}

// blocksOf reads content blocks.
func blocksOf(raw json.RawMessage) ([]vendorserver.Block, error) {
	var list []struct {
		Type, Thinking, Signature string
		Content                   *string
	}
	if err := strict(raw, &list); err != nil {
		return nil, fmt.Errorf("the content of an answer: %w", err)
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

// priorSummary finds the summary that a request holds: the agent's own model sees it in its element, another one in the
// record.
var priorSummary = regexp.MustCompile(`(?s)<conversation_summary>.*?</conversation_summary>`)

// echoSummary gives back what stands in the summary before and adds to it. Every other time it gives the element around
// it as well, behind which what it adds is lost.
func echoSummary(plus string) func(vendorserver.Request) vendorserver.Answer {
	return func(r vendorserver.Request) vendorserver.Answer {
		prior := priorSummary.FindString(r.Text)
		if r.N%2 == 0 {
			prior = strings.TrimSuffix(strings.TrimPrefix(prior, summaryBegin), summaryEnd)
		}
		return vendorserver.Answer{Text: prior + plus}
	}
}

// scriptOf makes the vendor's script of a case.
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

// countWide counts as a tokenizer does that knows no words of wide chars: so many tokens for each, and four chars of
// everything else for one.
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
