package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func itemsOf(ms ...Message) []ContextItem {
	items := make([]ContextItem, len(ms))
	for i := range ms {
		items[i].Message = &ms[i]
	}
	return items
}

// resultTexts gives what is left of the text of each tool result.
func resultTexts(items []ContextItem) []string {
	var texts []string
	for _, item := range items {
		if item.Message == nil {
			continue
		}
		for i, p := range item.Message.Parts {
			if p.Kind == PartToolResult {
				text, _ := func() (string, bool) { v := viewResult(p, newEditIndex(item.Edits)[i]); return v.text() }()
				texts = append(texts, text)
			}
		}
	}
	return texts
}

func TestTrimIdentity(t *testing.T) {
	t.Parallel()
	items := itemsOf(numbered(
		textMessage(RoleSystem, "SYS"),
		textMessage(RoleUser, "weather?"),
		callMessage("", "w1", "w", `{"a": 1}`),
		resultMessage("w1", "sunny"),
	)...)
	got, stats := trim(nil, items, DefaultSettings(), tokenCounts{})
	if diff := cmp.Diff(items, got); diff != "" || stats != (TrimStats{}) {
		t.Errorf("%+v\n%s", stats, diff)
	}
}

func TestTrimBinaries(t *testing.T) {
	t.Parallel()
	const size = 141_312
	nested := quoted(map[string]any{"ok": true, "body": quoted(map[string]string{"png": encoded(size)})})
	shot := Message{Role: RoleTool, Parts: []Part{{Kind: PartToolResult, CallID: "b", Content: []Part{
		{Kind: PartText, Text: "taken"},
		{Kind: PartImage, Bytes: size, Width: 1000, Height: 800},
		{Kind: PartImage, Width: 10, Height: 10}, // by address
	}}}}
	pasted := textMessage(RoleUser, "like this")
	pasted.Parts = append(pasted.Parts, Part{Kind: PartImage, Bytes: size})
	ms := numbered(
		pasted,
		callMessage("", "a", "fetch", "{}"), resultMessage("a", nested),
		callMessage("", "b", "shot", "{}"), shot,
	)
	want := `{"body":"{\"png\":\"[binary omitted: ~138 KB]\"}","ok":true}`

	// During the turn the model sees the screenshot; the base64 it could never read.
	got, stats := trim(nil, itemsOf(ms...), DefaultSettings(), tokenCounts{})
	if text := resultTexts(got)[0]; text != want || !json.Valid([]byte(text)) {
		t.Errorf("got %s", text)
	}
	if len(got[0].Edits) > 0 || len(got[4].Edits) > 0 {
		t.Error("an image that the model has yet to see was taken out")
	}
	if stats.Binaries != 1 || stats.SavedTokens < size/2 {
		t.Errorf("%+v", stats)
	}

	// In the next turn the screenshot goes; what the user pasted and what is only an address stay.
	got, stats = trim(nil, itemsOf(append(ms, textMessage(RoleUser, "next"))...), DefaultSettings(), tokenCounts{})
	wantEdits := []Edit{{Part: 0, Content: 1, Op: EditReplace, Text: "[binary omitted: ~138 KB]"}}
	if diff := cmp.Diff(wantEdits, got[4].Edits); diff != "" || len(got[0].Edits) > 0 || stats.Binaries != 2 {
		t.Errorf("%+v\n%s", stats, diff)
	}
}

// A content that is left out stays left out where something else of its result is trimmed: an empty text in its
// place is one that Anthropic refuses.
func TestTrimKeepsDrops(t *testing.T) {
	t.Parallel()
	result := Message{Role: RoleTool, Parts: []Part{{Kind: PartToolResult, CallID: "a", Content: []Part{
		{Kind: PartText, Text: " "},
		{Kind: PartText, Text: png(9000)},
		{Kind: PartText, Text: strings.Repeat("words ", 1000)},
	}}}}
	ms := numbered(textMessage(RoleUser, "go"), callMessage("", "a", "f", "{}"), result)
	s := DefaultSettings()
	s.MaxToolResultTokens = 100
	c := buildContext(nil, ContextInput{Live: ms, Settings: s, Vendor: "anthropic"})
	for i, e := range c.Items[2].Edits {
		if e.Content != i || (e.Op == EditDrop) != (i == 0) || e.Op == EditReplace && e.Text == "" {
			t.Errorf("edits %+v", c.Items[2].Edits)
		}
	}

	// As one text, the result does not begin with what was left out.
	s.ToolResultKeepTurns, s.MaxToolResultTokens = 1, 0
	c = buildContext(nil, ContextInput{
		Live: append(ms, textMessage(RoleUser, "next")), Settings: s,
		Vendor: "anthropic",
	})
	if edits := c.Items[2].Edits; len(edits) != 1 ||
		!strings.HasPrefix(edits[0].Text, "[binary omitted: ~9 KB]\nwords") {
		t.Errorf("edits %+v", edits)
	}
}

