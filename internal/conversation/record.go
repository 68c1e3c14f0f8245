package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"precis/internal/contract"
	"precis/internal/store"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// EncodeContext returns a context as it is stored for audit: one native message per line.
func EncodeContext(v View, c pipeline.Context) ([]byte, error) {
	messages, err := transcript.EncodeItems(v.Codec, c.Items)
	return bytes.Join(messages, []byte("\n")), err
}

// KeepState stores the snapshot of a view for a run: all that the view was made from beside the messages. It returns
// the references by kind.
func KeepState(ctx context.Context, s *store.Store, run store.RunRef,
	v View,
) (map[contract.ArtifactKind]string, error) {
	settings, err := json.Marshal(v.Settings)
	if err != nil {
		return nil, fmt.Errorf("encode the settings: %w", err)
	}
	live := v.Source
	live.Conversation.Window = Window(live.Conversation, v.Models)
	live.Conversation.Usage.Calibration = v.Calibration()
	return s.Contexts.KeepSnapshot(ctx, run, live, settings)
}
