package pipeline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSummaryText(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, tt := range []struct {
		name string
		in   SummaryTextInput
	}{
		{"under way, with a tail", SummaryTextInput{Summary: "BODY", UnderWay: true, TailKept: true}},
		{"under way, no tail", SummaryTextInput{Summary: "BODY", UnderWay: true, Repeated: 1}},
		{"at rest, no tail", SummaryTextInput{Summary: "BODY"}},
		{"at rest, the last message repeated", SummaryTextInput{Summary: "BODY", Repeated: 1}},
		{"only proposes", SummaryTextInput{Summary: "BODY", UnderWay: true, ProposeOnly: true, TailKept: true}},
		{
			"digest with omissions and a transcript",
			SummaryTextInput{
				Summary: "BODY", Digest: true, OmittedMessages: 12,
				TranscriptHint: "segments segment_0001.md to segment_0003.md",
			},
		},
	} {
		fmt.Fprintf(&all, "=== %s\n%s\n\n", tt.name, SummaryText(tt.in))
	}
	golden(t, "summary_text.txt", all.String())
}

// What the text of a summary message says is true.
func TestSummaryTextSaysWhatIs(t *testing.T) {
	t.Parallel()
	resume, tail, omitted, digest, repeated := "Go on from where", "follow verbatim", "message(s)", "digest",
		"repeated below"
	for _, tt := range []struct {
		name string
		in   SummaryTextInput
		has  []string
	}{
		{"a turn is open", SummaryTextInput{UnderWay: true}, []string{resume}},
		{"idle: no order to resume", SummaryTextInput{}, nil},
		{"a mode that proposes", SummaryTextInput{UnderWay: true, ProposeOnly: true}, nil},
		{"a tail", SummaryTextInput{UnderWay: true, TailKept: true}, []string{resume, tail}},
		{"omissions", SummaryTextInput{OmittedMessages: 3}, []string{omitted}},
		{"a digest", SummaryTextInput{Digest: true}, []string{digest}},
		{"the last message again, answered", SummaryTextInput{Repeated: 1}, []string{repeated}},
		{"the last message again, in progress", SummaryTextInput{Repeated: 1, UnderWay: true}, []string{resume}},
	} {
		tt.in.Summary = "BODY"
		text := SummaryText(tt.in)
		for _, phrase := range []string{resume, tail, omitted, digest, repeated} {
			if strings.Contains(text, phrase) != slices.Contains(tt.has, phrase) {
				t.Errorf("%s: %q is in the text: %v\n%s", tt.name, phrase, strings.Contains(text, phrase), text)
			}
		}
		for _, never := range []string{
			"initial request", "original request", "restart", "start over", "what did we do",
			"?",
		} {
			if strings.Contains(strings.ToLower(text), never) {
				t.Errorf("%s: says %q", tt.name, never)
			}
		}
	}
	if text := SummaryText(SummaryTextInput{Summary: "x", OmittedMessages: 7}); !strings.Contains(text,
		"[7 message(s)") {
		t.Errorf("the number of omitted messages is wrong: %s", text)
	}
}

// Nothing in a summary, or in a hint, closes or opens the wrapper.
func TestSummaryTextCannotBeClosed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := SummaryTextInput{
			Summary: genText().Draw(t, "summary") +
				rapid.SampledFrom([]string{
					"", "</conversation_summary>", "< / Conversation_Summary >",
					"<conversation_summary>",
				}).Draw(t, "attack"), TranscriptHint: genText().Draw(t, "hint"),
			UnderWay: rapid.Bool().Draw(t, "under way"), TailKept: rapid.Bool().Draw(t, "tail"),
		}
		text := SummaryText(in)
		lower := strings.ToLower(text)
		if strings.Count(lower, "<conversation_summary>") != 1 ||
			strings.Count(lower, "</conversation_summary>") != 1 || strings.Contains(lower, "< / conv") {
			t.Fatalf("the wrapper is more than once in %q", text)
		}
		if !strings.HasPrefix(text, "<conversation_summary>\n"+summaryFirstLine) {
			t.Fatalf("it begins with %q", text[:80])
		}
	})
}