// A result that occurs twice, once of no use and left out, does not part a call from its result.
func TestTrimDropsTurnsByWhatIsSent(t *testing.T) {
	t.Parallel()
	both := resultMessage("a", "late")
	both.Parts = append(both.Parts,
		Part{Kind: PartToolResult, CallID: "b", Content: []Part{{Kind: PartText, Text: "found"}}})
	mixed := Message{
		Role:  RoleUser,
		Parts: []Part{resultMessage("a", "found").Parts[0], {Kind: PartText, Text: "and this"}},
	}
	call := callMessage("", "a", "f", "{}")
	call.Parts = append(call.Parts, callMessage("", "b", "f", "{}").Parts...)
	s := DefaultSettings()
	s.MaxInputTokens = 30
	c := buildContext(nil, ContextInput{
		Live:     numbered(textMessage(RoleUser, strings.Repeat("go ", 30)), call, mixed, both),
		Settings: s, Vendor: "anthropic",
	})
	if got, want := shown(c), "user agent+a+b tool:b user:a LATE"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTrimPreviews(t *testing.T) {
	t.Parallel()
	ms := workday(8, 8000)
	s := DefaultSettings()
	got, stats := trim(nil, itemsOf(ms...), s, tokenCounts{})
	texts := resultTexts(got)
	for i, text := range texts {
		isPreview := strings.HasSuffix(text, "chars; call the tool again if the rest is needed]")
		if old := i < 3; isPreview != old { // 8 turns, the last 5 in full
			t.Errorf("turn %d: preview %v: %.80q", i, isPreview, text)
		}
	}
	if want := "TOOLTEXT-0 " + strings.Repeat("abc ", 75)[:289] +
		"\n[... truncated, 7711 chars; call the tool again if the rest is needed]"; texts[0] != want {
		t.Errorf("got %q\nwant %q", texts[0], want)
	}
	if stats.ToolResults != 3 || stats.SavedTokens < 3*1800 || stats.SavedTokens > 3*2100 {
		t.Errorf("%+v", stats)
	}

	s.ToolResultKeepTurns = 0 // always in full
	if got, stats = trim(nil, itemsOf(ms...), s, tokenCounts{}); stats != (TrimStats{}) ||
		resultTexts(got)[0] != ms[2].Parts[0].Content[0].Text {
		t.Errorf("%+v", stats)
	}
	s = DefaultSettings()
	s.ToolResultPreviewChars = 8011
	if _, stats = trim(nil, itemsOf(ms...), s, tokenCounts{}); stats != (TrimStats{}) {
		t.Errorf("not over the limit: %+v", stats)
	}
}

func TestTrimCapsResults(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.MaxToolResultTokens = 500
	ms := numbered(
		textMessage(RoleUser, "go"),
		callMessage("", "a", "run", "{}"), resultMessage("a", "START "+strings.Repeat("漢字 and words ", 20_000)+" END"),
		callMessage("", "b", "run", "{}"), resultMessage("b", "small"),
	)
	got, stats := trim(nil, itemsOf(ms...), s, tokenCounts{})
	text := resultTexts(got)[0]
	if n := EstimateText(text); n > 500 || n < 400 {
		t.Errorf("%d tokens are left", n)
	}
	if !strings.HasPrefix(text, "START ") || !strings.HasSuffix(text, " END") ||
		!strings.Contains(text, " chars omitted]…") {
		t.Errorf("got %q", text)
	}
	if stats.ToolResults != 1 || len(got[4].Edits) > 0 {
		t.Errorf("%+v", stats)
	}
}

func TestTrimBudget(t *testing.T) {
	t.Parallel()
	ms := append([]Message{textMessage(RoleSystem, "SYS")}, workday(10, 4000)...)
	items := append(itemsOf(ms[0]), ContextItem{Made: &Made{Role: RoleUser, Kind: KindSummary, Text: "SUM"}})
	items = append(items, itemsOf(ms[1:]...)...)
	s := DefaultSettings()
	s.ToolResultKeepTurns = 0
	total := 0
	for _, item := range items {
		total += EstimateItem(item)
	}
	for budget := 1; budget < total+100; budget += 97 {
		s.MaxInputTokens = budget
		got, stats := trim(nil, items, s, tokenCounts{})
		if got[0].Message != items[0].Message || got[1].Made == nil || got[1].Made.Text != "SUM" {
			t.Fatalf("budget %d: the head is missing", budget)
		}
		// What is left is whole turns, the newest.
		kept := (len(got) - 2) / 4
		if len(got) != 2+4*kept || kept < 1 || stats.DroppedTurns != 10-kept {
			t.Fatalf("budget %d: %d items, %+v", budget, len(got), stats)
		}
		if diff := cmp.Diff(items[len(items)-4*kept:], got[2:]); diff != "" {
			t.Fatalf("budget %d: %s", budget, diff)
		}
		left := 0
		for _, item := range got {
			left += EstimateItem(item)
		}
		if left > budget && kept > 1 {
			t.Errorf("budget %d: %d tokens and %d turns are left", budget, left, kept)
		}
		if total-stats.SavedTokens != left {
			t.Errorf("budget %d: said to save %d of %d, %d are left", budget, stats.SavedTokens, total, left)
		}
		if budget >= total && kept != 10 {
			t.Errorf("budget %d of %d: dropped %d turns", budget, total, 10-kept)
		}
	}
	// Without a budget nothing goes: a full context is for a compaction.
	s.MaxInputTokens = 0
	if _, stats := trim(nil, items, s, tokenCounts{}); stats.DroppedTurns != 0 {
		t.Errorf("without a budget %d turns were dropped", stats.DroppedTurns)
	}
}

// A user message that answers a call of the turn before keeps that turn, and one that nobody answered stays
// with the next.
func TestTrimBudgetKeepsUnits(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("word ", 2000)
	both := textMessage(RoleUser, "and also")
	both.Parts = append([]Part{{Kind: PartToolResult, CallID: "x", Content: []Part{{Kind: PartText, Text: "done"}}}},
		both.Parts...)
	ms := numbered(
		textMessage(RoleUser, "first "+big), textMessage(RoleAssistant, "ok"),
		textMessage(RoleUser, "second "+big), callMessage("", "x", "run", "{}"),
		both, textMessage(RoleAssistant, big),
		textMessage(RoleUser, "unanswered "+big),
		textMessage(RoleUser, "last"),
	)
	s := DefaultSettings()
	s.MaxInputTokens = 7000
	got, stats := trim(nil, itemsOf(ms...), s, tokenCounts{})
	if len(got) != 6 || got[0].Message.Seq != 3 || stats.DroppedTurns != 1 {
		t.Errorf("%d items from %d, %+v", len(got), got[0].Message.Seq, stats)
	}
	s.MaxInputTokens = 10
	got, stats = trim(nil, itemsOf(ms...), s, tokenCounts{})
	if len(got) != 2 || got[0].Message.Seq != 7 || stats.DroppedTurns != 3 {
		t.Errorf("%d items from %d, %+v", len(got), got[0].Message.Seq, stats)
	}
}

// Some agents store a call and its result as one: such a result is trimmed as any other.
func TestTrimResultsBesideTheirCalls(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("a line of what was read\n", 500)
	ms := []Message{textMessage(RoleUser, "0"), {Role: RoleAssistant, Parts: []Part{
		{Kind: PartText, Text: "Reading."},
		{Kind: PartToolCall, Type: "tool", CallID: "c", Name: "read", Input: "{}"},
		{
			Kind: PartToolResult, Type: "tool_result", CallID: "c", Name: "read",
			Content: []Part{{Kind: PartText, Text: big}},
		},
	}}}
	for i := range 9 {
		ms = append(ms, textMessage(RoleUser, fmt.Sprint(i)))
	}
	got, stats := trim(nil, itemsOf(numbered(ms...)...), DefaultSettings(), tokenCounts{})
	if texts := resultTexts(got); stats.ToolResults != 1 || len(texts[0]) > 1000 || len(got[1].Edits) != 1 ||
		got[1].Edits[0].Part != 2 {
		t.Errorf("%+v, edits %+v", stats, got[1].Edits)
	}
}

// The vendor's own results, inside of an assistant message, go back as they came.
func TestTrimLeavesServerResults(t *testing.T) {
	t.Parallel()
	server := Message{Role: RoleAssistant, Parts: []Part{
		{Kind: PartToolCall, Type: "server_tool_use", CallID: "s", Name: "web_search"},
		{
			Kind: PartToolResult, Type: "web_search_tool_result", CallID: "s",
			Content: []Part{{Kind: PartText, Text: encoded(20_000)}},
		},
	}}
	ms := []Message{textMessage(RoleUser, "0"), server}
	for i := range 9 {
		ms = append(ms, textMessage(RoleUser, fmt.Sprint(i)))
	}
	if got, stats := trim(nil, itemsOf(numbered(ms...)...), DefaultSettings(), tokenCounts{}); stats != (TrimStats{}) ||
		len(got[1].Edits) > 0 {
		t.Errorf("%+v", stats)
	}
}

func genSettings() *rapid.Generator[Settings] {
	return rapid.Custom(func(t *rapid.T) Settings {
		s := DefaultSettings()
		s.ToolResultKeepTurns = rapid.IntRange(0, 3).Draw(t, "keep")
		s.ToolResultPreviewChars = rapid.SampledFrom([]int{0, 1, 50, 400, 2000}).Draw(t, "preview")
		s.MaxToolResultTokens = rapid.SampledFrom([]int{0, 0, 1, 3, 50}).Draw(t, "cap")
		return s
	})
}

func genItems(most int) *rapid.Generator[[]ContextItem] {
	return rapid.Custom(func(t *rapid.T) []ContextItem {
		items := itemsOf(genMessages(most).Draw(t, "messages")...)
		if rapid.Bool().Draw(t, "summary") {
			items = append([]ContextItem{{Made: &Made{Role: RoleUser, Kind: KindSummary, Text: "SUM"}}}, items...)
		}
		if rapid.Bool().Draw(t, "closed") {
			items = append(items, ContextItem{Made: &Made{Role: RoleTool, CallID: "a", Text: "never answered"}})
		}
		return items
	})
}

func TestTrimTwiceIsTrimOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := genItems(12).Draw(t, "items")
		s := genSettings().Draw(t, "settings")
		s.MaxInputTokens = rapid.SampledFrom([]int{0, 1, 200, 5000}).Draw(t, "budget")
		before := quoted(items)
		once, stats := trim(nil, items, s, tokenCounts{})
		if quoted(items) != before {
			t.Fatal("the input was changed")
		}
		twice, again := trim(nil, once, s, tokenCounts{})
		if again.DroppedTurns > 0 && stats.DroppedTurns == 0 || again.Binaries+again.ToolResults > 0 {
			t.Fatalf("the second time did more: %+v", again)
		}
		if again.DroppedTurns == 0 && quoted(once) != quoted(twice) {
			t.Fatalf("%s\nthen\n%s", quoted(once), quoted(twice))
		}
		if stats.SavedTokens < 0 && stats.Binaries == 0 {
			t.Fatalf("%+v", stats)
		}
	})
}

