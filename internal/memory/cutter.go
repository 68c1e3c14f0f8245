package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"precis/internal/api/wire"
	"precis/internal/store"
	"precis/internal/store/conversations"
	storemarkers "precis/internal/store/markers"
	"precis/internal/store/segments"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// cutter divides messages into segments of at most SegmentBytes. It divides only messages that do not fit into one.
type cutter struct {
	ref    store.ConversationRef
	marker string
	number int
	done   []segments.Segment
	// now is the current segment, size its bytes, calls the tool calls in it.
	now   *segments.Segment
	facts wire.SegmentFacts
	size  int
	calls []pipeline.Message
}

func (c *cutter) add(ctx context.Context, msg conversations.Message, d decoded) error {
	open, text, end := d.quote()
	for from := 0; ; {
		rest := frameBytes + len(text) - from
		room := SegmentBytes - headBytes - c.size
		if rest <= room {
			c.put(msg, d, from, len(text), element(open, text, end, from, len(text)), len(text))
			return nil
		}
		// A message that fits into a segment gets into the next one. A larger one begins here if there is some room.
		if c.now != nil && (rest <= SegmentBytes-headBytes || room < SegmentBytes/4) {
			if err := c.close(ctx); err != nil {
				return err
			}
			continue
		}
		to := from + cut(text[from:], room-frameBytes)
		c.put(msg, d, from, to, element(open, text, end, from, to), len(text))
		if err := c.close(ctx); err != nil {
			return err
		}
		from = to
	}
}

// put adds the text of a message from one byte to another, which is written as element, to the current segment.
func (c *cutter) put(msg conversations.Message, d decoded, from, to int, element string, whole int) {
	if c.now == nil {
		c.number++
		c.now = &segments.Segment{
			Name: fmt.Sprintf("segment_%04d.md", c.number), CoversFrom: msg.Seq, OffsetFrom: from,
			Marker: c.marker,
		}
		c.facts, c.calls, c.size = wire.SegmentFacts{First: msg.Created.UTC()}, nil, 0
	}
	c.now.CoversTo, c.now.OffsetTo = msg.Seq, 0
	if to < whole {
		c.now.OffsetTo = to
	}
	c.size += len(element)
	c.facts.Last = msg.Created.UTC()
	c.facts.Tokens += int(int64(msg.Tokens) * int64(to-from) / int64(max(whole, 1)))
	if c.facts.Request == "" && msg.Genuine && from == 0 {
		c.facts.Request = pipeline.Quote(pipeline.RenderMessage(d.Message), requestChars)
	}
	if from == 0 && len(d.Calls()) > 0 {
		only := pipeline.Message{}
		for _, p := range d.Parts {
			if p.Kind == pipeline.PartToolCall {
				only.Parts = append(only.Parts, p)
			}
		}
		c.calls = append(c.calls, only)
	}
}

// close ends the current segment.
func (c *cutter) close(ctx context.Context) error {
	if c.now == nil {
		return nil
	}
	files, changed, err := pipeline.FilesTouched(ctx, c.calls)
	if err != nil {
		return err
	}
	slices.Reverse(files)
	for i, f := range files {
		if i == maxIndexFiles {
			c.facts.MoreFiles = len(files) - maxIndexFiles
			break
		}
		if changed[f] {
			f += " (changed)"
		}
		c.facts.Files = append(c.facts.Files, f)
	}
	facts, err := json.Marshal(c.facts)
	if err != nil {
		return fmt.Errorf("encode the facts of %s: %w", c.now.Name, err)
	}
	c.now.Facts = facts
	c.now.Size = int64(len(segmentHead(c.ref, *c.now)) + c.size - len("\n"))
	c.done = append(c.done, *c.now)
	c.now, c.size = nil, 0
	return nil
}

// covered is a range of messages that a marker covers and no earlier one.
type covered struct {
	from, to int64
	marker   string
}

// uncovered returns what the markers that ever took effect cover beyond the existing segments, in their order.
func uncovered(markers []storemarkers.Marker, made []segments.Segment) []covered {
	applied := slices.DeleteFunc(slices.Clone(markers),
		func(m storemarkers.Marker) bool { return m.Applied.IsZero() || m.CoversTo == 0 })
	slices.SortFunc(applied, func(a, b storemarkers.Marker) int { return int(a.Epoch - b.Epoch) })
	var done int64
	for _, g := range made {
		done = max(done, g.CoversTo)
	}
	var out []covered
	for _, m := range applied {
		if m.CoversTo > done {
			out = append(out, covered{done + 1, m.CoversTo, m.ID})
			done = m.CoversTo
		}
	}
	return out
}

// cut divides a range of messages into segments.
func (m Memory) cut(ctx context.Context, codec transcript.Codec, ref store.ConversationRef, r covered,
	c *cutter,
) error {
	for msg, err := range m.Store.Messages.Walk(ctx, ref, r.from, r.to) {
		if err != nil {
			return err
		}
		if err := c.add(ctx, msg, decode(codec, msg)); err != nil {
			return err
		}
	}
	return c.close(ctx)
}

const (
	// maxIndexFiles is how many files the index names for a segment, requestChars how much of its first request.
	maxIndexFiles = 8
	requestChars  = 200
)
