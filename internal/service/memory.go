package service

import (
	"context"
	"errors"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/memory"
	"precis/internal/memory/search"
	"precis/internal/store"
	"precis/internal/store/segments"
)

// NewNote is a note that an agent writes.
type NewNote struct {
	// Name is the name of the note, "" for the next free note_0001.md…
	Name string
	Text string
	// Replace replaces a note of the same name.
	Replace bool
}

func (s *Service) memory() memory.Memory { return memory.Memory{Store: s.Store} }

// ListSegments returns a page of a conversation's memory with at most limit entries (0: 100). A conversation has no
// entries until it is compacted or a note is added.
func (s *Service) ListSegments(ctx context.Context, ref store.ConversationRef, limit int,
	cursor string,
) (wire.Segments, error) {
	const usual, most = 100, 1000
	page := wire.Segments{Segments: []wire.MemoryEntry{}}
	list, err := s.memory().Entries(ctx, ref)
	if err != nil {
		return page, refused(err)
	}
	if s.Config.Memory.Folder != "" && len(list) > 0 {
		page.Folder = memory.FolderName(ref)
	}
	if cursor != "" {
		at := 0
		for at < len(list) && list[at].Name != cursor {
			at++
		}
		if at == len(list) {
			return page, invalid("query.cursor", "is not the cursor of a page of this list")
		}
		list = list[at+1:]
	}
	if limit <= 0 {
		limit = usual
	}
	if limit = min(limit, most); len(list) > limit {
		list = list[:limit]
		page.Next = list[limit-1].Name
	}
	page.Segments = append(page.Segments, list...)
	return page, nil
}

// ReadSegment returns an entry of a conversation's memory with its text: a segment, INDEX.md or a note.
func (s *Service) ReadSegment(ctx context.Context, ref store.ConversationRef, name string) (wire.Segment, error) {
	e, text, err := s.memory().Read(ctx, ref, name)
	if err != nil {
		return wire.Segment{}, refused(err)
	}
	return wire.Segment{MemoryEntry: e, Text: text}, nil
}

// AddNote adds a note to a conversation's memory and reports whether it is new. A note cannot have the name of a
// segment. Adding the same text twice changes nothing.
func (s *Service) AddNote(ctx context.Context, ref store.ConversationRef, n NewNote) (wire.MemoryEntry, bool, error) {
	switch {
	case strings.TrimSpace(n.Text) == "":
		return wire.MemoryEntry{}, false, invalid("text", "is empty")
	case len(n.Text) > segments.MaxNoteBytes:
		return wire.MemoryEntry{}, false, &Error{
			Code: CodeTooLarge, Field: "text",
			Detail: "a note has at most 256 KB: leave several",
		}
	}
	g, created, err := s.Store.Segments.PutNote(ctx, ref,
		segments.NewNote{Name: n.Name, Text: []byte(n.Text), Replace: n.Replace})
	if err != nil {
		if errors.Is(err, store.ErrInvalid) {
			return wire.MemoryEntry{}, false, &Error{Code: CodeInvalid, Field: "name", Detail: err.Error(), Cause: err}
		}
		return wire.MemoryEntry{}, false, refused(err)
	}
	return wire.MemoryEntry{Name: g.Name, Kind: "note", Bytes: g.Size, Created: g.Created.UTC()}, created, nil
}

// Search returns the messages and notes of a conversation that match a query, at most limit (up to 100; 0: 20).
func (s *Service) Search(ctx context.Context, ref store.ConversationRef, query string, limit int,
	cursor string,
) (wire.MemoryFound, error) {
	covered, err := s.coverage(ctx, ref)
	if err != nil {
		return wire.MemoryFound{}, refused(err)
	}
	found, err := s.memory().Search(ctx, ref, query, limit, cursor)
	switch {
	case errors.Is(err, search.ErrQuery):
		return found, &Error{Code: CodeInvalid, Field: "query.q", Detail: err.Error(), Cause: err}
	case errors.Is(err, store.ErrInvalid):
		return found, &Error{Code: CodeInvalid, Field: "query.cursor", Detail: err.Error(), Cause: err}
	case err != nil:
		return found, refused(err)
	}
	for i := range found.Hits {
		found.Hits[i].Covered = !found.Hits[i].Note && covered(found.Hits[i].Seq)
	}
	return found, nil
}

// ReadPage returns a page of messages as text: see memory.ReadPage.
func (s *Service) ReadPage(ctx context.Context, ref store.ConversationRef, from memory.Place, to int64,
	limit int,
) (memory.Page, error) {
	if to != 0 && to < from.Seq {
		return memory.Page{}, invalid("to", "is %d, before the first message that is wanted, %d", to, from.Seq)
	}
	page, err := s.memory().ReadPage(ctx, ref, from, to, limit)
	return page, refused(err)
}

// LastSummary returns the active summary of a conversation.
func (s *Service) LastSummary(ctx context.Context, ref store.ConversationRef) (memory.Summary, error) {
	summary, err := s.memory().LastSummary(ctx, ref)
	return summary, refused(err)
}
