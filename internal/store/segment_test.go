package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"precis/internal/memory/search"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/searchindex"
	"precis/internal/store/segments"
)

func TestSegmentsStay(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 2)
	m := compact(t, s, ref, 2, "SUM")
	first := segments.Segment{
		Name: "segment_0001.md", CoversFrom: 1, CoversTo: 2, OffsetTo: 5, Marker: m.ID, Size: 70,
		Facts: json.RawMessage(`{"request":"a\u0000b"}`),
	}
	other := segments.Segment{Name: "segment_0001.md", CoversFrom: 2, CoversTo: 2, Marker: m.ID, Size: 1}
	second := segments.Segment{
		Name: "segment_0002.md", CoversFrom: 2, CoversTo: 2, OffsetFrom: 5, Marker: m.ID,
		Size: 9,
	}
	for _, list := range [][]segments.Segment{{first}, {other, second}} {
		if err := s.Segments.Keep(t.Context(), ref, list); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Segments.Get(t.Context(), ref, "segment_0001.md")
	if err != nil || got.CoversFrom != 1 || got.OffsetTo != 5 || got.Marker != m.ID || got.Size != 70 || got.Note() ||
		!strings.Contains(string(got.Facts), "a\ufffdb") {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Segments.Measure(t.Context(), ref, "segment_0002.md", 11); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Segments.PutNote(t.Context(), ref,
		segments.NewNote{Name: "a.md", Text: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Segments.List(t.Context(), ref)
	if err != nil || len(list) != 3 || list[0].Name != "segment_0001.md" || list[1].Size != 11 ||
		list[1].OffsetFrom != 5 || list[2].Name != "a.md" || list[2].Content != nil || list[2].Size != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	for _, g := range []segments.Segment{
		{Name: "note.md", CoversFrom: 1, CoversTo: 2, Marker: m.ID}, {Name: "segment_0003.md"},
	} {
		if err := s.Segments.Keep(t.Context(), ref, []segments.Segment{g}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: error %v", g, err)
		}
	}
	if err := s.Segments.Keep(t.Context(), ref,
		[]segments.Segment{{Name: "segment_0003.md", CoversFrom: 1, CoversTo: 1, Marker: "nope"}}); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"nope", "a.md"} {
		if err := s.Segments.Measure(t.Context(), ref, name, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	put := func(name, text string, replace bool) (segments.Segment, bool, error) {
		return s.Segments.PutNote(t.Context(), ref, segments.NewNote{Name: name, Text: []byte(text), Replace: replace})
	}
	g, created, err := put("plan.md", "one\x00\xff", false)
	if err != nil || !created || string(g.Content) != "one\x00\xff" || g.Size != 5 || !g.Note() {
		t.Fatalf("%+v, %t, %v", g, created, err)
	}
	if _, created, err := put("plan.md", "one\x00\xff", false); err != nil || created {
		t.Errorf("again: %t, %v", created, err)
	}
	if _, _, err := put("plan.md", "two", false); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another text: %v", err)
	}
	if _, _, err := put("PLAN.md", "two", true); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another case: %v", err)
	}
	if g, created, err := put("plan.md", "two", true); err != nil || created || string(g.Content) != "two" {
		t.Errorf("%+v, %t, %v", g, created, err)
	}
	for _, want := range []string{"note_0001.md", "note_0002.md"} {
		if g, _, err := put("", "same text", false); err != nil || g.Name != want {
			t.Errorf("%s, %v", g.Name, err)
		}
	}
	for _, name := range []string{
		"../x", "a/b", ".hidden", "a\x00", "ä", strings.Repeat("x", 129), "INDEX.md",
		"index.MD", "segment_0001.md", "Segment_9.md",
	} {
		if _, _, err := put(name, "x", true); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("name %q: error %v", name, err)
		}
	}
	if _, _, err := put("big", strings.Repeat("x", segments.MaxNoteBytes+1), false); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("error %v", err)
	}

	// Notes without a name that are written at once get different names.
	var wg sync.WaitGroup
	names := make([]string, 8)
	for i := range names {
		wg.Go(func() {
			g, _, err := put("", fmt.Sprint(i), false)
			if err != nil {
				t.Error(err)
			}
			names[i] = g.Name
		})
	}
	wg.Wait()
	slices.Sort(names)
	if len(slices.Compact(names)) != 8 {
		t.Errorf("%v", names)
	}
}

func texts(list ...string) []searchindex.Text {
	out := make([]searchindex.Text, len(list))
	for i, s := range list {
		out[i] = searchindex.Text{Seq: int64(i + 1), Text: s}
	}
	return out
}

