package eval

import (
	"context"
	"strings"

	"precis/pipeline"
)

// Policy decides what is cut when not everything fits.
type Policy string

// The policies.
const (
	// Ours is the policy of the product: max-min fair shares, the user's words first, the prior summary whole.
	Ours Policy = "ours"
	// OldestFirst drops whole messages, oldest first, as a sliding window does.
	OldestFirst Policy = "oldest-first"
	// UniformCap cuts every message to the same size, the budget divided by their number.
	UniformCap Policy = "uniform-cap"
)

// Summarizer is who writes the summary.
type Summarizer string

// The summarizers.
const (
	// Digest writes without a model. With Ours it is the product's digest, with another policy the messages themselves,
	// cut to the same budget.
	Digest Summarizer = "digest"
	// Scripted is a program in place of a model: see scripted.go.
	Scripted Summarizer = "scripted"
)

// Method is one way to compact.
type Method struct {
	Summarizer Summarizer `json:"summarizer"`
	Policy     Policy     `json:"policy"`
}

// Methods are the methods that need no model, in the order in which they are shown.
var Methods = []Method{
	{Digest, Ours},
	{Digest, OldestFirst},
	{Digest, UniformCap},
	{Scripted, Ours},
	{Scripted, OldestFirst},
	{Scripted, UniformCap},
}

// shown returns the messages as a summarizer gets them, within a budget in chars. The prior summary is whole with every
// policy.
func (p Policy) shown(ctx context.Context, source []pipeline.Message, budget int, s pipeline.Settings) (
	string, error,
) {
	if p != Ours && len(source) > 0 && source[0].Kind == pipeline.KindSummary {
		prior, err := rendered(ctx, source[0], budget)
		if err != nil {
			return "", err
		}
		prior += "\n"
		rest, err := p.cut(ctx, source[1:], budget-pipeline.Chars(prior))
		return prior + rest, err
	}
	if p != Ours {
		return p.cut(ctx, source, budget)
	}
	slimmed, err := pipeline.Slim(ctx, pipeline.SlimInput{
		Messages: source, BudgetChars: budget, ToolDropThreshold: s.ToolDropThreshold, MinUsefulChars: s.MinUsefulChars,
	})
	return slimmed.Text, err
}

// cut makes messages fit by one of the other policies. It treats the prior summary as the oldest message.
func (p Policy) cut(ctx context.Context, source []pipeline.Message, budget int) (string, error) {
	if p == UniformCap {
		return cutAlike(ctx, source, budget)
	}
	return newestThatFit(ctx, source, budget)
}

// rendered returns one message as a summarizer sees it. A limit is kept by cutting its text.
func rendered(ctx context.Context, m pipeline.Message, limit int) (string, error) {
	slimmed, err := pipeline.Slim(ctx, pipeline.SlimInput{Messages: []pipeline.Message{m}, BudgetChars: 1 << 40})
	text := strings.TrimRight(slimmed.Text, "\n")
	if err != nil || text == "" || pipeline.Chars(text) <= limit {
		return text, err
	}
	end := ""
	if at := strings.LastIndex(text, "\n</"); at >= 0 {
		text, end = text[:at], text[at:]
	}
	room := limit - pipeline.Chars(end)
	if room <= 0 {
		return "", nil
	}
	return pipeline.Truncate(text, room) + end, nil
}

// newestThatFit keeps the newest messages whole, and as much of the one before them as there is room for.
func newestThatFit(ctx context.Context, source []pipeline.Message, budget int) (string, error) {
	var kept []string
	for i := len(source) - 1; i >= 0 && budget > 1; i-- {
		text, err := rendered(ctx, source[i], budget-1)
		if err != nil {
			return "", err
		}
		if text == "" {
			continue
		}
		kept = append(kept, text)
		budget -= pipeline.Chars(text) + 1
	}
	var b strings.Builder
	for i := len(kept) - 1; i >= 0; i-- {
		b.WriteString(kept[i] + "\n")
	}
	return b.String(), nil
}

// cutAlike cuts every message to the same size.
func cutAlike(ctx context.Context, source []pipeline.Message, budget int) (string, error) {
	share := budget/max(len(source), 1) - 1
	var b strings.Builder
	for _, m := range source {
		text, err := rendered(ctx, m, share)
		if err != nil {
			return "", err
		}
		if text != "" {
			b.WriteString(text + "\n")
		}
	}
	return b.String(), nil
}
