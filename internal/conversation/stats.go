package conversation

import (
	"precis/internal/api/wire"
	"precis/internal/store/markers"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Stats returns the sizes of a context of the view.
func (v View) Stats(c pipeline.Context) wire.ContextStats {
	d := pipeline.EvaluateTrigger(v.TriggerInput(c), v.Settings.Settings)
	s := wire.ContextStats{
		Tokens: d.Used, Estimated: d.Estimated, Window: d.Window, WindowGuessed: d.WindowGuessed, Limit: d.Limit,
		HistoryTokens: c.Stats.HistoryTokens,
		Trimmed: wire.Trimmed{
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

// MarkerOf returns the stats of a marker, nil for nil.
func MarkerOf(m *markers.Marker) *wire.MarkerStats {
	if m == nil {
		return nil
	}
	return &wire.MarkerStats{
		Run: m.Run, CoversFrom: m.CoversFrom, CoversTo: m.CoversTo, Messages: m.CoveredMessages,
		Digest: m.Digest,
	}
}

// Meta returns the metadata with which the conversation's messages are encoded.
func (v View) Meta() transcript.Meta {
	c := v.Conversation
	return transcript.Meta{
		Format: transcript.Format(c.Format), ID: c.Ref.ID, Vendor: c.Vendor, Model: c.Model,
		System: c.System, Tools: c.Tools, Envelope: c.Envelope, MaxTokens: c.MaxOutput,
	}
}
