package runreport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// FactsOf returns facts in the form of the HTTP API.
func FactsOf(list []pipeline.Mention) []wire.RunFact {
	var out []wire.RunFact
	for _, f := range list {
		out = append(out, wire.RunFact{Kind: f.Kind, Text: f.Text, Message: f.Seq})
	}
	return out
}

// PricedComparison returns c with the cost of both runs. c may be nil.
func PricedComparison(c *wire.RunComparison, prices map[string]config.Price) *wire.RunComparison {
	if c == nil || !c.Live {
		return c
	}
	for _, s := range []*wire.RunSide{c.Original, c.Replay} {
		if s != nil {
			s.Cost = CostOf(s.Models, prices)
		}
	}
	return c
}

// LoadComparison returns the comparison of a replay. It returns nil for a run that is not a replay, before the replay
// has ended, and if the comparison was pruned or deleted.
func LoadComparison(ctx context.Context, s *store.Store, r runs.Run) (*wire.RunComparison, error) {
	if r.Replay.Comparison == "" {
		return nil, nil
	}
	data, err := s.Artifacts.Get(ctx, r.Ref.Tenant, r.Replay.Comparison)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c wire.RunComparison
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("read the comparison of run %s: %w", r.Ref.ID, err)
	}
	return &c, nil
}

// ChangesOf returns the changes that a live replay was requested with, nil if there are none.
func ChangesOf(original, replay runs.Run) *wire.RunChanges {
	var c wire.RunChanges
	if replay.Summarizer != original.Summarizer {
		c.Summarizer = replay.Summarizer
	}
	if replay.Prompt != original.Prompt {
		c.Prompt = replay.Prompt
	}
	if replay.Focus != original.Focus {
		c.Focus = replay.Focus
	}
	var was, is config.Settings
	if json.Unmarshal(object(original.Settings), &was) == nil && json.Unmarshal(object(replay.Settings), &is) == nil &&
		is.MaxPromptChars != was.MaxPromptChars {
		c.MaxChars = is.MaxPromptChars
	}
	if c == (wire.RunChanges{}) {
		return nil
	}
	return &c
}

// SideOf returns a run with its summary as one side of a comparison.
func SideOf(r runs.Run, summary string) *wire.RunSide {
	s := &wire.RunSide{
		Run: r.Ref.ID, Outcome: r.Outcome, ErrorKind: r.ErrorKind, Reason: r.Reason, Summarizer: r.Facts.Summarizer,
		Prompt: wire.RunPrompt{Name: r.Facts.PromptName, Version: r.Facts.PromptVersion}, Digest: r.Facts.Digest,
		TokensBefore: r.Facts.TokensBefore, TokensAfter: r.Facts.TokensAfter, Usage: usageOf(r.Usage),
		Models: ModelsOf(r.Models), Verification: object(r.Facts.Verification), Sections: sectionsOf(summary),
	}
	if summary != "" {
		s.SummaryTokens = pipeline.EstimateText(summary)
	}
	if r.Facts.CoversTo > 0 {
		s.Covers = wire.RunCovers{
			From: r.Facts.CoversFrom, To: r.Facts.CoversTo, Messages: r.Facts.CoveredMessages,
			SHA256: r.Facts.CoveredChain.String(),
		}
	}
	for _, step := range r.Attempts {
		s.MS += step.Took.Milliseconds()
	}
	return s
}

func sectionsOf(summary string) []wire.Section {
	var out []wire.Section
	for _, s := range pipeline.Sections(summary) {
		out = append(out, wire.Section(s))
	}
	return out
}
