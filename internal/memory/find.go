package memory

import (
	"context"
	"sort"

	"precis/internal/api/wire"
	"precis/internal/memory/search"
	"precis/internal/store"
	"precis/internal/store/searchindex"
	"precis/internal/store/segments"
)

// The size of a page of hits.
const (
	DefaultHits = 20
	MaxHits     = 100
)

const (
	matchWords     = "words"
	matchSubstring = "substring"
)

// Search searches all messages of a conversation, also those that no summary covers, for a query (see search.Parse),
// and its notes. An error of the query is a search.ErrQuery, an error of the cursor a store.ErrInvalid.
func (m Memory) Search(ctx context.Context, ref store.ConversationRef, text string, limit int,
	cursor string,
) (wire.MemoryFound, error) {
	query, err := search.Parse(text)
	if err != nil {
		return wire.MemoryFound{}, err
	}
	at, err := parsePlace(cursor)
	if err != nil {
		return wire.MemoryFound{}, err
	}
	if limit <= 0 {
		limit = DefaultHits
	}
	limit = min(limit, MaxHits)
	if err := m.catchUp(ctx, ref); err != nil {
		return wire.MemoryFound{}, err
	}
	found := wire.MemoryFound{Match: matchWords, Hits: []wire.MemoryHit{}}
	if at != nil {
		found.Match = at.Match
	}
	hits, err := m.page(ctx, ref, query, found.Match, at, limit+1)
	if err == nil && len(hits) == 0 && at == nil {
		found.Match = matchSubstring
		hits, err = m.page(ctx, ref, query, found.Match, nil, limit+1)
	}
	if err != nil || len(hits) == 0 {
		return found, err
	}
	if len(hits) > limit {
		last := hits[limit-1]
		found.Next = makePlace(searchPlace{found.Match, last.Rank, last.Seq, last.Note})
		hits = hits[:limit]
	}
	list, err := m.segments(ctx, ref)
	if err != nil {
		return found, err
	}
	for _, h := range hits {
		snippet, start := query.Snippet(h.Body)
		hit := wire.MemoryHit{
			Seq: h.Seq, Role: h.Role, Kind: h.Kind, Offset: h.Start + start, Snippet: snippet,
			Rank: h.Rank,
		}
		if h.Note != "" {
			hit.Note, hit.Segment, hit.Offset = true, h.Note, 0
		} else {
			hit.Segment = segmentOf(list, Place{h.Seq, hit.Offset})
		}
		found.Hits = append(found.Hits, hit)
	}
	return found, nil
}

func (m Memory) page(ctx context.Context, ref store.ConversationRef, q search.Query, match string, at *searchPlace,
	limit int,
) ([]searchindex.Hit, error) {
	var after *searchindex.Place
	if at != nil {
		after = &searchindex.Place{Rank: at.Rank, Seq: at.Seq, Note: at.Note}
	}
	if match == matchSubstring {
		return m.Store.SearchIndex.SearchInside(ctx, ref, q, after, limit)
	}
	return m.Store.SearchIndex.Search(ctx, ref, q, after, limit)
}

// segmentOf returns the name of the segment that has a place, "" for none. list is in the order of Memory.segments.
func segmentOf(list []segments.Segment, p Place) string {
	ranges := sort.Search(len(list), func(i int) bool { return list[i].Note() }) // segments come before notes
	// The last segment that does not begin after the place.
	i := sort.Search(ranges, func(i int) bool {
		g := list[i]
		return g.CoversFrom > p.Seq || g.CoversFrom == p.Seq && g.OffsetFrom > p.Offset
	}) - 1
	if i < 0 || list[i].CoversTo < p.Seq {
		return ""
	}
	return list[i].Name
}