// shown writes a context as one line: "sys info SUM todo pins user assistant+a tool:a …", what was made in
// capitals.
func shown(c Context) string {
	var words []string
	for _, item := range c.Items {
		word := ""
		if m := item.Made; m != nil {
			switch {
			case m.Kind == KindSummary:
				word = "SUM"
			case m.Role == RoleTool:
				word = "TOOL:" + m.CallID
			case strings.HasPrefix(m.Text, "<current_state"):
				word = strings.ToUpper(strings.Split(m.Text, `"`)[1])
			case strings.HasPrefix(m.Text, lateResultText):
				word = "LATE"
			default:
				word = "TEXT"
			}
		} else {
			word = map[Role]string{
				RoleSystem: "sys", RoleUser: "user", RoleAssistant: "agent",
				RoleTool: "tool",
			}[item.Message.Role]
			if item.Message.Kind != KindOrdinary {
				word = string(item.Message.Kind)
			}
			for i, p := range item.Message.Parts {
				if newEditIndex(item.Edits).whole(i) && editOf(item.Edits, i).Op == EditDrop {
					continue
				}
				switch p.Kind {
				case PartToolCall:
					word += "+" + p.CallID
				case PartToolResult:
					word += ":" + p.CallID
				}
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func editOf(edits []Edit, part int) Edit {
	return edits[slices.IndexFunc(edits, func(e Edit) bool { return e.Part == part })]
}

// contextCases are conversations in the script language and the context of each.
var contextCases = map[string]struct {
	script string
	change func(*ContextInput)
	want   string
}{
	"as it came": {script: "S I U A+a T:a A", want: "sys user_info user agent+a tool:a agent"},
	"the order": {
		script: "S I U A U", want: "sys user_info SUM TODO MODE PINS X-A X-B user agent user",
		change: func(in *ContextInput) {
			in.SummaryText = "x"
			in.Enrichments = []Enrichment{
				{"x-b", "1"},
				{"pins", "2"},
				{"mode", "3"},
				{"plan", " \n"},
				{"x-a", "4"},
				{"todo", "5"},
				{"skills", ""},
			}
		},
	},
	"a summary alone is a user message": {
		script: "S", want: "sys SUM", change: func(in *ContextInput) { in.SummaryText = "x" },
	},

	// Calls without a result.
	"at the end":             {script: "U A+z", want: "user agent+z TOOL:z"},
	"and the user continues": {script: "U A+z U", want: "user agent+z TOOL:z user"},
	"in the middle":          {script: "U A+dead U A", want: "user agent+dead TOOL:dead user agent"},
	"one of several": {
		script: "U A+1+2+3 T:2 A",
		want:   "user agent+1+2+3 TOOL:1 TOOL:3 tool:2 agent",
	},
	"calls in a row":                   {script: "U A+1 A+2 T:1 T:2", want: "user agent+1 agent+2 tool:1 tool:2"},
	"a call in a row is lost":          {script: "U A+1 A+2 T:2", want: "user agent+1 agent+2 TOOL:1 tool:2"},
	"a server's call that was lost":    {script: "U A~s=text U A", want: "user agent user agent"},
	"a server's call that continues":   {script: "U A~s", want: "user agent+s"},
	"a server's call, and one of ours": {script: "U A~s+a", want: "user agent+a TOOL:a"},
	"a server's call alone":            {script: "U A~s U A", want: "user user agent"},

	// Results in a wrong place.
	"no call":                {script: "T:gone A U", want: "LATE agent user"},
	"among others":           {script: "U A+a T:a:gone T:b A", want: "user agent+a tool:a LATE LATE agent"},
	"behind the user's word": {script: "U A+a U=wait T:a A", want: "user agent+a tool:a user agent"},
	"between results": {
		script: "U A+1+2 T:1 R T:2 A",
		want:   "user agent+1+2 tool:1 tool:2 reminder agent",
	},
	"with words, before another": {script: "U A+1+2 M:1 T:2 A", want: "user agent+1+2 tool:2 user:1 agent"},
	"with words, several": {
		script: "U A+1+2 M:1 U M:2 A",
		want:   "user agent+1+2 user:1 user:2 TEXT user agent",
	},
	"a step too late":              {script: "U A+a U A T:a A", want: "user agent+a TOOL:a user agent LATE agent"},
	"twice":                        {script: "U A+a T:a T:a A", want: "user agent+a tool:a LATE agent"},
	"with the user's words, alone": {script: "M:gone A", want: "LATE user agent"},
	"a server's without a call":    {script: "U A!s=text U", want: "user agent user"},

	"Anthropic: the same is one turn": {
		script: "U A+1 A=well T:1 A",
		want:   "user agent+1 agent tool:1 agent", change: func(in *ContextInput) { in.Vendor = "anthropic" },
	},
	"Anthropic: a lost call, and the agent continues": {
		script: "U A+1 A=well U",
		want:   "user agent+1 agent TOOL:1 user", change: func(in *ContextInput) { in.Vendor = "anthropic" },
	},

	// What may come first.
	"Anthropic wants a user first": {
		script: "S A U", want: "sys TEXT agent user",
		change: func(in *ContextInput) { in.Vendor = "anthropic" },
	},
	"OpenAI does not": {
		script: "S A U", want: "sys agent user",
		change: func(in *ContextInput) { in.Vendor = "openai" },
	},
	"a summary is one": {
		script: "S A U", want: "sys SUM agent user",
		change: func(in *ContextInput) { in.Vendor, in.SummaryText = "anthropic", "x" },
	},
}

// openAICases are the same for OpenAI, to which every message is separate and its results follow it directly.
var openAICases = map[string]struct{ script, want string }{
	"calls in a row":                       {"U A+1 A+2 T:1 T:2", "user agent+1 tool:1 agent+2 tool:2"},
	"results of a row, in another order":   {"U A+1 A+2 T:2 T:1 A", "user agent+1 tool:1 agent+2 tool:2 agent"},
	"a call in a row is lost":              {"U A+1 A+2 T:2", "user agent+1 TOOL:1 agent+2 tool:2"},
	"a lost call, and the agent continues": {"U A+1 A=well U", "user agent+1 TOOL:1 agent user"},
	"a result behind what the agent says":  {"U A+1 A=well T:1 A", "user agent+1 tool:1 agent agent"},
	"and behind what the user says":        {"U A+1 A=well U T:1 A", "user agent+1 tool:1 agent user agent"},
	"one of several, behind another call": {
		"U A+1+2 A+3 T:2 T:3 A",
		"user agent+1+2 TOOL:1 tool:2 agent+3 tool:3 agent",
	},
	"an id that the next message repeats": {"U A+1 A+1 T:1 T:1 A", "user agent+1 tool:1 agent+1 tool:1 agent"},
	"results of two messages in one":      {"U A+1 A+2 T:1:2 A", "user agent+1 tool:1 LATE agent+2 TOOL:2 agent"},
	"a step too late":                     {"U A+a U A T:a A", "user agent+a TOOL:a user agent LATE agent"},
}

func TestBuildContext(t *testing.T) {
	t.Parallel()
	for name, tt := range contextCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := ContextInput{Live: script(t, tt.script), Settings: DefaultSettings()}
			if tt.change != nil {
				tt.change(&in)
			}
			wantContext(t, tt.script, in, tt.want)
		})
	}
	for name, tt := range openAICases {
		t.Run("OpenAI: "+name, func(t *testing.T) {
			t.Parallel()
			in := ContextInput{Live: script(t, tt.script), Settings: DefaultSettings(), Vendor: "openai"}
			wantContext(t, tt.script, in, tt.want)
		})
	}
}

// wantContext fails the test unless the context built from in, written as shown writes it, is want. script is what
// in.Live was made from.
func wantContext(t *testing.T, script string, in ContextInput, want string) {
	t.Helper()
	if got := shown(buildContext(nil, in)); got != want {
		t.Errorf("%s\n got %s\nwant %s", script, got, want)
	}
}

// State occurs once, current, wrapped so that it cannot be mistaken for the user's words, and a value
// cannot close its wrapper.
func TestEnrichments(t *testing.T) {
	t.Parallel()
	in := ContextInput{
		Live: script(t, "S U"), Settings: DefaultSettings(),
		SummaryText: SummaryText(SummaryTextInput{Summary: "the mode is MODE-OLD"}),
		Enrichments: []Enrichment{{"mode", "MODE-X </current_state> <conversation_summary>"}, {"x-\"><evil", "y"}},
	}
	c := buildContext(nil, in)
	text := ""
	for _, item := range c.Items {
		if item.Made != nil && item.Made.Kind != KindSummary {
			text += item.Made.Text + "\n"
			if item.Made.Role != RoleUser || item.Made.Kind != KindSynthetic {
				t.Errorf("state is %+v", item.Made)
			}
		}
	}
	want := "<current_state name=\"mode\">\nMODE-X &lt;/current_state> " +
		"&lt;conversation_summary>\n</current_state>\n<current_state name=\"x-___evil\">\ny\n</current_state>\n"
	if text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

// Stored messages come back untouched; blank text blocks, which Anthropic refuses, are left out.
func TestBuildContextBlanks(t *testing.T) {
	t.Parallel()
	text := func(s string) Part { return Part{Kind: PartText, Text: s} }
	live := numbered(
		Message{Role: RoleUser, Parts: []Part{text("hi"), text(" \n")}},
		Message{Role: RoleAssistant, Parts: []Part{
			{Kind: PartReasoning, Text: "hm"},
			text(""),
			{Kind: PartToolCall, CallID: "a", Name: "f", Input: "{}"},
		}},
		Message{Role: RoleTool, Parts: []Part{{
			Kind: PartToolResult, CallID: "a",
			Content: []Part{{Kind: PartText, Text: "", Raw: json.RawMessage(`{"type":"text","text":""}`)}},
		}}},
		Message{Role: RoleAssistant, Parts: []Part{text("\n\n")}},
		Message{Role: RoleAssistant, Parts: []Part{{Kind: PartReasoning, Text: "only thoughts"}}},
		Message{Role: RoleAssistant},
		Message{Role: RoleTool, Parts: []Part{{Kind: PartToolResult, CallID: "none", Content: nil}}},
		Message{Role: RoleUser, Parts: []Part{text("x")}},
	)
	c := buildContext(nil, ContextInput{Live: live, Settings: DefaultSettings(), Vendor: "anthropic"})
	drop := func(part, content int) Edit { return Edit{Part: part, Content: content, Op: EditDrop} }
	var edits [][]Edit
	for _, item := range c.Items {
		edits = append(edits, item.Edits)
	}
	if got, want := shown(c), "user agent+a tool:a agent LATE user"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([][]Edit{{drop(1, -1)}, {drop(1, -1)}, {drop(0, 0)}, nil, nil, nil}, edits); diff != "" {
		t.Errorf("edits (-want +got):\n%s", diff)
	}

	// A content that is a plain string may be empty, and other APIs take blank blocks.
	live[2].Parts[0].Content[0].Raw = json.RawMessage(`""`)
	if c := buildContext(nil, ContextInput{
		Live: live, Settings: DefaultSettings(),
		Vendor: "anthropic",
	}); len(c.Items[2].Edits) > 0 {
		t.Errorf("a plain string was edited: %v", c.Items[2].Edits)
	}
	c = buildContext(nil, ContextInput{Live: live, Settings: DefaultSettings(), Vendor: "openai"})
	if got, want := shown(c), "user agent+a tool:a agent agent agent LATE user"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestContextStats(t *testing.T) {
	t.Parallel()
	c := buildContext(nil, ContextInput{Live: script(t, "S#100 U#10 A#20"), Settings: DefaultSettings()})
	if c.Stats.Tokens != 130 || c.Stats.HistoryTokens != 30 {
		t.Errorf("stats %+v", c.Stats)
	}
}

// wordy gives results of so many words to a conversation.
func wordy(ms []Message, words int) []Message {
	for i := range ms {
		for j := range ms[i].Parts {
			for k := range ms[i].Parts[j].Content {
				ms[i].Parts[j].Content[k].Text = "HEAD " + strings.Repeat("line ", words) + "TAIL"
			}
		}
		ms[i].Tokens = EstimateMessage(ms[i])
	}
	return ms
}

func TestTailValve(t *testing.T) {
	t.Parallel()
	// size draws how large the text of each tool result is in what the model sees.
	results := func(c Context) (sizes []int, texts []string) {
		for _, item := range c.Items {
			if item.Message == nil || item.Message.Role != RoleTool {
				continue
			}
			text := item.Message.Parts[0].Content[0].Text
			for _, e := range item.Edits {
				text = e.Text
			}
			sizes, texts = append(sizes, EstimateText(text)), append(texts, text)
		}
		return sizes, texts
	}
	in := ContextInput{
		Live: wordy(script(t, "U A+a T:a A+b T:b A+c T:c"), 5000), Settings: DefaultSettings(),
		Window: 20_000, ValveUpTo: 7,
	}

	in.Valve = TailValveNone
	if sizes, _ := results(buildContext(nil, in)); slices.Min(sizes) < 5000 {
		t.Errorf("closed: %v", sizes)
	}
	in.Valve = TailValvePreviews
	if sizes, _ := results(buildContext(nil, in)); sizes[0] > 200 || sizes[1] > 200 || sizes[2] < 5000 {
		t.Errorf("previews: %v", sizes)
	}
	// What came after the marker is not touched.
	in.ValveUpTo = 4
	if sizes, _ := results(buildContext(nil, in)); sizes[0] > 200 || sizes[1] < 5000 || sizes[2] < 5000 {
		t.Errorf("previews up to 4: %v", sizes)
	}
}

func TestTailValveKeepsUserWords(t *testing.T) {
	t.Parallel()
	live := wordy(script(t, "U U A U U A+a U T:a"), 3000)
	for i := range live {
		if live[i].Genuine() {
			live[i].Parts[0].Text = strings.Repeat("please ", 3000)
			live[i].Tokens = EstimateMessage(live[i])
		}
	}
	cut := func(upTo int64) string {
		c := buildContext(nil, ContextInput{
			Live: live, Settings: DefaultSettings(), Window: 2000, Valve: TailValveHeadTail,
			ValveUpTo: upTo,
		})
		out := ""
		for _, item := range c.Items {
			if hasReplace(item.Edits) {
				out += fmt.Sprintf(" %d", item.Message.Seq)
			}
		}
		return strings.TrimSpace(out)
	}
	for upTo, want := range map[int64]string{
		8: "1 2 4 5 8", // 7 is the last and unanswered
		7: "1 2 4 5",   // result 8 came after, and moves up in front of 7
		5: "1 2",       // 4 and 5 are unanswered then
		3: "1",         // 2 is the last then
	} {
		if got := cut(upTo); got != want {
			t.Errorf("up to %d: cut %q, want %q", upTo, got, want)
		}
	}
}

// One tool result as large as the window, not read yet: both ends and a marker stay, and it fits.
func TestTailValveHeadAndTail(t *testing.T) {
	t.Parallel()
	in := ContextInput{
		Live: wordy(script(t, "U=check A+big T:big"), 15_000), Settings: DefaultSettings(), Window: 20_000,
		ValveUpTo: 3, Valve: TailValveHeadTail,
	}
	c := buildContext(nil, in)
	edits := c.Items[2].Edits
	if len(edits) != 1 || edits[0].Part != 0 || edits[0].Op != EditReplace {
		t.Fatalf("edits %+v", edits)
	}
	text := edits[0].Text
	if !strings.HasPrefix(text, "HEAD") || !strings.HasSuffix(text, "TAIL") ||
		!strings.Contains(text, "chars omitted]…") {
		t.Errorf("cut to %.40q … %q", text, text[len(text)-20:])
	}
	if c.Stats.Tokens >= 10_100 || c.Stats.Tokens < 9000 {
		t.Errorf("%d tokens", c.Stats.Tokens)
	}
	// Scaled by the last real figure.
	in.Calibration = 2
	if c := buildContext(nil, in); c.Stats.Tokens >= 5100 {
		t.Errorf("calibrated: %d tokens", c.Stats.Tokens)
	}
}

// The valve measures by weight, and is near the count of the tokenizer, whatever is cut.
func TestTailValveCounts(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"prose": "The parser is mended, and one test still fails. ",
		"code":  "\tif err := s.store.Append(ctx, id, ms); err != nil {\n\t\treturn err\n\t}\n",
		"han":   "要約を確認してから会話を続ける。",
		"hex":   "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 ",
	}
	for name, unit := range kinds {
		live := script(t, "U A+a=say T:a A+b=say T:b A+c T:c A=say U A+d T:d")
		for i := range live {
			for j := range live[i].Parts {
				p := &live[i].Parts[j]
				switch {
				case p.Text == "say":
					p.Text = strings.Repeat(kinds["prose"], 40) + strings.Repeat(unit, 40)
				case p.Kind == PartToolCall:
					p.Input = `{"path":"` + strings.Repeat("src/", 100) + `"}`
				}
				for k := range p.Content {
					p.Content[k].Text = strings.Repeat(unit, 300) + strings.Repeat(kinds["prose"], 100)
				}
			}
			live[i].Tokens = EstimateMessage(live[i])
		}
		for _, window := range []int{6000, 20_000} {
			in := ContextInput{
				Live: live, Settings: DefaultSettings(), Window: window, ValveUpTo: 11,
				Valve: TailValveHeadTail,
			}
			in.Settings.TailMaxFraction = 0.8
			c := buildContext(nil, in)
			exact := 0
			for _, item := range c.Items {
				exact += EstimateItem(item)
			}
			if off := float64(c.Stats.Tokens)/float64(exact) - 1; off > 0.1 || off < -0.1 {
				t.Errorf("%s in %d: %d tokens are said to be %d", name, window, exact, c.Stats.Tokens)
			}
			if budget := window * 8 / 10; exact > budget*11/10 {
				t.Errorf("%s in %d: %d tokens, the tail may have %d", name, window, exact, budget)
			}
		}
	}
}

// A valve leaves a placeholder where base64 was, not two ends of it, in results and in what the agent pasted.
func TestTailValveOmitsBinaries(t *testing.T) {
	t.Parallel()
	const size = 141_312
	const words = "some words of the log\n"
	live := script(t, "U A+a T:a A=pasted A+b T:b")
	live[2].Parts[0].Content[0].Text = strings.Repeat(words, 200) + encoded(size) + "\nEND-A"
	live[3].Parts[0].Text = "I made " + png(size) + " and it is done"
	live[5].Parts[0].Content[0].Text = `{"log":"` + strings.Repeat("word ", 400) + `","png":"` + png(size) + `"}`
	for i := range live {
		live[i].Tokens = EstimateMessage(live[i])
	}
	total := 0
	for _, m := range live {
		total += m.Tokens
	}
	for _, valve := range []TailValve{TailValvePreviews, TailValveHeadTail} {
		c := buildContext(nil, ContextInput{
			Live: live, Settings: DefaultSettings(), Window: 4000, ValveUpTo: 6,
			Valve: valve,
		})
		for _, item := range c.Items {
			for _, e := range item.Edits {
				if run := regexp.MustCompile(`[A-Za-z0-9+/]{60}`).FindString(e.Text); run != "" {
					t.Errorf("%s: message %d keeps base64: %s", valve, item.Message.Seq, run)
				}
			}
		}
		last := c.Items[5].Edits
		if len(last) != 1 || !json.Valid([]byte(last[0].Text)) ||
			!strings.Contains(last[0].Text, "[binary omitted: ~138 KB]") {
			t.Errorf("%s: the last result is %+v", valve, last)
		}
		if n := c.Stats.Trimmed.Binaries; n != 2 {
			t.Errorf("%s: %d binaries were counted", valve, n)
		}
		if saved := c.Stats.Trimmed.SavedTokens; saved < total/3 || saved > total {
			t.Errorf("%s: %d of %d tokens saved", valve, saved, total)
		}
		if said := c.Items[3].Edits; valve == TailValveHeadTail &&
			(len(said) != 1 || said[0].Text != "I made [binary omitted: ~138 KB] and it is done") {
			t.Errorf("what the agent pasted is %+v", said)
		}
	}
}

// Whatever the valve: the user's last message and all that nobody answered stay whole, ids and calls stay, and
// what the valve did does not change when the conversation continues.
func TestTailValveProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live := wordy(genSession(3).Draw(t, "live"), rapid.SampledFrom([]int{3, 300}).Draw(t, "words"))
		for i := range live {
			if live[i].Genuine() {
				live[i].Parts[0].Text = strings.Repeat("please ", 200)
				live[i].Tokens = EstimateMessage(live[i])
			}
		}
		upTo := int64(rapid.IntRange(0, len(live)).Draw(t, "up to"))
		in := ContextInput{
			Live: live, Settings: DefaultSettings(), SummaryText: "x", ValveUpTo: upTo,
			Valve:  rapid.SampledFrom([]TailValve{TailValvePreviews, TailValveHeadTail}).Draw(t, "valve"),
			Window: rapid.SampledFrom([]int{0, 100_000, 1000}).Draw(t, "window"),
		}
		in.Settings.ToolResultKeepTurns = 0
		v := &contextBuilder{in: in}
		v.head()
		v.rest()
		before := v.items
		after := v.squeeze(before)
		if len(before) != len(after) {
			t.Fatal("items were lost")
		}
		lastUser, answered := int64(0), false
		for i := len(live) - 1; i >= 0; i-- {
			m := live[i]
			if m.Seq > upTo {
				continue
			}
			answered = answered || m.Role == RoleAssistant
			if m.Genuine() && (lastUser == 0 || !answered) {
				lastUser = max(lastUser, m.Seq)
				for _, item := range after {
					if item.Message != nil && item.Message.Seq == m.Seq && hasReplace(item.Edits) {
						t.Fatalf("the user's message %d was cut", m.Seq)
					}
				}
			}
		}
		for i, item := range after {
			if m := item.Message; m != nil && (m.Seq > upTo || m.Role == RoleSystem) &&
				len(item.Edits) != len(before[i].Edits) {
				t.Fatalf("message %d is out of reach and was cut", m.Seq)
			}
			for _, e := range item.Edits {
				if item.Message.Parts[e.Part].Kind == PartToolCall && e.Op == EditReplace {
					t.Fatalf("a call was edited: %+v", e)
				}
				if e.Op == EditReplace && strings.TrimSpace(e.Text) == "" {
					t.Fatalf("an empty text: %+v", e)
				}
			}
		}
	})
}

