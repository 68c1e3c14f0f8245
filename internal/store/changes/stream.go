package changes

import (
	"context"
	"iter"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
)

// Limits of one batch of AppendStream: whichever is reached first.
const (
	batchMessages = 1000
	batchBytes    = 8 << 20
)

// AppendStream appends a long sequence in batches, so that memory is bounded by one batch or one message. Each batch is
// appended as a whole or not at all, and expects the head after the batch before: an append by another writer in
// between is ErrStaleSequence. Batches before an error stay. Seqs of the result is empty.
func (s *Store) AppendStream(ctx context.Context, ref db.ConversationRef,
	messages iter.Seq2[conversations.NewMessage, error],
) (AppendResult, error) {
	var sum AppendResult
	c, err := conversations.Get(ctx, s.db, ref)
	if err != nil {
		return sum, err
	}
	sum.Conversation = c
	var batch []conversations.NewMessage
	var size int
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		res, err := s.Append(ctx, ref, batch, AppendOptions{IfSeq: &sum.Conversation.HeadSeq})
		if err != nil {
			return err
		}
		if sum.FirstSeq == 0 {
			sum.FirstSeq = res.FirstSeq
		}
		if res.LastSeq != 0 {
			sum.LastSeq = res.LastSeq
		}
		sum.Duplicates += res.Duplicates
		sum.Conversation = res.Conversation
		batch, size = nil, 0
		return nil
	}
	for m, err := range messages {
		if err != nil {
			return sum, err
		}
		batch = append(batch, m)
		if size += len(m.Native); len(batch) >= batchMessages || size >= batchBytes {
			if err := flush(); err != nil {
				return sum, err
			}
		}
	}
	return sum, flush()
}
