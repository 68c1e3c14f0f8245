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

// SegmentBytes bounds the text of a segment: some 16,000 tokens, which an agent can read at once.
const SegmentBytes = 64 << 10

const (
	// maxIndexFiles is how many files the index names for a segment, requestChars how much of its first request.
	maxIndexFiles = 8
	requestChars  = 200
)

// segments gives the entries of a conversation's memory as the store has them, those made first that were not asked for
// before.
func (m Memory) segments(ctx context.Context, ref store.ConversationRef) ([]segments.Segment, error) {
	c, codec, err := m.open(ctx, ref)
	if err != nil || c.Ephemeral {
		return nil, err
	}
	list, err := m.Store.Segments.List(ctx, ref)
	if err != nil {
		return nil, err
	}
	markers, err := m.Store.Markers.List(ctx, ref)
	if err != nil {
		return nil, err
	}
	made := slices.DeleteFunc(slices.Clone(list), segments.Segment.Note)
	fresh := uncovered(markers, made)
	if len(fresh) == 0 {
		return list, nil
	}
	number := len(made)
	var add []segments.Segment
	for _, r := range fresh {
		cutter := cutter{ref: ref, marker: r.marker, number: number}
		if err := m.cut(ctx, codec, ref, r, &cutter); err != nil {
			return nil, err
		}
		number = cutter.number
		add = append(add, cutter.done...)
	}
	if err := m.Store.Segments.Keep(ctx, ref, add); err != nil {
		return nil, err
	}
	return m.Store.Segments.List(ctx, ref)
}

// covered is a range of messages that a marker covers and none before it did.
type covered struct {
	from, to int64
	marker   string
}

// uncovered gives what the markers that ever took effect cover beyond the segments that are there, in their order.
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

// cut reads a range and divides it.
func (m Memory) cut(ctx context.Context, codec transcript.Codec, ref store.ConversationRef, r covered,
	c *cutter,
) error {
	for msg, err := range m.Store.Messages.Walk(ctx, ref, r.from, r.to) {
		if err != nil {
			return err
		}
		if err := c.add(msg, decode(codec, msg)); err != nil {
			return err
		}
	}
	return c.close()
}

// cutter divides messages into segments that are within SegmentBytes. A message stays whole where it can.
type cutter struct {
	ref    store.ConversationRef
	marker string
	number int
	done   []segments.Segment
	// now is the one that is being filled, size its bytes, calls what tools were called in it.
	now   *segments.Segment
	facts wire.SegmentFacts
	size  int
	calls []pipeline.Message
}

func (c *cutter) add(msg conversations.Message, d decoded) error {
	open, text, end := d.quote()
	for from := 0; ; {
		rest := frameBytes + len(text) - from
		room := SegmentBytes - headBytes - c.size
		if rest <= room {
			c.put(msg, d, from, len(text), element(open, text, end, from, len(text)), len(text))
			return nil
		}
		// One that fits into a segment of its own waits for that; a larger one is begun where there is some room.
		if c.now != nil && (rest <= SegmentBytes-headBytes || room < SegmentBytes/4) {
			if err := c.close(); err != nil {
				return err
			}
			continue
		}
		to := from + cut(text[from:], room-frameBytes)
		c.put(msg, d, from, to, element(open, text, end, from, to), len(text))
		if err := c.close(); err != nil {
			return err
		}
		from = to
	}
}

// put takes the text of a message from one byte to another, which is written as element, into the segment.
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

// close ends the segment that is being filled.
func (c *cutter) close() error {
	if c.now == nil {
		return nil
	}
	files, changed := pipeline.FilesTouched(c.calls)
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
		return fmt.Errorf("encode what the index says of %s: %w", c.now.Name, err)
	}
	c.now.Facts = facts
	c.now.Size = int64(len(segmentHead(c.ref, *c.now)) + c.size - len("\n"))
	c.done = append(c.done, *c.now)
	c.now, c.size = nil, 0
	return nil
}

// Entries lists a conversation's memory: the index first, then segments in the order of the conversation, then notes by
// name. A conversation in which nothing was ever compacted or noted has none.
func (m Memory) Entries(ctx context.Context, ref store.ConversationRef) ([]wire.MemoryEntry, error) {
	list, err := m.segments(ctx, ref)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	entries := make([]wire.MemoryEntry, 0, len(list)+1)
	for _, g := range list {
		e, err := entryOf(g)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	index := wire.MemoryEntry{Name: IndexName, Kind: "index", Bytes: int64(len(indexText(ref, entries)))}
	return slices.Insert(entries, 0, index), nil
}

func entryOf(g segments.Segment) (wire.MemoryEntry, error) {
	e := wire.MemoryEntry{
		Name: g.Name, Kind: "segment", CoversFrom: g.CoversFrom, CoversTo: g.CoversTo, Marker: g.Marker,
		Bytes: g.Size, Created: g.Created.UTC(),
	}
	if g.Note() {
		e.Kind = "note"
	}
	if err := json.Unmarshal(g.Facts, &e.SegmentFacts); err != nil {
		return e, fmt.Errorf("read what is noted of %s: %w", g.Name, err)
	}
	return e, nil
}

// Read gives an entry of the memory with its text.
func (m Memory) Read(ctx context.Context, ref store.ConversationRef, name string) (wire.MemoryEntry, string, error) {
	if name == IndexName {
		entries, err := m.Entries(ctx, ref)
		if err != nil {
			return wire.MemoryEntry{}, "", err
		}
		if len(entries) == 0 {
			return wire.MemoryEntry{}, "",
				fmt.Errorf("%s: nothing was compacted or noted in the conversation yet: %w", IndexName,
					store.ErrNotFound)
		}
		return entries[0], indexText(ref, entries[1:]), nil
	}
	g, err := m.Store.Segments.Get(ctx, ref, name)
	if isNotFound(err) { // it may be that nobody has asked for it yet
		if _, err = m.segments(ctx, ref); err == nil {
			g, err = m.Store.Segments.Get(ctx, ref, name)
		}
	}
	if err != nil {
		return wire.MemoryEntry{}, "", err
	}
	text := string(g.Content)
	if !g.Note() {
		_, codec, err := m.open(ctx, ref)
		if err != nil {
			return wire.MemoryEntry{}, "", err
		}
		if text, err = m.segmentText(ctx, codec, ref, g); err != nil {
			return wire.MemoryEntry{}, "", err
		}
		if int64(len(text)) != g.Size {
			if err := m.Store.Segments.Measure(ctx, ref, name, int64(len(text))); err != nil {
				return wire.MemoryEntry{}, "", err
			}
			g.Size = int64(len(text))
		}
	}
	e, err := entryOf(g)
	return e, text, err
}