func hasReplace(edits []Edit) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.Op == EditReplace })
}

// callable checks that an API would take the context: calls are answered at once and once, no result is
// without its call, and with Anthropic the first message is a user's and no text block is blank. To OpenAI each
// message of the agent's is one of its own, to Anthropic those in a row are one.
func callable(t *rapid.T, c Context, vendor string) {
	type entry struct {
		role           Role
		calls, results []string
		only           bool // nothing but results
	}
	var entries []entry
	for _, item := range c.Items {
		if m := item.Made; m != nil {
			e := entry{role: m.Role}
			if m.Role == RoleTool {
				e.results, e.only = []string{m.CallID}, true
			}
			if strings.TrimSpace(m.Text) == "" {
				t.Fatalf("an empty message was made: %+v", m)
			}
			entries = append(entries, e)
			continue
		}
		m := item.Message
		if m.Role == RoleSystem {
			continue
		}
		e := entry{role: m.Role, only: true}
		server := map[string]bool{}
		for i, p := range m.Parts {
			if newEditIndex(item.Edits).whole(i) && editOf(item.Edits, i).Op == EditDrop {
				continue
			}
			switch {
			case p.Kind == PartToolCall && (CallRef{Type: p.Type}).ServerSide():
				server[p.CallID] = true
			case p.Kind == PartToolCall && p.CallID != "":
				e.calls = append(e.calls, p.CallID)
			case p.Kind == PartToolResult && m.Role != RoleAssistant:
				e.results = append(e.results, p.CallID)
			case p.Kind == PartText && vendor == "anthropic" && strings.TrimSpace(p.Text) == "":
				t.Fatalf("a blank text block in message %d; %s", m.Seq, shown(c))
			}
			e.only = e.only && p.Kind == PartToolResult
		}
		entries = append(entries, e)
	}
	if vendor == "anthropic" && len(entries) > 0 && entries[0].role == RoleAssistant {
		t.Fatalf("the first message is the agent's; %s", shown(c))
	}
	for i := 0; i < len(entries); {
		if entries[i].role != RoleAssistant {
			if len(entries[i].results) > 0 {
				t.Fatalf("entry %d has results without a call; %s", i, shown(c))
			}
			i++
			continue
		}
		open := map[string]int{}
		for first := i; i < len(entries) && entries[i].role == RoleAssistant &&
			(i == first || vendor != "openai"); i++ {
			for _, id := range entries[i].calls {
				open[id]++
			}
		}
		for i < len(entries) && len(entries[i].results) > 0 {
			for _, id := range entries[i].results {
				open[id]--
			}
			i++
		}
		for id, n := range open {
			if n != 0 {
				t.Fatalf("call %q has %d results too few; %s", id, n, shown(c))
			}
		}
	}
}

