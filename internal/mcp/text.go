package mcp

import (
	"fmt"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/memory"
	"precis/pipeline"
)

// field is the name of an argument for the path of a field.
func field(path string) string {
	if name, ok := strings.CutPrefix(path, "query."); ok {
		if name == "q" {
			return "query"
		}
		return name
	}
	return path
}

func foundText(f wire.MemoryFound, query string) string {
	if len(f.Hits) == 0 {
		return "Nothing fits " + pipeline.Quote(fmt.Sprintf("%q", query), 300) + ". Fewer or other words may."
	}
	var b strings.Builder
	if f.Match != "words" {
		b.WriteString("No whole word fits; these hold it inside of words, newest first.\n\n")
	}
	for _, h := range f.Hits {
		switch {
		case h.Note:
			fmt.Fprintf(&b, "- note %s: %s\n", h.Segment, h.Snippet)
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
		b.WriteString("): " + h.Snippet + "\n")
	}
	more(&b, f.Next)
	return b.String()
}

func more(b *strings.Builder, cursor string) {
	if cursor != "" {
		fmt.Fprintf(b, "\nThere are more: call again with cursor %q.\n", cursor)
	}
}

func listText(page wire.Segments) string {
	if len(page.Segments) == 0 {
		return "Nothing was compacted or noted in this conversation yet: all of it is in the context."
	}
	var b strings.Builder
	for _, e := range page.Segments {
		if e.Kind != "index" {
			b.WriteString(memory.IndexLine(e))
		}
	}
	more(&b, page.Next)
	return b.String()
}

func pageText(p memory.Page) string {
	if p.Next == nil {
		return p.Text
	}
	next := fmt.Sprintf("from %d", p.Next.Seq)
	if p.Next.Offset > 0 {
		next += fmt.Sprintf(" and offset %d", p.Next.Offset)
	}
	return p.Text + fmt.Sprintf("[It goes on: call again with %s. The last message is %d.]\n", next, p.Head)
}

func summaryText(s memory.Summary) string {
	what := fmt.Sprintf("Messages 1 to %d are summarised (compaction %s, %s).", s.CoversTo, s.Marker,
		s.Applied.Format("2006-01-02 15:04 UTC"))
	if s.Text == "" {
		return what + " The summary can be read by its vendor alone."
	}
	return what + "\n\n" + s.Text
}

func noteText(e wire.MemoryEntry, created bool) string {
	if created {
		return fmt.Sprintf("The note is kept as %s.", e.Name)
	}
	return fmt.Sprintf("The note %s holds this text now.", e.Name)
}
