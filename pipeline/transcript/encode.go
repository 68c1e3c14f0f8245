package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/wire/anthropic"
)

// EncodeItems writes a context in the codec's format: one entry per remaining message, in order; a summary that the
// vendor made itself may have several. The entry of a stored message without edits is its Native, not a copy. For
// Anthropic a system message between other messages is put where the API takes it: see anthropic.PlaceSystem.
func EncodeItems(c Codec, items []pipeline.ContextItem) ([][]byte, error) {
	out := make([][]byte, 0, len(items))
	for i, it := range items {
		if it.Native != nil {
			native, err := encodeNative(c, *it.Native)
			if err != nil {
				return nil, fmt.Errorf("entry %d of the context: %w", i, err)
			}
			out = append(out, native...)
			continue
		}
		b, err := c.EncodeItem(it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b != nil {
			out = append(out, b)
		}
	}
	if c.Format() == Anthropic {
		out = anthropic.PlaceSystem(out)
	}
	return out, nil
}

// encodeNative writes the result of a vendor's own compaction, unchanged, and the note behind it.
func encodeNative(c Codec, n pipeline.NativeSummary) ([][]byte, error) {
	out := make([][]byte, 0, len(n.Messages)+1)
	for _, m := range n.Messages {
		out = append(out, m)
	}
	if n.Note == "" {
		return out, nil
	}
	note, err := c.Make(pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: n.Note})
	if err != nil {
		return nil, err
	}
	return append(out, note), nil
}

// EncodeItem writes one entry of a context in the codec's format, nil if its edits leave no content.
func (c Codec) EncodeItem(it pipeline.ContextItem) ([]byte, error) {
	switch {
	case it.Made != nil:
		return c.Make(*it.Made)
	case it.Message != nil:
		return c.Encode(*it.Message, it.Edits)
	}
	return nil, pipeline.Errorf(pipeline.Internal, "the entry has neither a stored message nor a made one")
}
