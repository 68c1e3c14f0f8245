package memory

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"precis/internal/api/wire"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/pipeline"
)

// Whatever the messages are, every byte of them is in exactly one segment, segments are bounded and as large as they
// say.
func TestCutter(t *testing.T) {
	t.Parallel()
	ref := store.ConversationRef{Tenant: "t", ID: "c"}
	rapid.Check(t, func(rt *rapid.T) {
		c := cutter{ref: ref, marker: "m"}
		var texts []string
		for i := range rapid.IntRange(1, 12).Draw(rt, "messages") {
			unit := rapid.SampledFrom([]string{"x", "a line\n", "語", "😀 ", "\xff", "</message>"}).Draw(rt, "unit")
			n := rapid.SampledFrom([]int{0, 1, 100, 20_000, SegmentBytes - 700, SegmentBytes, 200_000}).Draw(rt, "size")
			d := decoded{Message: pipeline.Message{
				Seq: int64(i + 1), Role: pipeline.RoleTool,
				Parts: []pipeline.Part{{Kind: pipeline.PartText, Text: strings.Repeat(unit, n/len(unit))}},
			}}
			_, text, _ := d.quote()
			texts = append(texts, text)
			if err := c.add(t.Context(), conversations.Message{Seq: int64(i + 1), Tokens: 10}, d); err != nil {
				rt.Fatal(err)
			}
		}
		if err := c.close(t.Context()); err != nil {
			rt.Fatal(err)
		}
		at := Place{Seq: 1}
		for i, g := range c.done {
			if g.Name != fmt.Sprintf("segment_%04d.md", i+1) || g.CoversFrom != at.Seq || g.OffsetFrom != at.Offset ||
				g.Size > SegmentBytes {
				rt.Fatalf("%+v begins at %+v", g, at)
			}
			size := len(segmentHead(ref, g)) - 1
			for seq := g.CoversFrom; seq <= g.CoversTo; seq++ {
				text := texts[seq-1]
				from, to := 0, len(text)
				if seq == g.CoversFrom {
					from = g.OffsetFrom
				}
				if seq == g.CoversTo && g.OffsetTo > 0 {
					to = g.OffsetTo
				}
				if from >= to || utf8.ValidString(text) && !utf8.ValidString(text[from:to]) {
					rt.Fatalf("%+v: message %d from %d to %d", g, seq, from, to)
				}
				size += len(element(fmt.Sprintf(`<message seq="%d" role="tool">`, seq), text, "</message>", from, to))
			}
			if int64(size) != g.Size {
				rt.Fatalf("%+v has %d bytes", g, size)
			}
			at = Place{Seq: g.CoversTo, Offset: g.OffsetTo}
			if g.OffsetTo == 0 {
				at = Place{Seq: g.CoversTo + 1}
			}
		}
		if at.Seq != int64(len(texts)+1) || at.Offset != 0 {
			rt.Fatalf("it ends at %+v of %d messages", at, len(texts))
		}
	})
}

// The index is bounded and in order, however many entries there are.
func TestIndexIsBounded(t *testing.T) {
	t.Parallel()
	ref := store.ConversationRef{Tenant: "t", ID: strings.Repeat("語", 50)}
	for _, n := range []int{0, 1, 3000} {
		var entries []wire.MemoryEntry
		for i := range n {
			entries = append(entries, wire.MemoryEntry{
				Name: fmt.Sprintf("segment_%04d.md", i+1), Kind: "segment", CoversFrom: int64(10*i + 1),
				CoversTo: int64(10*i + 10), Bytes: 1 << 15,
				SegmentFacts: wire.SegmentFacts{
					Tokens: 9, Request: strings.Repeat("r", requestChars), Files: []string{"a.go", "b.go"},
					MoreFiles: 3,
				},
			})
		}
		for i := range n {
			entries = append(entries, wire.MemoryEntry{Name: fmt.Sprintf("note_%04d.md", i+1), Kind: "note", Bytes: 12})
		}
		text := indexText(ref, entries)
		if len(text) > indexBytes || !strings.HasPrefix(text, "# Memory of conversation 語") {
			t.Errorf("%d entries: %d bytes", n, len(text))
		}
		if n == 0 {
			continue
		}
		last := fmt.Sprintf("- segment_%04d.md: messages %d to %d", n, 10*n-9, 10*n)
		if !strings.Contains(text, last) || !strings.Contains(text, fmt.Sprintf("- note_%04d.md: 12 bytes", n)) ||
			!strings.Contains(text, "files: a.go, b.go and 3 more\n") {
			t.Errorf("%d entries: %s", n, text)
		}
		if n > 1 && (!strings.Contains(text, "- segment_0001.md to segment_2") ||
			!strings.Contains(text, " more before these, by name")) {
			t.Errorf("%.1500s", text)
		}
	}
}

func TestSafeName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{
		"default", "build-42", "a.b_c", "A", "a", "..", ".", ".hidden", "x.", "a/b", "a\\b", "a b", "a_b",
		"../../etc/passwd", "語", "~", "a~b", "", strings.Repeat("x", 100), strings.Repeat("x", 101),
		strings.Repeat("X", 160), "con ", "a\x00b", "%2e%2e",
	} {
		got := safeName(id)
		if other, taken := seen[strings.ToLower(got)]; taken {
			t.Errorf("%q and %q are both %s", id, other, got)
		}
		seen[strings.ToLower(got)] = id
		if len(got) > 100 || got == "" || strings.ContainsAny(got, "/\\ \x00") || strings.HasPrefix(got, ".") ||
			strings.HasSuffix(got, ".") {
			t.Errorf("%q is %q", id, got)
		}
	}
	if got := FolderName(store.ConversationRef{Tenant: "acme", ID: "build-42"}); got != "acme/build-42" {
		t.Error(got)
	}
}
