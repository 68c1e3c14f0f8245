package mcp

import (
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/memory"
	"precis/pipeline"
)

// argument returns the name of a tool's argument for the path of a field of the service.
func argument(path string) string {
	if name, ok := strings.CutPrefix(path, "query."); ok {
		if name == "q" {
			return "query"
		}
		return name
	}
	return path
}

// foundText returns the answer of search_transcript.
func foundText(f wire.MemoryFound, query string) string {
	if len(f.Hits) == 0 {
		return `Nothing matches "` + pipeline.Quote(query, 300) + `". Try fewer or other words.`
	}
	var b strings.Builder
	if f.Match != "words" {
		b.WriteString("No whole word matches. These are matches inside of words, newest first.\n\n")
	}
	for _, h := range f.Hits {
		switch {
		case h.Note:
			fmt.Fprintf(&b, "- note %s: %s\n", h.Segment, pipeline.QuoteText(h.Snippet))
			continue
		case h.Segment != "":
			fmt.Fprintf(&b, "- message %d (%s, in %s", h.Seq, h.Role, h.Segment)
		default:
			fmt.Fprintf(&b, "- message %d (%s", h.Seq, h.Role)
		}
		if h.Offset > 0 {
			fmt.Fprintf(&b, ", offset %d", h.Offset)
		}
		if h.Covered {
			b.WriteString(", compacted")
		}
		b.WriteString("): " + pipeline.QuoteText(h.Snippet) + "\n")
	}
	more(&b, f.Next)
	return b.String()
}

// more says how to read the next page.
func more(b *strings.Builder, cursor string) {
	if cursor != "" {
		fmt.Fprintf(b, "\nMore follow: call again with cursor %q.\n", cursor)
	}
}

// listText returns the answer of list_segments.
func listText(page wire.Segments) string {
	if len(page.Segments) == 0 {
		return "This conversation has no segments and no notes yet: all of it is in the context."
	}
	var b strings.Builder
	for _, e := range page.Segments {
		if e.Kind != "index" {
			b.WriteString(pipeline.QuoteText(memory.IndexLine(e)))
		}
	}
	more(&b, page.Next)
	return b.String()
}

// pageText returns the answer of read_messages.
func pageText(p memory.Page) string {
	if p.Next == nil {
		return p.Text
	}
	next := fmt.Sprintf("from %d", p.Next.Seq)
	if p.Next.Offset > 0 {
		next += fmt.Sprintf(" and offset %d", p.Next.Offset)
	}
	return p.Text + fmt.Sprintf("[More follows: call again with %s. The last message is %d.]\n", next, p.Head)
}

// segmentText returns the answer of read_segment. The messages of a segment are elements whose texts are quoted
// already; a note and the index are any text.
func segmentText(g wire.MemoryEntry, text string) string {
	if g.Kind == "segment" {
		return text
	}
	return pipeline.QuoteText(text)
}

// summaryText returns the answer of last_summary.
func summaryText(s memory.Summary) string {
	what := fmt.Sprintf("Messages 1 to %d are summarized (compaction %s, %s).", s.CoversTo, s.Marker,
		s.Applied.Format("2006-01-02 15:04 UTC"))
	if s.Text == "" {
		return what + " Only its vendor can read the summary."
	}
	return what + "\n\n" + pipeline.QuoteSummary(s.Text)
}

// noteText returns the answer of add_note.
func noteText(e wire.MemoryEntry, created bool) string {
	if created {
		return fmt.Sprintf("The note was saved as %s.", e.Name)
	}
	return fmt.Sprintf("The note %s now has this text.", e.Name)
}