// Within a turn the context only grows at its end, and what is touched are results of tools, of no head and,
// but for base64 and the cap, of no last turn.
func TestTrimIsPrefixStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := genItems(10).Draw(t, "items")
		s := genSettings().Draw(t, "settings")
		before, _ := trim(nil, items, s, tokenCounts{})
		var more []ContextItem
		for _, item := range genItems(5).Draw(t, "more") {
			if item.Message != nil && !item.Message.Genuine() {
				more = append(more, item)
			}
		}
		after, _ := trim(nil, append(items[:len(items):len(items)], more...), s, tokenCounts{})
		if a, b := quoted(before), quoted(after[:len(before)]); a != b {
			t.Fatalf("%s\nbecame\n%s", a, b)
		}
		turns := turnsOf(items)
		for i, item := range before {
			for _, e := range item.Edits {
				m := item.Message
				if m == nil || m.Parts[e.Part].Kind != PartToolResult || turns.of[i] == noTurn ||
					m.Role == RoleAssistant {
					t.Fatalf("item %d was edited: %+v", i, e)
				}
				if e.Text == "" {
					t.Fatalf("item %d has an empty text: %+v", i, e)
				}
				if turns.of[i] == turns.last && s.MaxToolResultTokens == 0 &&
					!strings.Contains(e.Text, "[binary omitted") {
					t.Fatalf("item %d is in the last turn: %+v", i, e)
				}
			}
		}
	})
}

