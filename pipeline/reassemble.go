package pipeline

import (
	"context"
	"slices"
	"strings"
)

// TailValve is how far the tail is shortened after a compaction that left the context over its limit.
type TailValve string

// The valves. Each also does what the one before does.
const (
	TailValveNone     TailValve = ""
	TailValvePreviews TailValve = "previews"  // older tool results become previews
	TailValveHeadTail TailValve = "head_tail" // oversized parts keep both ends
)

// ContextInput is what a context is built from.
type ContextInput struct {
	// Live are the messages that no marker covers, and those that the active one carries: system, user info, carried,
	// tail.
	Live []Message
	// SummaryText is the text of the summary message, empty without a marker.
	SummaryText string
	// Native is the summary as the vendor compacted it; nil means that the model sees SummaryText.
	Native *NativeSummary
	// Enrichments are the current values of the live state; empty ones are left out.
	Enrichments []Enrichment
	Valve       TailValve
	// ValveUpTo is the newest message when the marker was applied: the valve changes nothing after it.
	ValveUpTo int64
	// Calibration is the trigger's at that time, for the sizes of messages; 0 means none.
	Calibration float64
	Settings    Settings
	// Window is the model's context window in tokens, 0 if unknown.
	Window int
	// Vendor is the type of API that the context is for: "anthropic", "openai", "google", "xai".
	Vendor string
	// OldRules is that of SlimInput.
	OldRules bool
}

// ContextStats are the figures of a context.
type ContextStats struct {
	// Tokens is the local estimate of all items, HistoryTokens that of the items that are not system messages.
	Tokens        int       `json:"tokens"`
	HistoryTokens int       `json:"history_tokens"`
	Trimmed       TrimStats `json:"trimmed"`
}

// Context is what the model sees.
type Context struct {
	Items []ContextItem
	Stats ContextStats
}

// BuildContext builds a context: system, user info, summary, enrichments, and the other live messages in order,
// trimmed. A summary that the vendor made comes before the user info.
//
// Stored messages are unchanged, except for what no API would accept. A call that was never answered gets a result
// saying so. A result without a call, or one that comes a step too late, becomes text. A result behind a user message
// moves up to its call, and for OpenAI also in front of another message of the agent. For Anthropic and Gemini empty
// texts are left out. All of this depends on the messages alone, so that the context only grows at its end.
//
// The summary and each enrichment are separate messages with the role user. Where a format requires alternating roles,
// its codec joins them with the following message, as separate parts.
//
// The cost is linear, except for sorting. The error is that of the context.Context, if it is done first.
func BuildContext(ctx context.Context, in ContextInput) (Context, error) {
	return interruptible(ctx, "building a context", func(w *work) Context { return buildContext(w, in) })
}

func buildContext(w *work, in ContextInput) Context {
	b := &contextBuilder{work: w, in: in, counts: tokenCounts{}}
	b.head()
	b.rest()
	b.begin()
	items, stats := trim(w, b.squeeze(b.items), in.Settings, b.counts)
	stats.Binaries += b.omitted.Binaries
	stats.SavedTokens += b.omitted.SavedTokens
	ctx := Context{Items: items, Stats: ContextStats{Trimmed: stats}}
	for _, item := range items {
		w.spend(itemBytes(item))
		n := b.counts.item(item)
		ctx.Stats.Tokens += n
		if item.Message == nil || item.Message.Role != RoleSystem {
			ctx.Stats.HistoryTokens += n
		}
	}
	return ctx
}

type contextBuilder struct {
	*work
	in    ContextInput
	items []ContextItem
	// live are the messages behind the head.
	live   []Message
	counts tokenCounts
	// omitted counts what the valve did of the work of trim.
	omitted TrimStats
}

// head adds system, user info, summary and enrichments.
func (b *contextBuilder) head() {
	var userInfo []ContextItem
	split := 0
	for ; split < len(b.in.Live); split++ {
		m := &b.in.Live[split]
		if m.Role == RoleSystem {
			b.items = append(b.items, ContextItem{Message: m})
		} else if m.Kind == KindUserInfo {
			userInfo = append(userInfo, ContextItem{Message: m})
		} else {
			break
		}
	}
	b.live = b.in.Live[split:]
	if b.in.Native != nil {
		// Vendors require what they compacted to be the first message: messages before it are refused, or not read.
		b.items = append(b.items, ContextItem{
			Made:   &Made{Role: RoleUser, Kind: KindSummary, Text: b.in.SummaryText},
			Native: b.in.Native,
		})
	}
	b.items = append(b.items, userInfo...)
	if b.in.Native == nil && strings.TrimSpace(b.in.SummaryText) != "" {
		b.made(Made{Role: RoleUser, Kind: KindSummary, Text: b.in.SummaryText})
	}
	for _, e := range sortEnrichments(b.in.Enrichments) {
		b.made(Made{Role: RoleUser, Kind: KindSynthetic, Text: enrichmentText(e, b.in.OldRules)})
	}
}

func (b *contextBuilder) made(m Made) { b.items = append(b.items, ContextItem{Made: &m}) }

// The texts in place of a missing result, and in front of a result without a call.
const (
	noResultText   = "No result was recorded for this call: it was interrupted, or is still running."
	lateResultText = "[Result of an earlier tool call that does not stand directly before it"
	beginsText     = "[The conversation begins in the middle: what came before is not part of this context.]"
)

// rest adds the live messages behind the head, in a form that an API accepts.
func (b *contextBuilder) rest() {
	fit := fitMessages(b.work, b.live, b.in.Vendor)
	var loose []string // texts to add after the results of a step
	flush := func() {
		for _, text := range loose {
			b.made(Made{Role: RoleUser, Kind: KindSynthetic, Text: text})
		}
		loose = nil
	}
	for _, i := range fit.order {
		m := &b.live[i]
		b.spend(bytesOf(*m))
		if !fit.inStep[i] {
			loose = append(loose, fit.loose[i]...)
			flush()
		}
		edits := fit.drops[i]
		switch b.in.Vendor {
		case "anthropic":
			edits = dropBlank(m, edits)
		case "google":
			edits = dropEmpty(m, edits)
		}
		if b.sendable(m, edits) {
			b.items = append(b.items, ContextItem{Message: m, Edits: edits})
		}
		for _, call := range fit.unanswered[i] {
			b.made(Made{
				Role: RoleTool, Text: noResultText, CallID: call.ID, Name: call.Name, Type: call.Type,
				IsError: true,
			})
		}
		if fit.inStep[i] {
			loose = append(loose, fit.loose[i]...)
		}
	}
	flush()
}

// begin makes sure that the first message is one that the vendor accepts as the first.
func (b *contextBuilder) begin() {
	if b.in.Vendor != "anthropic" && b.in.Vendor != "google" {
		return
	}
	for i, item := range b.items {
		if item.Made == nil && item.Message.Role == RoleSystem {
			continue
		}
		if item.Message != nil && item.Message.Role == RoleAssistant {
			first := ContextItem{Made: &Made{Role: RoleUser, Kind: KindSynthetic, Text: beginsText}}
			b.items = slices.Insert(b.items, i, first)
		}
		return
	}
}

// sendable reports whether anything is left of a message.
func (b *contextBuilder) sendable(m *Message, edits []Edit) bool {
	if len(m.Parts) == 0 {
		return b.in.Vendor != "anthropic" && b.in.Vendor != "google"
	}
	dropped := 0
	for _, e := range edits {
		if e.Content < 0 && e.Op == EditDrop {
			dropped++
		}
	}
	return dropped < len(m.Parts)
}