// searchable makes a conversation with texts and a note to search, and returns its longest text too.
func searchable(t *testing.T, s *store.Store) (ref store.ConversationRef, far string) {
	t.Helper()
	ref = newConversation(t, s, "c")
	appendTurns(t, s, ref, 6)
	far = strings.Repeat("filler 0123 的 ", 70_000) + "needle_at_the_end 9f8e7d " // 1.3 MB
	if err := s.SearchIndex.Add(t.Context(), ref, texts(
		"See internal/foo_bar/baz.go:17 and run `go build ./...`",
		"請把對話壓縮成摘要，然後繼續。",
		"the price was 1,234.56 EUR; retry -5 times",
		"Überraschung: the HTTPServer said alpha\x00beta",
		far,
		"alpha here and gamma there",
		"",
	), 7); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Segments.PutNote(t.Context(), ref,
		segments.NewNote{Name: "n.md", Text: []byte("remember gamma rays")}); err != nil {
		t.Fatal(err)
	}
	// A text that is added again is not added twice.
	if err := s.SearchIndex.Add(t.Context(), ref, texts("See internal/foo_bar/baz.go:17 and run `go build ./...`"),
		3); err != nil {
		t.Fatal(err)
	}
	if indexed, head, err := s.SearchIndex.Progress(t.Context(), ref); err != nil || indexed != 7 || head != 12 {
		t.Errorf("%d of %d, %v", indexed, head, err)
	}
	return ref, far
}

// findPlaces searches in pages of one, and returns the sequence number or the note of each hit.
func findPlaces(t *testing.T, s *store.Store, ref store.ConversationRef, q string, inside bool) (out []string) {
	t.Helper()
	query, err := search.Parse(q)
	if err != nil {
		t.Fatal(err)
	}
	do := s.SearchIndex.Search
	if inside {
		do = s.SearchIndex.SearchInside
	}
	var after *searchindex.Place
	for {
		hits, err := do(t.Context(), ref, query, after, 1)
		if err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		if len(hits) == 0 {
			return out
		}
		h := hits[0]
		if (h.Note == "") != (h.Role != "") {
			t.Errorf("%+v", h)
		}
		out = append(out, fmt.Sprint(h.Seq, h.Note))
		after = &searchindex.Place{Rank: h.Rank, Seq: h.Seq, Note: h.Note}
	}
}

// searches are queries of the conversation that searchable makes, by whole words and, if in is set, inside of them.
var searches = []struct {
	query string
	want  string // in any order
	in    bool
}{
	{"foo_bar/baz.go", "1", false},
	{"baz.go", "1", false},
	{"bar/baz", "1", false},
	{"BAZ go", "1", false},
	{`"go build"`, "1", false},
	{`"build go"`, "", false},
	{"壓縮", "2", false},
	{"縮壓", "", false},
	{"1,234.56", "3", false},
	{"überraschung", "4", false},
	{"HTTPServer", "4", false},
	{"alpha", "4 6", false},
	{"alpha -gamma", "4", false},
	{"beta OR rays", "4 0n.md", false},
	{"gamma", "6 0n.md", false},
	{"needle_at_the_end", "5", false},
	{"filler 9f8e7d", "5", false}, // in one message, far from each other
	{"filler -9f8e7d", "", false},
	{"\"0123 的 filler\"", "5", false},
	{"server", "", false},
	{"nothing of it", "", false},
	{"server", "4", true},
	{"internal/foo", "1", true},
	{"8e7 illE", "5", true},
	{"amm -ays", "6", true},
	{"embe", "0n.md", true},
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref, far := searchable(t, s)
	for _, tt := range searches {
		got := findPlaces(t, s, ref, tt.query, tt.in)
		want := strings.Fields(tt.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q (inside %t): %v, want %v", tt.query, tt.in, got, want)
		}
	}
	// A hit says where it is in the text.
	query, err := search.Parse("needle_at_the_end")
	if err != nil {
		t.Fatal(err)
	}
	hits, err := s.SearchIndex.Search(t.Context(), ref, query, nil, 1)
	if err != nil || len(hits) != 1 || !strings.Contains(hits[0].Body, "needle_at") ||
		far[hits[0].Start:hits[0].Start+len(hits[0].Body)] != hits[0].Body {
		t.Errorf("%.100v, %v", hits, err)
	}
}

