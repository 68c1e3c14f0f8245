package memory

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"precis/internal/store"
	"precis/internal/store/conversations"
)

// Page is a piece of the transcript as text.
type Page struct {
	Text string `json:"text"`
	// Next is where the next page begins, nil: this is the last page.
	Next *Place `json:"next,omitempty"`
	// Head is the last message of the conversation.
	Head int64 `json:"head_seq"`
}

// The size of a page, in bytes.
const (
	DefaultPageBytes = 16 << 10
	MaxPageBytes     = 64 << 10
)

// ReadPage returns messages as text, from a place up to message to (0: the last one), at most limit bytes
// (0: DefaultPageBytes). What does not fit is on the next page, also the rest of a long message.
func (m Memory) ReadPage(ctx context.Context, ref store.ConversationRef, from Place, to int64,
	limit int,
) (Page, error) {
	c, codec, err := m.open(ctx, ref)
	if err != nil {
		return Page{}, err
	}
	switch {
	case limit <= 0:
		limit = DefaultPageBytes
	case limit > MaxPageBytes:
		limit = MaxPageBytes
	}
	page := Page{Head: c.HeadSeq}
	if from.Seq < 1 {
		from.Seq = 1
	}
	if from.Seq > c.HeadSeq {
		return page, fmt.Errorf("message %d: the conversation has %d: %w", from.Seq, c.HeadSeq, store.ErrNotFound)
	}
	if to == 0 || to > c.HeadSeq {
		to = c.HeadSeq
	}
	var out strings.Builder
	for msg, err := range m.inSteps(ctx, ref, from.Seq, to) {
		if err != nil {
			return page, err
		}
		open, text, end := decode(codec, msg).quote()
		start := 0
		if msg.Seq == from.Seq {
			start = clampOffset(text, from.Offset)
		}
		room := limit - out.Len() - frameBytes
		if len(text)-start <= room {
			out.WriteString(element(open, text, end, start, len(text)))
			continue
		}
		// A message that would not fit on a page of its own begins on the rest of this one.
		if out.Len() == 0 || len(text)-start > limit-frameBytes && room > limit/4 {
			stop := start + cut(text[start:], room)
			out.WriteString(element(open, text, end, start, stop))
			start = stop
		}
		page.Next = &Place{msg.Seq, start}
		break
	}
	page.Text = out.String()
	return page, nil
}

// stepOfPage is how many messages one query reads for a page, which needs few of them.
const stepOfPage = 16

// inSteps iterates over messages with queries of a few messages each.
func (m Memory) inSteps(ctx context.Context, ref store.ConversationRef, from, to int64) iter.Seq2[conversations.Message,
	error] {
	return func(yield func(conversations.Message, error) bool) {
		for ; from <= to; from += stepOfPage {
			for msg, err := range m.Store.Messages.Walk(ctx, ref, from, min(to, from+stepOfPage-1)) {
				if !yield(msg, err) || err != nil {
					return
				}
			}
		}
	}
}
