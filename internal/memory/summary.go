package memory

import (
	"context"
	"fmt"
	"time"

	"precis/internal/store"
)

// Summary is the summary that a conversation's context starts from.
type Summary struct {
	// Text is the whole summary message; empty if only its vendor can
	// read it.
	Text string `json:"text"`
	// Marker is the compaction's marker, CoversTo the last message that the summary stands for.
	Marker   string `json:"marker"`
	CoversTo int64  `json:"covers_to"`
	// Digest says that no model wrote it.
	Digest  bool      `json:"digest"`
	Applied time.Time `json:"applied"`
}

// LastSummary returns the summary that the context starts from. Without one the error is store.ErrNotFound.
func (m Memory) LastSummary(ctx context.Context, ref store.ConversationRef) (Summary, error) {
	c, _, err := m.open(ctx, ref)
	if err != nil {
		return Summary{}, err
	}
	for id := c.ActiveMarker; id != ""; {
		marker, err := m.Store.Markers.Get(ctx, ref, id)
		if err != nil {
			return Summary{}, err
		}
		if marker.Summary == "" { // the marker only shortens the tail
			id = marker.Base
			continue
		}
		text, err := m.Store.Artifacts.Get(ctx, ref.Tenant, marker.Summary)
		return Summary{
			Text: string(text), Marker: marker.ID, CoversTo: marker.CoversTo, Digest: marker.Digest,
			Applied: marker.Applied.UTC(),
		}, err
	}
	return Summary{}, fmt.Errorf("conversation %q has no summary, its context is the full history: %w", ref.ID,
		store.ErrNotFound)
}