// Every change of a conversation's memory makes the memory due, and it is claimed once.
func TestClaimMemory(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 2)
	claim := func(want bool) (w segments.Claim) {
		t.Helper()
		list, err := s.Segments.Claim(t.Context(), 10, time.Hour)
		if err != nil || len(list) != map[bool]int{true: 1}[want] {
			t.Fatalf("%v, %v", list, err)
		}
		if want {
			w = list[0]
			if w.Ref != ref {
				t.Errorf("%v", w.Ref)
			}
		}
		return w
	}
	claim(false)
	compact(t, s, ref, 2, "SUM")
	w := claim(true)
	claim(false)
	if _, _, err := s.Segments.PutNote(t.Context(), ref, segments.NewNote{Text: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Segments.Done(t.Context(), w, time.Hour); err != nil { // the note came after the claim
		t.Fatal(err)
	}
	w = claim(true)
	if err := s.Segments.Done(t.Context(), w, 0); err != nil {
		t.Fatal(err)
	}
	w = claim(true) // looked at again at once
	if err := s.Segments.Done(t.Context(), w, time.Hour); err != nil {
		t.Fatal(err)
	}
	claim(false)
	if _, err := s.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	claim(true)

	temp, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant,
		conversations.NewConversation{ID: "e", Format: "anthropic", Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	appendTurns(t, s, temp.Ref, 2)
	compact(t, s, temp.Ref, 2, "SUM")
	claim(false)
}

// For any texts and queries, a search by words finds what a comparison of the texts finds.
func TestSearchFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		ref := newConversation(t, s, fmt.Sprint("c", n))
		piece := rapid.SampledFrom([]string{
			"a", "b", "B", "ab", "7", "語", "文", " ", "_", "/", ".", "'", "\\", "\x00",
			"\n", "é",
		})
		text := rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt,
				"pieces"), "")
		})
		said := rapid.SliceOfN(text, 1, 5).Draw(rt, "said")
		if err := s.SearchIndex.Add(t.Context(), ref, texts(said...), int64(len(said))); err != nil {
			rt.Fatal(err)
		}
		type term struct {
			text string
			not  bool
		}
		var asked strings.Builder
		var terms []term
		for range rapid.IntRange(1, 3).Draw(rt, "terms") {
			x := term{rapid.StringMatching(`[abB7語文é_/.]{1,4}`).Draw(rt, "term"), rapid.Bool().Draw(rt, "not")}
			if x.not {
				asked.WriteString("-")
			}
			asked.WriteString(`"` + x.text + `" `)
			terms = append(terms, x)
		}
		query, err := search.Parse(asked.String())
		if err != nil {
			return // nothing in it is to be there
		}
		hits, err := s.SearchIndex.Search(t.Context(), ref, query, nil, 100)
		if err != nil {
			rt.Fatalf("%q: %v", asked.String(), err)
		}
		found := map[int64]bool{}
		for _, h := range hits {
			found[h.Seq] = true
		}
		for i, text := range said {
			want := true
			for _, x := range terms {
				if words := plainWords(x.text); words != "" &&
					strings.Contains(" "+plainWords(text)+" ", " "+words+" ") == x.not {
					want = false
				}
			}
			if found[int64(i+1)] != want {
				rt.Errorf("%q in %q: found %t", asked.String(), text, !want)
			}
		}
	})
}

// plainWords returns the words of a text of TestSearchFindsWhatIsThere, separated by spaces.
func plainWords(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune("語文", r):
			b.WriteString(" " + string(r) + " ")
		case strings.ContainsRune("abB7é", r):
			b.WriteString(strings.ToLower(string(r)))
		default:
			b.WriteString(" ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// After a conversation's content was deleted, concurrent work cannot write parts of it again.
func TestMemoryOfDeletedContent(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 2)
	m := compact(t, s, ref, 2, "SUM")
	segment := []segments.Segment{{
		Name: "segment_0001.md", CoversFrom: 1, CoversTo: 2, Marker: m.ID,
		Facts: json.RawMessage(`{"request":"x"}`),
	}}
	if err := s.Segments.Keep(t.Context(), ref, segment); err != nil {
		t.Fatal(err)
	}
	if err := s.SearchIndex.Add(t.Context(), ref, texts("one", "two"), 2); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Segments.PutNote(t.Context(), ref, segments.NewNote{Text: []byte("note")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Retention.DeleteContent(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"KeepSegments":   s.Segments.Keep(t.Context(), ref, segment),
		"AddSearchTexts": s.SearchIndex.Add(t.Context(), ref, texts("one"), 2),
		"PutNote":        second(s.Segments.PutNote(t.Context(), ref, segments.NewNote{Text: []byte("note")})),
	} {
		if !errors.Is(err, store.ErrContentDeleted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, table := range []string{"segments", "search_texts"} {
		var n int
		if err := raw(t, url).QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
	if list, err := s.Segments.Claim(t.Context(), 10, time.Hour); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func second(_ segments.Segment, _ bool, err error) error { return err }
