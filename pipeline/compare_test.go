package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCompareSummaries(t *testing.T) {
	t.Parallel()
	user := func(text string) Message {
		return Message{Seq: 1, Role: RoleUser, Parts: []Part{{Kind: PartText, Text: text}}}
	}
	source := []Message{
		user("Fix internal/store/run.go. Never touch the table users."),
		{Seq: 2, Role: RoleAssistant, Parts: []Part{{
			Kind: PartText,
			Text: "The request took 30 ms, see https://example.com/a and commit 3f2a91c. Also `retryFor`.",
		}}},
	}
	a := "The agent fixed internal/store/run.go in 30 ms.\n\n## Limits\n- Never touch the table users.\nIt named " +
		"made/up/path.go."
	b := "See https://example.com/a and commit 3f2a91c; internal/store/run.go is done; `retryFor` was set."
	got := compareSummaries(nil, source, a, b)
	want := SummaryFacts{
		OnlyA: []Mention{{MentionConstraint, "Never touch the table users.", 1}, {MentionNumber, "30 ms", 2}},
		OnlyB: []Mention{
			{MentionIdentifier, "https://example.com/a", 2},
			{MentionIdentifier, "3f2a91c", 2},
			{MentionIdentifier, "retryFor", 2},
		},
		Both: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if same := compareSummaries(nil, source, a, a); same.OnlyA != nil || same.OnlyB != nil || same.Both != 3 {
		t.Errorf("a summary differs from itself: %+v", same)
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, summary string
		want          []Section
	}{
		{"none", "", nil},
		{"no heading", "All is done.\n", []Section{{"", "All is done.", 12}}},
		{
			"markdown", "Before.\n## Goal\nMake it.\n\n### Work done\nHalf.\n",
			[]Section{{"", "Before.", 7}, {"Goal", "Make it.", 8}, {"Work done", "Half.", 5}},
		},
		{
			"numbered with text behind", "1. Primary request: make it\n2. Errors:\n- one\n",
			[]Section{{"1. Primary request", "make it", 7}, {"2. Errors", "- one", 5}},
		},
		{"bold", "**Goal**\nMake it.\n", []Section{{"Goal", "Make it.", 8}}},
	} {
		if diff := cmp.Diff(tt.want, Sections(tt.summary)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Sections lose no word, and comparing is symmetric, whatever the summaries are.
func TestSectionsAndFactsOfAnything(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"## Goal", "\n", "1. Request: ", "**Bold**", "word ", "`name` ", "a/b/c.go ",
		"20 ms ", ": ", "#", "Never do that. ",
	})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"),
			"")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, said := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "said")
		var words strings.Builder
		for _, s := range Sections(a) {
			words.WriteString(s.Title + " " + s.Text + " ")
		}
		for _, word := range []string{"Goal", "Request", "Bold", "word", "name", "c.go", "20 ms", "Never do that."} {
			if want, got := strings.Count(a, word), strings.Count(words.String(), word); got != want {
				t.Fatalf("%q occurs %d times in %q and %d times in its sections", word, want, a, got)
			}
		}
		source := []Message{{Role: RoleUser, Parts: []Part{{Kind: PartText, Text: said}}}}
		one, other := compareSummaries(nil, source, a, b), compareSummaries(nil, source, b, a)
		if len(one.OnlyA) != len(other.OnlyB) || len(one.OnlyB) != len(other.OnlyA) || one.Both != other.Both {
			t.Fatalf("%+v one way, %+v the other", one, other)
		}
	})
}
