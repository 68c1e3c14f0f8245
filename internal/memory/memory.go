// Package memory offers what compactions replaced by summaries outside of the context: the segments of a conversation
// (segment_0001.md…), their INDEX.md, and the agent's notes; from the store, and as files in a folder if one is
// configured.
//
// A segment is a range of messages, and its text is made from them when it is read. Messages never change, so segments
// never change either. What is pruned from the messages is missing from the segments too. The store has where each
// segment begins and ends. The first reader makes that, as a pure function of the messages and of the markers that
// were ever applied, so that all readers make the same. Compactions and appends do nothing for it.
//
// Each marker that ever took effect adds the messages that no earlier one covered. An undo removes no segment, and the
// next marker continues where the segments end: no message is in two segments, unless it is larger than one.
//
//	segments.go  segments and notes, listed and read
//	cutter.go    where segments begin and end
//	render.go    messages as text
//	page.go      the transcript in pages
//	index.go     INDEX.md
//	find.go      the search; catchup.go indexes for it, cursor.go has its cursors
//	summary.go   the summary that the context starts from
//	folder.go    the files
//	search/      words, queries and snippets
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

// open returns a conversation whose content can be read, and the codec of its messages.
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

// decode returns a stored message with its parts. A message that cannot be decoded is marked as unreadable, so that
// the others can be read.
func decode(codec transcript.Codec, s conversations.Message) decoded {
	list, err := conversation.Decode(codec, []conversations.Message{s})
	if err != nil {
		m := s.Pipeline()
		m.Parts = nil
		return decoded{Message: m, unreadable: true}
	}
	return decoded{Message: list[0]}
}
