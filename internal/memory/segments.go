package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"precis/internal/api/wire"
	"precis/internal/store"
	"precis/internal/store/segments"
)

// SegmentBytes bounds the text of a segment: about 16,000 tokens, which an agent can read at once.
const SegmentBytes = 64 << 10

// segments returns the segments and notes of a conversation as they are stored. It first makes the segments of
// compactions that have none yet.
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

// Entries returns a conversation's memory: the index, then segments in the order of the conversation, then notes by
// name. A conversation without segments and notes has no entries.
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
		return e, fmt.Errorf("read the facts of %s: %w", g.Name, err)
	}
	return e, nil
}

// Read returns an entry of the memory with its text.
func (m Memory) Read(ctx context.Context, ref store.ConversationRef, name string) (wire.MemoryEntry, string, error) {
	if name == IndexName {
		entries, err := m.Entries(ctx, ref)
		if err != nil {
			return wire.MemoryEntry{}, "", err
		}
		if len(entries) == 0 {
			return wire.MemoryEntry{}, "",
				fmt.Errorf("%s: the conversation has no segments and no notes yet: %w", IndexName,
					store.ErrNotFound)
		}
		return entries[0], indexText(ref, entries[1:]), nil
	}
	g, err := m.Store.Segments.Get(ctx, ref, name)
	if isNotFound(err) { // the segment may not have been made yet
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