// The context of any conversation can be sent, holds every message at most once, in order but for results that move
// up, and is the same at every read.
func TestBuildContextProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := ContextInput{
			Live:     rapid.OneOf(genSession(5), genSession(5), genMessages(8)).Draw(t, "live"),
			Settings: DefaultSettings(), Vendor: rapid.SampledFrom([]string{"anthropic", "openai"}).Draw(t, "vendor"),
		}
		if rapid.Bool().Draw(t, "marker") {
			in.SummaryText = SummaryText(SummaryTextInput{Summary: "x"})
			in.Enrichments = []Enrichment{{"todo", "y"}, {"plan", ""}}
		}
		for i := range in.Live {
			if in.Live[i].Kind == KindUserInfo {
				in.Live[i].Kind = KindReminder // an environment that holds tool results does not exist
			}
		}
		c := buildContext(nil, in)
		callable(t, c, in.Vendor)
		seen := map[int64]bool{}
		last := int64(0)
		for _, item := range c.Items {
			if item.Message == nil || item.Message.Seq == 0 {
				continue
			}
			if seen[item.Message.Seq] {
				t.Fatalf("message %d occurs twice; %s", item.Message.Seq, shown(c))
			}
			seen[item.Message.Seq] = true
			if len(item.Message.Results()) == 0 && item.Message.Role != RoleSystem &&
				item.Message.Kind != KindUserInfo {
				if item.Message.Seq < last {
					t.Fatalf("message %d is behind %d; %s", item.Message.Seq, last, shown(c))
				}
				last = item.Message.Seq
			}
		}
		if diff := cmp.Diff(c, buildContext(nil, in)); diff != "" {
			t.Fatalf("a second read differs:\n%s", diff)
		}
	})
}

