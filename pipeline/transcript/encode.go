package transcript

import (
	"fmt"

	"precis/pipeline"
)

// EncodeItems writes a context in the codec's format: one entry per message that is left, in order. A stored
// message without edits is its Native, not copied.
func EncodeItems(c Codec, items []pipeline.ContextItem) ([][]byte, error) {
	out := make([][]byte, 0, len(items))
	for i, it := range items {
		b, err := encodeItem(c, it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out, nil
}

func encodeItem(c Codec, it pipeline.ContextItem) ([]byte, error) {
	switch {
	case it.Made != nil:
		return c.Make(*it.Made)
	case it.Message != nil:
		return c.Encode(*it.Message, it.Edits)
	}
	return nil, pipeline.Errorf(pipeline.Internal, "it holds neither a stored message nor one that was made")
}
