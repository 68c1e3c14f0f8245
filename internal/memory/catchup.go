package memory

import (
	"context"

	"precis/internal/store"
	"precis/internal/store/searchindex"
	"precis/pipeline"
)

// The maximum size of one step of catchUp.
const (
	stepMessages = 500
	stepBytes    = 4 << 20
)

// catchUp indexes the messages since the last search. It stores its progress after each step, so that a search after an
// interrupted one continues there.
func (m Memory) catchUp(ctx context.Context, ref store.ConversationRef) error {
	indexed, head, err := m.Store.SearchIndex.Progress(ctx, ref)
	if err != nil || indexed >= head {
		return err
	}
	_, codec, err := m.open(ctx, ref)
	if err != nil {
		return err
	}
	var texts []searchindex.Text
	size := 0
	flush := func(upTo int64) error {
		err := m.Store.SearchIndex.Add(ctx, ref, texts, upTo)
		texts, size = texts[:0], 0
		return err
	}
	for msg, err := range m.Store.Messages.Walk(ctx, ref, indexed+1, head) {
		if err != nil {
			return err
		}
		if d := decode(codec, msg); !d.unreadable {
			_, text, _ := pipeline.QuoteMessage(d.Message)
			texts = append(texts, searchindex.Text{Seq: msg.Seq, Text: text})
			size += len(text)
		}
		if len(texts) >= stepMessages || size >= stepBytes || msg.Seq == head {
			if err := flush(msg.Seq); err != nil {
				return err
			}
		}
	}
	return nil
}