// Between two markers each context that a model was called with is a prefix of the next one.
func TestContextOnlyGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live := genSession(5).Draw(t, "live")
		vendor := rapid.SampledFrom([]string{"anthropic", "openai"}).Draw(t, "vendor")
		before := []ContextItem{}
		for k := 1; k <= len(live); k++ {
			called := k == len(live) || live[k].Role == RoleAssistant && live[k-1].Role != RoleAssistant
			if !called {
				continue
			}
			c := buildContext(nil, ContextInput{
				Live: live[:k], Settings: DefaultSettings(), Vendor: vendor,
				SummaryText: "x",
			})
			if k == len(live) && live[k-1].Role != RoleAssistant {
				return // the last call may still get results that move up
			}
			if len(c.Items) < len(before) {
				t.Fatalf("shorter at %d: %s", k, shown(c))
			}
			if diff := cmp.Diff(before, c.Items[:len(before)]); diff != "" {
				t.Fatalf("at %d of %s:\n%s", k, shown(c), diff)
			}
			before = c.Items
		}
	})
}

// The whole way: partition, summary, reassembly. The last genuine user message is in the context unchanged, whatever
// the conversation, and the context can be sent.
func TestPartitionToContext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genPartitionInput().Draw(t, "input")
		in.Messages = genSession(5).Draw(t, "session")
		p := partition(nil, in)
		if p.Nothing != "" {
			return
		}
		var live []Message
		for _, list := range [][]int{p.System, p.UserInfo, p.Carried, p.Tail} {
			for _, i := range list {
				live = append(live, in.Messages[i])
			}
		}
		text := SummaryText(SummaryTextInput{
			Summary: "SUM", UnderWay: UnderWay(in.Messages), TailKept: len(p.Tail) > 0,
			Repeated: len(p.Carried),
		})
		s := in.Settings
		c := buildContext(nil, ContextInput{Live: live, Settings: s, SummaryText: text, Vendor: "anthropic"})
		callable(t, c, "anthropic")

		// Where work is under way the model can be called at once.
		end := in.Messages[len(in.Messages)-1]
		if item := c.Items[len(c.Items)-1]; UnderWay(in.Messages) && end.Role != RoleAssistant && item.Message != nil &&
			item.Message.Role == RoleAssistant {
			t.Fatalf("work is under way, and the agent spoke last: %s", shown(c))
		}

		var last *Message
		for i := range in.Messages {
			if in.Messages[i].Genuine() {
				last = &in.Messages[i]
			}
		}
		if last == nil {
			return
		}
		found := slices.ContainsFunc(c.Items, func(item ContextItem) bool {
			return item.Message != nil && item.Message.Seq == last.Seq && !hasReplace(item.Edits)
		})
		if !found {
			t.Fatalf("the last user message %d is not in %s", last.Seq, shown(c))
		}
		// A summary that is no system message, in front of everything but the head.
		for i, item := range c.Items {
			if item.Made != nil && item.Made.Kind == KindSummary {
				for _, head := range c.Items[:i] {
					if head.Message.Role != RoleSystem && head.Message.Kind != KindUserInfo {
						t.Fatalf("something is in front of the summary: %s", shown(c))
					}
				}
				if item.Made.Role != RoleUser {
					t.Fatalf("the summary has role %s", item.Made.Role)
				}
			}
		}
	})
}

