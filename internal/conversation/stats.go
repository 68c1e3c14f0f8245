package conversation

import (
	"precis/internal/store"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Stats are the figures of a context, in the form of the HTTP API. Sizes are in tokens.
type Stats struct {
	// Tokens is what the next request will hold, system prompt and tools included where they are known;
	// Estimated says that the figure is local and not the server's.
	Tokens    int  `json:"tokens"`
	Estimated bool `json:"estimated"`
	// Window is the model's; WindowGuessed says that it is a default, since the model is not known.
	Window        int  `json:"window"`
	WindowGuessed bool `json:"window_guessed"`
	// Limit is where an automatic compaction starts.
	Limit int `json:"limit"`
	// Fraction is Tokens of Window, from 0; Nudge says that a person is to be told that a compaction is due.
	Fraction float64 `json:"fraction"`
	Nudge    bool    `json:"nudge"`
	// HistoryTokens leaves system prompt and tools out.
	HistoryTokens int     `json:"history_tokens"`
	Trimmed       Trimmed `json:"trimmed"`
	// Marker is the compaction that counts, nil: the full history.
	Marker *MarkerStats `json:"marker"`
	// Prepared is the run whose summary waits to take effect, nil: none.
	Prepared *string `json:"prepared"`
}

// Trimmed counts what was left out of a context without a summary.
type Trimmed struct {
	Binaries     int `json:"binaries"`
	ToolResults  int `json:"tool_results"`
	SavedTokens  int `json:"saved_tokens"`
	DroppedTurns int `json:"dropped_turns"`
}

// MarkerStats tell of the compaction that counts.
type MarkerStats struct {
	// Run is "" for one that the agent did itself or that was imported.
	Run string `json:"run"`
	// CoversFrom and CoversTo are message numbers, Messages how many of them it summarized.
	CoversFrom int64 `json:"covers_from"`
	CoversTo   int64 `json:"covers_to"`
	Messages   int   `json:"messages"`
	Digest     bool  `json:"digest"`
}

// Stats measures a context of the view.
func (v View) Stats(c pipeline.Context) Stats {
	d := pipeline.EvaluateTrigger(v.TriggerInput(c), v.Settings)
	s := Stats{
		Tokens: d.Used, Estimated: d.Estimated, Window: d.Window, WindowGuessed: d.WindowGuessed, Limit: d.Limit,
		HistoryTokens: c.Stats.HistoryTokens,
		Trimmed: Trimmed{
			Binaries: c.Stats.Trimmed.Binaries, ToolResults: c.Stats.Trimmed.ToolResults,
			SavedTokens: c.Stats.Trimmed.SavedTokens, DroppedTurns: c.Stats.Trimmed.DroppedTurns,
		},
		Marker: MarkerOf(v.Marker),
	}
	s.Fraction = float64(s.Tokens) / float64(s.Window)
	s.Nudge = s.Fraction >= v.Settings.NudgeFraction
	if v.Prepared != nil {
		s.Prepared = &v.Prepared.Run
	}
	return s
}

// MarkerOf tells of a marker, nil of none.
func MarkerOf(m *store.Marker) *MarkerStats {
	if m == nil {
		return nil
	}
	return &MarkerStats{
		Run: m.Run, CoversFrom: m.CoversFrom, CoversTo: m.CoversTo, Messages: m.CoveredMessages,
		Digest: m.Digest,
	}
}

// Meta is what stands beside the conversation's messages when they are written out.
func (v View) Meta() transcript.Meta {
	c := v.Conversation
	return transcript.Meta{
		Format: transcript.Format(c.Format), ID: c.Ref.ID, Vendor: c.Vendor, Model: c.Model,
		System: c.System, Tools: c.Tools, Envelope: c.Envelope, MaxTokens: c.MaxOutput,
	}
}
