package memory

import (
	"context"
	"fmt"
	"time"

	"precis/internal/store"
)

// Summary is the summary that counts for a conversation.
type Summary struct {
	// Text is the whole message that the model reads in place of what is covered; empty where only its vendor can
	// read it.
	Text string `json:"text"`
	// Marker is the compaction, CoversTo the last message that it stands for.
	Marker   string `json:"marker"`
	CoversTo int64  `json:"covers_to"`
	// Digest says that no model wrote it.
	Digest  bool      `json:"digest"`
	Applied time.Time `json:"applied"`
}

// LastSummary gives the summary that counts now. Without one it is store.ErrNotFound.
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
		if marker.Summary == "" { // it only squeezes the tail
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
