// Package memory keeps readable what compactions replaced by summaries, out of band: a conversation's segments
// (segment_0001.md…), its INDEX.md, and the notes of its agent; in the store, and as files in a folder where one is
// configured.
//
// A segment is a range of the messages, and its text is written out from them whenever somebody reads it. Messages
// never change, so neither does a segment: it cannot be lost, or be something else than what was said, and what is
// pruned from the messages is gone from it too. What is noted in the store is where each begins and ends, made by
// whoever looks first: a pure function of the messages and of the markers that were ever applied, so that all who
// look make the same. A compaction itself does nothing for it, and an append neither.
//
// Each marker that ever took effect adds the messages that none before it covered. An undo takes none away, and the
// marker after it begins where the ones before it ended: nothing comes twice.
//
//	segments.go  where segments begin and end
//	render.go    messages as text, in bounded pieces
//	index.go     INDEX.md
//	find.go      search
//	folder.go    the files
package memory

import (
	"context"
	"fmt"

	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/pipeline/transcript"
)

// IndexName is the entry that lists the others.
const IndexName = "INDEX.md"

// Memory reads and writes the memory of conversations.
type Memory struct {
	Store *store.Store
}

// open finds a conversation that is there to be read, and the codec of its messages.
func (m Memory) open(ctx context.Context,
	ref store.ConversationRef,
) (conversations.Conversation, transcript.Codec, error) {
	c, err := m.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return c, transcript.Codec{}, err
	}
	if !c.ContentDeleted.IsZero() {
		return c, transcript.Codec{}, fmt.Errorf("conversation %q: %w", ref.ID, store.ErrContentDeleted)
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	return c, codec, err
}

// decode gives a stored message its parts. One that cannot be read is shown as such: it must not hide the others.
func decode(codec transcript.Codec, s conversations.Message) decoded {
	list, err := conversation.Decode(codec, []conversations.Message{s})
	if err != nil {
		m := s.Pipeline()
		m.Parts = nil
		return decoded{Message: m, unreadable: true}
	}
	return decoded{Message: list[0]}
}