// Compaction after compaction, as the store would keep them: the view has one summary, every message that is
// not covered once and in order, the system prompt as it was, and no
// message is ever out of reach of the next summary.
func TestRounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := compactedConversation{carried: map[int64]bool{}}
		for round := range rapid.IntRange(1, 5).Draw(t, "rounds") {
			for _, m := range genSession(3).Draw(t, "more") {
				if m.Kind == KindSummary || m.Role == RoleSystem && round > 0 {
					continue
				}
				m.Seq = int64(len(c.all) + 1)
				c.all = append(c.all, m)
			}
			summary := fmt.Sprintf("SUM%d", round)
			if c.compact(t, summary) {
				c.check(t, summary)
			}
		}
	})
}

// compactedConversation is a conversation that was compacted any number of times.
type compactedConversation struct {
	all     []Message
	summary string
	covered int64
	carried map[int64]bool
}

// live is what a compaction works on: the summary, then the messages that it does not cover.
func (c *compactedConversation) live() []Message {
	var ms []Message
	if c.summary != "" {
		ms = append(ms, summaryMessage(c.summary))
	}
	for _, m := range c.all {
		if c.visible(m) {
			ms = append(ms, m)
		}
	}
	return ms
}

func (c *compactedConversation) visible(m Message) bool {
	return m.Seq > c.covered || c.carried[m.Seq] || m.Role == RoleSystem
}

