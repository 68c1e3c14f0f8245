package pipeline

import (
	"slices"
	"strings"
)

// TailValve is how far the tail is squeezed after a compaction that left the context over its limit.
type TailValve string

// The valves, each doing what the one before does as well.
const (
	TailValveNone     TailValve = ""
	TailValvePreviews TailValve = "previews"  // older tool results become previews
	TailValveHeadTail TailValve = "head_tail" // oversized parts keep their two ends
)

// ContextInput is what a context is made of.
type ContextInput struct {
	// Live is what no marker covers, and what the active one carries: system, user info, carried, tail.
	Live []Message
	// SummaryText is the text of the summary message, empty without a marker.
	SummaryText string
	// Native is the summary as the vendor compacted it itself, nil: SummaryText is what the model sees.
	Native *NativeSummary
	// Enrichments are the current values; they are left out where they are empty.
	Enrichments []Enrichment
	Valve       TailValve
	// ValveUpTo is the newest message when the marker was applied: the valve touches nothing after it.
	ValveUpTo int64
	// Calibration is the trigger's at that time, for the sizes of messages; 0: none.
	Calibration float64
	Settings    Settings
	// Window is the model's context window in tokens, 0 when unknown.
	Window int
	// Vendor is the type of API that the context is for: "anthropic", "openai", "google", "xai".
	Vendor string
}

// ContextStats are the figures of a context.
type ContextStats struct {
	// Tokens is the local estimate of all items, HistoryTokens of those that are not system messages.
	Tokens        int       `json:"tokens"`
	HistoryTokens int       `json:"history_tokens"`
	Trimmed       TrimStats `json:"trimmed"`
}

// Context is what the model sees.
type Context struct {
	Items []ContextItem
	Stats ContextStats
}

// BuildContext puts a context together: system, user info, summary, enrichments, and the rest of what is
// live in its order, trimmed. A summary that the vendor itself made comes before the user info.
//
// Stored messages come back as they are, except for what no API would take: a call that was never answered
// gets a result that says so, a result whose call is not there, or comes a step too late, becomes text, a
// result behind a message of the user's moves up to its call, for OpenAI in front of another message
// of the agent's as well, and for Anthropic and Gemini empty texts are left out. All of this depends on the messages
// alone, so that the context only ever grows at its end.
//
// The summary and each enrichment are messages of their own, of role user; where a format wants roles to
// alternate its codec joins them with the message that follows, as parts of their own.
func BuildContext(in ContextInput) Context {
	b := &contextBuilder{in: in, counts: tokenCounts{}}
	b.head()
	b.rest()
	b.begin()
	items, stats := trim(b.squeeze(b.items), in.Settings, b.counts)
	stats.Binaries += b.omitted.Binaries
	stats.SavedTokens += b.omitted.SavedTokens
	ctx := Context{Items: items, Stats: ContextStats{Trimmed: stats}}
	for _, item := range items {
		n := b.counts.item(item)
		ctx.Stats.Tokens += n
		if item.Message == nil || item.Message.Role != RoleSystem {
			ctx.Stats.HistoryTokens += n
		}
	}
	return ctx
}

type contextBuilder struct {
	in    ContextInput
	items []ContextItem
	// live are the messages behind the head.
	live   []Message
	counts tokenCounts
	// omitted is what the valve did of Trim's work.
	omitted TrimStats
}

// head puts system, user info, summary and enrichments in front.
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
		b.made(Made{Role: RoleUser, Kind: KindSynthetic, Text: enrichmentText(e)})
	}
}

func (b *contextBuilder) made(m Made) { b.items = append(b.items, ContextItem{Made: &m}) }

// The texts in place of a missing result, and in front of a result without a call.
const (
	noResultText   = "No result was recorded for this call: it was interrupted, or is still running."
	lateResultText = "[Result of an earlier tool call that does not stand directly before it"
	beginsText     = "[The conversation begins in the middle: what came before is not part of this context.]"
)

// rest puts the live messages behind the head, made fit for an API.
func (b *contextBuilder) rest() {
	fit := fitMessages(b.live, b.in.Vendor)
	var loose []string // texts that wait for the end of a step's results
	flush := func() {
		for _, text := range loose {
			b.made(Made{Role: RoleUser, Kind: KindSynthetic, Text: text})
		}
		loose = nil
	}
	for _, i := range fit.order {
		m := &b.live[i]
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

// begin makes sure that the first message is one that may be first.
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
