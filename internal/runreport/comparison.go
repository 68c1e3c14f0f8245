package runreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/config"
	"precis/internal/store"
	"precis/pipeline"
)

// Comparison is what a replay found. One from the record says whether everything came out as it was; a live one puts
// the two summaries side by side.
type Comparison struct {
	// Live says that the models were asked anew.
	Live bool `json:"live"`

	// Identical says that every stage and the context came out byte for byte; of one from the record only.
	Identical bool `json:"identical"`
	// Steps and Answers count the stages that were done again and the answers that were read from the record.
	Steps   int `json:"steps,omitempty"`
	Answers int `json:"answers,omitempty"`
	// Context is the new context, nil where the run had none.
	Context *ComparedContext `json:"context,omitempty"`
	// First is where the two part, nil when they do not. Differences counts that and all that followed from it.
	First       *Difference `json:"first,omitempty"`
	Differences int         `json:"differences,omitempty"`

	// Changes are what the live one was asked to do otherwise.
	Changes *Changes `json:"changes,omitempty"`
	// Original and Replay are the two, side by side; of a live one only.
	Original *Side `json:"original,omitempty"`
	Replay   *Side `json:"replay,omitempty"`
	// OnlyOriginal and OnlyReplay are the facts of the summarized messages that one summary holds and the other does
	// not; Both counts those that stand in both.
	OnlyOriginal []Fact `json:"only_original,omitempty"`
	OnlyReplay   []Fact `json:"only_replay,omitempty"`
	Both         int    `json:"facts_in_both,omitempty"`
}

// Fact is something that the summarized messages say: a limit that the user set, a path, a name, a number.
type Fact struct {
	Kind pipeline.MentionKind `json:"kind"`
	Text string               `json:"text"`
	// Message is the number of the message that said it first.
	Message int64 `json:"message"`
}

// FactsOf gives facts in their outer form.
func FactsOf(list []pipeline.Mention) []Fact {
	var out []Fact
	for _, f := range list {
		out = append(out, Fact{f.Kind, f.Text, f.Seq})
	}
	return out
}

// ComparedContext is the context that a run wrote, and whether the replay wrote the same bytes.
type ComparedContext struct {
	Identical bool `json:"identical"`
	// SHA256 is that of the replay's; Bytes its size.
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// Difference is one thing that came out otherwise than the record has it.
type Difference struct {
	Stage string `json:"stage"`
	// Call is that of the step, Rung and Summarizer as well.
	Call       int    `json:"call"`
	Rung       string `json:"rung,omitempty"`
	Summarizer string `json:"summarizer,omitempty"`
	// What says what differs: a figure of the stage's result such as "decision.limit", what it wrote ("plan", "input",
	// "answer", "summary", "context"…), "error", "outcome", or "step" where the two walked on differently.
	What string `json:"what"`
	// At is the byte at which two texts part, Message the line of a context that it is in, from 1; 0 for figures.
	At      int `json:"at,omitempty"`
	Message int `json:"message,omitempty"`
	// Recorded and Replayed are the two, texts cut around the place.
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

// Changes are what a live replay does otherwise than the run that it repeats; zero fields are as they were.
type Changes struct {
	// Summarizer is a list such as "self,openai/NAME".
	Summarizer string `json:"summarizer,omitempty"`
	Prompt     string `json:"prompt,omitempty"`
	// MaxChars bounds the summarizer's rendered input, in chars.
	MaxChars int    `json:"max_chars,omitempty"`
	Focus    string `json:"focus,omitempty"`
}

// Side is one of two runs that are compared. Sizes are in tokens.
type Side struct {
	Run        string             `json:"run"`
	Outcome    store.Outcome      `json:"outcome"`
	ErrorKind  pipeline.ErrorKind `json:"error_kind"`
	Reason     string             `json:"reason,omitempty"`
	Summarizer string             `json:"summarizer"`
	Prompt     Prompt             `json:"prompt"`
	Digest     bool               `json:"digest"`
	Covers     Covers             `json:"covers"`
	// TokensBefore and TokensAfter are of the whole context, SummaryTokens of the summary.
	TokensBefore  int   `json:"tokens_before"`
	TokensAfter   int   `json:"tokens_after"`
	SummaryTokens int   `json:"summary_tokens"`
	Usage         Usage `json:"usage"`
	// Models are the same calls by model, Cost what they cost by the prices that are configured now, nil: none is.
	Models       []ModelUsage    `json:"models"`
	Cost         *Cost           `json:"cost"`
	Verification json.RawMessage `json:"verification"`
	// MS is the time that its steps took, in milliseconds.
	MS int64 `json:"ms"`
	// Sections are those of the summary, in order.
	Sections []pipeline.Section `json:"sections,omitempty"`
}

// Priced is the comparison with what both runs cost.
func (c *Comparison) Priced(prices map[string]config.Price) *Comparison {
	if c == nil || !c.Live {
		return c
	}
	for _, s := range []*Side{c.Original, c.Replay} {
		if s != nil {
			s.Cost = CostOf(s.Models, prices)
		}
	}
	return c
}

// LoadComparison reads what a replay found; nil while it has not ended, and for a run that is no replay. One that was
// pruned or deleted is nil too.
func LoadComparison(ctx context.Context, s *store.Store, r store.Run) (*Comparison, error) {
	if r.Replay.Comparison == "" {
		return nil, nil
	}
	data, err := s.GetArtifact(ctx, r.Ref.Tenant, r.Replay.Comparison)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c Comparison
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("read the comparison of run %s: %w", r.Ref.ID, err)
	}
	return &c, nil
}

// ChangesOf tells what a live replay does otherwise than its original; nil: nothing.
func ChangesOf(original, replay store.Run) *Changes {
	var c Changes
	if replay.Summarizer != original.Summarizer {
		c.Summarizer = replay.Summarizer
	}
	if replay.Prompt != original.Prompt {
		c.Prompt = replay.Prompt
	}
	if replay.Focus != original.Focus {
		c.Focus = replay.Focus
	}
	var was, is pipeline.Settings
	if json.Unmarshal(object(original.Settings), &was) == nil && json.Unmarshal(object(replay.Settings), &is) == nil &&
		is.MaxPromptChars != was.MaxPromptChars {
		c.MaxChars = is.MaxPromptChars
	}
	if c == (Changes{}) {
		return nil
	}
	return &c
}

// SideOf is a run as one of two that are compared, with the summary that it wrote.
func SideOf(r store.Run, summary string) *Side {
	s := &Side{
		Run: r.Ref.ID, Outcome: r.Outcome, ErrorKind: r.ErrorKind, Reason: r.Reason, Summarizer: r.Facts.Summarizer,
		Prompt: Prompt{Name: r.Facts.PromptName, Version: r.Facts.PromptVersion}, Digest: r.Facts.Digest,
		TokensBefore: r.Facts.TokensBefore, TokensAfter: r.Facts.TokensAfter, Usage: usageOf(r.Usage),
		Models: ModelsOf(r.Models), Verification: object(r.Facts.Verification), Sections: pipeline.Sections(summary),
	}
	if summary != "" {
		s.SummaryTokens = pipeline.EstimateText(summary)
	}
	if r.Facts.CoversTo > 0 {
		s.Covers = Covers{
			From: r.Facts.CoversFrom, To: r.Facts.CoversTo, Messages: r.Facts.CoveredMessages,
			SHA256: r.Facts.CoveredChain.String(),
		}
	}
	for _, step := range r.Steps {
		s.MS += step.Took.Milliseconds()
	}
	return s
}