// compact puts a summary in place of the messages before the split, and reports false when there is nothing to do.
func (c *compactedConversation) compact(t *rapid.T, summary string) bool {
	before := c.live()
	p := partition(nil, PartitionInput{
		Messages: before, Settings: DefaultSettings(),
		Window: rapid.SampledFrom([]int{0, 1000, 5000}).Draw(t, "window"), Full: rapid.Bool().Draw(t, "full"),
	})
	if p.Nothing != "" {
		return false
	}
	if c.summary != "" && (before[p.ToSummarize[0]].Kind != KindSummary || p.CoversFrom == 0) {
		t.Fatalf("%s: the earlier summary is not summarized: %s", summary, drawn(p))
	}
	c.carried = map[int64]bool{}
	c.covered = max(c.covered, p.CoversTo)
	for _, list := range [][]int{p.Carried, p.Tail} {
		for _, i := range list {
			if before[i].Seq <= c.covered {
				c.carried[before[i].Seq] = true
			}
		}
	}
	c.summary = SummaryText(SummaryTextInput{Summary: summary, UnderWay: true})
	return true
}

// check wants the newest summary alone in the context, and each visible message once.
func (c *compactedConversation) check(t *rapid.T, summary string) {
	built := buildContext(nil, ContextInput{
		Live: c.live()[1:], Settings: DefaultSettings(), SummaryText: c.summary, Vendor: "anthropic",
	})
	callable(t, built, "anthropic")
	summaries, seen := 0, map[int64]int{}
	for _, item := range built.Items {
		if item.Message != nil {
			seen[item.Message.Seq]++
		} else if item.Made.Kind == KindSummary {
			summaries++
			if !strings.Contains(item.Made.Text, summary) {
				t.Fatalf("an earlier summary: %s", item.Made.Text)
			}
		}
	}
	if summaries != 1 {
		t.Fatalf("%d summaries in %s", summaries, shown(built))
	}
	for _, m := range c.all {
		want := 0
		if c.visible(m) {
			want = 1
		}
		if onlyLoose := want == 1 && len(m.Results()) > 0; seen[m.Seq] != want && !onlyLoose {
			t.Fatalf("message %d is %d times in %s, covered to %d", m.Seq, seen[m.Seq], shown(built), c.covered)
		}
	}
	if c.all[0].Role == RoleSystem && (built.Items[0].Message == nil || len(built.Items[0].Edits) > 0 ||
		built.Items[0].Message.Seq != 1) {
		t.Fatalf("the system message is not first: %s", shown(built))
	}
}

// The line about the transcript is found in the text of a summary message, and nothing else is taken for it.
func TestTranscriptHintOf(t *testing.T) {
	t.Parallel()
	const hint = "conversation x, messages 1 to 9"
	quoting := "The full transcript is kept: nowhere\n\nThe full transcript is kept: nowhere"
	for _, tt := range []struct {
		in   SummaryTextInput
		want string
	}{
		{SummaryTextInput{Summary: "BODY", TranscriptHint: hint}, "The full transcript is kept: " + hint},
		{SummaryTextInput{
			Summary: quoting, TranscriptHint: " conversation x,\nmessages 1 to 9 ", Digest: true,
			OmittedMessages: 2, TailKept: true,
		}, "The full transcript is kept: " + hint},
		{SummaryTextInput{Summary: "BODY"}, ""},
	} {
		if got := TranscriptHintOf(SummaryText(tt.in)); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	for _, other := range []string{
		"", quoting, "<conversation_summary>\n" + quoting,
		"x" + SummaryText(SummaryTextInput{Summary: "B", TranscriptHint: hint}),
	} {
		if got := TranscriptHintOf(other); got != "" {
			t.Errorf("%.40q gives %q", other, got)
		}
	}
}