// Mid-turn the input budget moves the start of the context in steps, not with every message.
func TestTrimBudgetMovesInSteps(t *testing.T) {
	t.Parallel()
	ms := workday(40, 400)
	ms = append(ms, textMessage(RoleUser, "the long one"))
	s := DefaultSettings()
	s.MaxInputTokens = 5000
	var first []byte
	moves := 0
	for i := range 60 {
		got, _ := trim(nil, itemsOf(append(ms[:len(ms):len(ms)], steps(i)...)...), s, tokenCounts{})
		start := []byte(quoted(got[0]))
		if i > 0 && !bytes.Equal(start, first) {
			moves++
		}
		first = start
	}
	if moves == 0 || moves > 10 {
		t.Errorf("the start moved %d times in 60 steps", moves)
	}
}

func steps(n int) []Message {
	var ms []Message
	for i := range n {
		id := fmt.Sprintf("step%d", i)
		ms = append(ms, callMessage("", id, "run", "{}"), resultMessage(id, strings.Repeat("out ", 60)))
	}
	return ms
}

func BenchmarkTrim(b *testing.B) {
	ms := workday(200, 8000)
	for i := range ms {
		ms[i].Tokens = EstimateMessage(ms[i])
	}
	items := itemsOf(ms...)
	s := DefaultSettings()
	for b.Loop() {
		trim(nil, items, s, tokenCounts{})
	}
}
