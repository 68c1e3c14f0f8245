package pipeline

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every exported function that reads messages or texts is in stages, with the texts of pathological below. A stage has
// to be linear in them, and to stop with its context.

// subject is what a stage works on: a text of one kind, in many places.
type subject struct {
	text     string
	messages []Message
}

// stage is one exported function. run returns its error; quick stages read one text and take no context.
type stage struct {
	name  string
	quick bool
	run   func(ctx context.Context, s subject) error
}

func stages() []stage {
	part := func(ctx context.Context, s subject) error {
		for _, full := range []bool{false, true} {
			in := PartitionInput{Messages: s.messages, Settings: DefaultSettings(), Window: 1000, Full: full}
			if _, err := PartitionMessages(ctx, in); err != nil {
				return err
			}
		}
		return nil
	}
	return slices.Concat([]stage{
		{name: "PartitionMessages", run: part},
		{name: "Slim", run: func(ctx context.Context, s subject) error {
			for _, budget := range []int{1 << 40, 100 + 20*len(s.messages), 500} {
				for _, threshold := range []float64{0, 2} {
					in := SlimInput{
						Messages: s.messages, BudgetChars: budget, ToolDropThreshold: threshold,
						MinUsefulChars: DefaultMinUsefulChars,
					}
					if _, err := Slim(ctx, in); err != nil {
						return err
					}
				}
			}
			return nil
		}},
		{name: "Share", run: func(ctx context.Context, s subject) error {
			_, err := SlimInput{Messages: s.messages, BudgetChars: 1 << 40}.Share(ctx, 0.5)
			return err
		}},
		{name: "AcceptSummary", run: func(ctx context.Context, s subject) error {
			_, err := AcceptSummary(ctx, Answer{Text: s.text, Finish: FinishStop}, AcceptLimits{})
			if errors.As(err, new(*Error)) {
				return nil // refused, for a reason in the text
			}
			return err
		}},
		{name: "UserMessagesSection", run: func(ctx context.Context, s subject) error {
			_, err := UserMessagesSection(ctx, "6. All user messages:\n"+s.text, s.messages, len(s.text))
			return err
		}},
		{name: "SummarizedUsers", run: func(ctx context.Context, s subject) error {
			_, err := SummarizedUsers(ctx, s.messages)
			return err
		}},
		{name: "VerifySummary", run: func(ctx context.Context, s subject) error {
			_, _, err := VerifySummary(ctx, "The user said: "+s.text, s.messages, s.messages)
			return err
		}},
		{name: "MissingLimits", run: func(ctx context.Context, s subject) error {
			_, err := MissingLimits(ctx, s.text, s.messages, s.messages)
			return err
		}},
		{name: "Digest", run: func(ctx context.Context, s subject) error {
			for _, budget := range []int{1 << 40, len(s.text) / 2, 500} {
				if _, err := Digest(ctx, DigestInput{Messages: s.messages, BudgetChars: budget}); err != nil {
					return err
				}
			}
			return nil
		}},
	}, readingStages(), quickStages())
}

// readingStages are the stages that build a context, or look for something in messages.
func readingStages() []stage {
	return []stage{
		{name: "BuildContext", run: func(ctx context.Context, s subject) error {
			settings := DefaultSettings()
			settings.ToolResultPreviewChars, settings.MaxToolResultTokens, settings.MaxInputTokens = 10, 1, 500
			for _, vendor := range []string{"anthropic", "openai", "google"} {
				_, err := BuildContext(ctx, ContextInput{
					Live: s.messages, Settings: settings, SummaryText: s.text, Window: 1000, Vendor: vendor,
					Valve: TailValveHeadTail, ValveUpTo: int64(len(s.messages)),
				})
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "MentionsOf", run: func(ctx context.Context, s subject) error {
			_, err := MentionsOf(ctx, s.messages)
			return err
		}},
		{name: "MentionedIn", run: func(ctx context.Context, s subject) error {
			var mentions []Mention
			for line := range strings.FieldsSeq(s.text) {
				mentions = append(mentions, Mention{Kind: MentionPath, Text: line},
					Mention{Kind: MentionIntent, Text: line})
			}
			_, err := MentionedIn(ctx, mentions, s.text)
			return err
		}},
		{name: "CompareSummaries", run: func(ctx context.Context, s subject) error {
			_, err := CompareSummaries(ctx, s.messages, s.text, s.text)
			return err
		}},
		{name: "OpenTasks", run: func(ctx context.Context, s subject) error {
			_, _, err := OpenTasks(ctx, s.messages)
			return err
		}},
		{name: "FilesTouched", run: func(ctx context.Context, s subject) error {
			_, _, err := FilesTouched(ctx, s.messages)
			return err
		}},
	}
}

// quickStages take no context: they read one text or message about as fast as memory, or only look at its parts.
func quickStages() []stage {
	text := func(name string, run func(s string)) stage {
		return stage{name: name, quick: true, run: func(_ context.Context, s subject) error {
			run(s.text)
			return nil
		}}
	}
	each := func(name string, run func(m Message)) stage {
		return stage{name: name, quick: true, run: func(_ context.Context, s subject) error {
			for _, m := range s.messages {
				run(m)
			}
			return nil
		}}
	}
	return []stage{
		text("Chars", func(s string) { _ = Chars(s) }),
		text("CompactHeadAndTail", func(s string) { CompactHeadAndTail(s, len(s)/2) }),
		text("Truncate", func(s string) { Truncate(s, len(s)/2) }),
		text("Continuation", func(s string) { Continuation(s) }),
		text("EstimateText", func(s string) { EstimateText(s) }),
		text("IsMadeText", func(s string) { _ = IsMadeText(s) }),
		text("IsShortened", func(s string) { IsShortened(s) }),
		text("LookAheadOf", func(s string) { LookAheadOf(lookAheadTitle + s) }),
		text("Quote", func(s string) { Quote(s, 200) }),
		text("Sections", func(s string) { Sections(s) }),
		text("SelfInstruction", func(s string) { SelfInstruction(Prompt{Text: "{focus}"}, s, Variation{}) }),
		text("SummaryText", func(s string) { SummaryText(SummaryTextInput{Summary: s}) }),
		text("TranscriptHintOf", func(s string) { TranscriptHintOf(s) }),
		text("LimitsNote", func(s string) { LimitsNote(strings.Fields(s)) }),
		each("EstimateMessage", func(m Message) { EstimateMessage(m) }),
		each("EstimateItem", func(m Message) { EstimateItem(ContextItem{Message: &m}) }),
		each("QuoteMessage", func(m Message) { QuoteMessage(m) }),
		each("RenderMessage", func(m Message) { RenderMessage(m) }),
		each("Calls", func(m Message) { m.Calls() }),
		each("Genuine", func(m Message) { m.Genuine() }),
		each("Results", func(m Message) { m.Results() }),
		{name: "Pair", quick: true, run: func(_ context.Context, s subject) error {
			Pair(s.messages)
			return nil
		}},
		{name: "UnderWay", quick: true, run: func(_ context.Context, s subject) error {
			UnderWay(s.messages)
			return nil
		}},
	}
}

// elsewhere are the exported functions that need not be in stages: they read no text of a conversation, or have tests
// of their own.
var elsewhere = []string{
	"ChoosePrompt", "ChooseSummarizers", "DefaultSettings", "Errorf", "EvaluateTrigger", "ExternalRequest",
	"FitsWindow",
	"InputBudgetChars", "KindOf", "MaxOutputFor", "PromptNamed", "QuoteSummary", "QuoteText",
	"Redact", "NewRedactor",
}

// TestStagesAreComplete finds the exported functions of the package, and the methods that take a context or belong to
// a message.
func TestStagesAreComplete(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range elsewhere {
		known[name] = true
	}
	for _, s := range stages() {
		known[s.name] = true
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil && !readsContent(f) {
				continue
			}
			if found++; !known[f.Name.Name] {
				t.Errorf("%s is in no table of linear_test.go", f.Name.Name)
			}
		}
	}
	if found < len(stages()) {
		t.Errorf("found only %d functions", found)
	}
}

// readsContent reports whether a method is one of Message or takes a context.
func readsContent(f *ast.FuncDecl) bool {
	if id, ok := f.Recv.List[0].Type.(*ast.Ident); ok && id.Name == "Message" {
		return true
	}
	for _, p := range f.Type.Params.List {
		if s, ok := p.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Context" {
			return true
		}
	}
	return false
}

// pathological are texts that careless code reads in quadratic time, each of about n bytes.
var pathological = map[string]func(n int) string{
	"limits":           func(n int) string { return strings.Repeat("never touch. ", n/13) },
	"different limits": func(n int) string { return numberedText(n, "Never touch table %d of it. ") },
	"limits in lines":  func(n int) string { return "rules:\n" + numberedText(n, "- never touch %d\n") },
	"shared ends":      func(n int) string { return numberedText(n, "Never %d touch "+strings.Repeat("a", 60)+". ") },
	"thoughts":         func(n int) string { return strings.Repeat("<think></think>", n/15) },
	"open thoughts":    func(n int) string { return strings.Repeat("<think>", n/7) },
	"closed thoughts":  func(n int) string { return "<think>" + strings.Repeat("</think>", n/8) },
	"nested thoughts": func(n int) string {
		return strings.Repeat("<think>",
			n/15) + strings.Repeat("</think>", n/15)
	},
	"halves of thoughts": func(n int) string { return strings.Repeat("<th<think></think>ink></think>", n/30) },
	"closing tags":       func(n int) string { return "x" + numberedText(n, "</a%d>") },
	"summary tags":       func(n int) string { return strings.Repeat("<summary>", n/9) },
	"skills":             func(n int) string { return numberedText(n, "<skill%d ") },
	"skills in a row":    func(n int) string { return strings.Repeat("<skill", n/6) },
	"closed skills":      func(n int) string { return strings.Repeat("<skill></skill>", n/15) },
	"queries":            func(n int) string { return strings.Repeat("<user_query>a</user_query>", n/26) },
	"reminders":          func(n int) string { return strings.Repeat("<system-reminder></system-reminder>", n/35) },
	"open reminders":     func(n int) string { return strings.Repeat("<system-reminder>", n/17) },
	"reserved tags":      func(n int) string { return strings.Repeat("< / message", n/11) },
	"paths":              func(n int) string { return strings.Repeat("src/a/b.go ", n/11) },
	"different paths":    func(n int) string { return numberedText(n, "src/%d/b.go ") },
	"one path":           func(n int) string { return strings.Repeat("a/", n/2) },
	"identifiers":        func(n int) string { return numberedText(n, "`id_%d` ") },
	"quotes":             func(n int) string { return numberedText(n, "the user said \"no %d of it\" ") },
	"marks":              func(n int) string { return strings.Repeat("\"", n) },
	"curly marks":        func(n int) string { return strings.Repeat("“", n/3) },
	"numbers":            func(n int) string { return strings.Repeat("1,", n/2) },
	"one word":           func(n int) string { return strings.Repeat("a", n) },
	"lines":              func(n int) string { return strings.Repeat("\n", n) },
	"spaces":             func(n int) string { return strings.Repeat(" ", n) },
	"brackets":           func(n int) string { return strings.Repeat("[", n) },
	"angles":             func(n int) string { return strings.Repeat("<", n) },
	"spaced angles":      func(n int) string { return strings.Repeat("<   ", n/4) },
	"braces":             func(n int) string { return strings.Repeat(`{"a":`, n/5) },
	"nested JSON":        func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"escapes":            func(n int) string { return strings.Repeat(`\`, n) },
	"escaped words":      func(n int) string { return strings.Repeat(`A\\\\`, n/5) },
	"backticks":          func(n int) string { return strings.Repeat("`", n) },
	"fences":             func(n int) string { return strings.Repeat("```\n", n/4) },
	"base64":             func(n int) string { return strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", n/24) },
	"lines of base64":    func(n int) string { return strings.Repeat(strings.Repeat("Ab1+", 19)+"\n", n/77) },
	"raw binary":         func(n int) string { return strings.Repeat("\x00\x01\n", n/3) },
	"invalid bytes":      func(n int) string { return strings.Repeat("\xff", n) },
	"combining marks":    func(n int) string { return strings.Repeat("e\u0301", n/3) },
	"headings":           func(n int) string { return strings.Repeat("## a\n", n/5) },
	"list":               func(n int) string { return "- a\n" + strings.Repeat("  b\n", n/4) },
	"digest": func(n int) string {
		return digestHead + "\n\n" + sectionEarlier + "\n" +
			strings.Repeat("<earlier_summary>\na\n</earlier_summary>\n", n/37)
	},
	"quotes of a digest": func(n int) string {
		return digestHead + "\n\n" + sectionUser + "\n<quote >\n" + strings.Repeat("a\n", n/2)
	},
	"patch": func(n int) string {
		return "*** Begin Patch\n" + numberedText(n, "*** Add File: f%d\n")
	},
}

// numberedText repeats a form with a number.
func numberedText(n int, form string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// textSubject has a text in every place of a short conversation.
func textSubject(text string) subject {
	call := callMessage(text, "c", "update_plan", text)
	call.Parts = append(call.Parts, Part{Kind: PartToolCall, CallID: "d", Name: "Bash_plan", Input: `{"command":` +
		jsonText(text) + `}`})
	return subject{text: text, messages: numbered(
		summaryMessage(text), textMessage(RoleUser, text), call, resultMessage("c", text), resultMessage("d", text),
		textMessage(RoleAssistant, text), textMessage(RoleUser, "go on"),
	)}
}

func jsonText(s string) string { return `"` + jsonEscaped(s) + `"` }

// crowds are conversations of n messages or parts.
var crowds = map[string]func(n int) []Message{
	"small messages": func(n int) []Message {
		ms := make([]Message, 0, n)
		for i := range n {
			ms = append(ms, textMessage([]Role{RoleUser, RoleAssistant}[i%2], "ok"))
		}
		return numbered(ms...)
	},
	"user messages": func(n int) []Message {
		ms := make([]Message, 0, n)
		for range n {
			ms = append(ms, textMessage(RoleUser, "never touch it"))
		}
		return numbered(ms...)
	},
	"tool pairs": func(n int) []Message {
		var ms []Message
		for i := range n / 2 {
			id := fmt.Sprint(i)
			ms = append(ms, callMessage("", id, "Read", `{"file_path":"a`+id+`.go"}`), resultMessage(id,
				"a text of it"))
		}
		return numbered(ms...)
	},
	"the same id": func(n int) []Message {
		var ms []Message
		for range n / 2 {
			ms = append(ms, callMessage("", "a", "Read", `{}`), resultMessage("a", "a text of it"))
		}
		return numbered(ms...)
	},
	"parallel calls": func(n int) []Message {
		return parallel(n/2, func(i int) (string, string) { return fmt.Sprint(i), "f" })
	},
	"calls without ids": func(n int) []Message {
		return parallel(n/2, func(i int) (string, string) { return "", fmt.Sprint("f", i%7) })
	},
	"lost results": func(n int) []Message {
		ms := parallel(n/4, func(int) (string, string) { return "", "f" })
		for range n / 2 {
			ms[1].Parts = append(ms[1].Parts, Part{Kind: PartToolResult, Name: "g"})
		}
		return ms
	},
	"late results": func(n int) []Message {
		var ms []Message
		for i := range n / 3 {
			ms = append(ms, callMessage("", fmt.Sprint(i), "f", "{}"), textMessage(RoleUser, "wait"))
		}
		for i := range n / 3 {
			ms = append(ms, resultMessage(fmt.Sprint(i), "late"))
		}
		return numbered(ms...)
	},
	"summaries": func(n int) []Message {
		var ms []Message
		for range n {
			ms = append(ms, summaryMessage("an earlier one"))
		}
		return ms
	},
	"empty parts": func(n int) []Message {
		m := Message{Role: RoleAssistant, Parts: make([]Part, n)}
		for i := range m.Parts {
			m.Parts[i] = Part{Kind: PartText}
		}
		return numbered(textMessage(RoleUser, "go"), m)
	},
	"contents": func(n int) []Message {
		m := resultMessage("a", "x")
		for range n {
			m.Parts[0].Content = append(m.Parts[0].Content, Part{Kind: PartText, Text: strings.Repeat("text ", 20)})
		}
		return numbered(textMessage(RoleUser, "go"), callMessage("", "a", "f", "{}"), m,
			textMessage(RoleAssistant, "ok"))
	},
}

// parallel is a message with many calls and one with their results.
func parallel(n int, of func(i int) (id, name string)) []Message {
	calls, results := Message{Role: RoleAssistant}, Message{Role: RoleTool}
	for i := range n {
		id, name := of(i)
		calls.Parts = append(calls.Parts, Part{Kind: PartToolCall, CallID: id, Name: name, Input: "{}"})
		results.Parts = append(results.Parts, Part{
			Kind: PartToolResult, CallID: id, Name: name,
			Content: []Part{{Kind: PartText, Text: strings.Repeat("result ", 20)}},
		})
	}
	return numbered(calls, results, textMessage(RoleAssistant, "ok"), textMessage(RoleUser, "go on"))
}

// subjects are all kinds in one size: about n bytes of text, or n/16 messages or parts.
func subjects(n int) map[string]subject {
	all := map[string]subject{}
	for name, text := range pathological {
		all[name] = textSubject(text(n))
	}
	for name, crowd := range crowds {
		all["many: "+name] = subject{text: "1. Go on.", messages: crowd(n / 16)}
	}
	return all
}

const (
	// linearBytes is the larger size of the texts, four times the smaller one.
	linearBytes = 16 << 10
	// linearRatio is how many times as much a stage may take for four times as much: 4 if it is linear, 16 if it is
	// quadratic.
	linearRatio = 8
	// linearFast and linearFew are up to which CPU time and how many bytes a stage is not measured: the cost of the
	// larger size is then mostly fixed.
	linearFast = 40 * time.Millisecond
	linearFew  = 16 << 20
)

// The time and the memory that a stage takes for a text of any kind grow with its size, not with its square. The test
// is not parallel to others, so that only its own memory is counted.
func TestStagesAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	small, large := subjects(linearBytes/4), subjects(linearBytes)
	for _, stage := range stages() { // what is made once, at the first use, is not the stage's cost
		cost(t, stage, small["many: user messages"])
	}
	for name := range large {
		for _, stage := range stages() {
			took, bytes := cost(t, stage, large[name])
			for try := 1; took > linearFast || bytes > linearFew; try++ {
				less, fewer := cost(t, stage, small[name])
				if took <= max(linearFast, linearRatio*less) && bytes <= max(linearFew, linearRatio*fewer) {
					break
				}
				if try == 3 {
					t.Errorf("%s, %s: %v and %d bytes, for a quarter %v and %d bytes", stage.name, name, took, bytes,
						less, fewer)
					break
				}
				again, allocated := cost(t, stage, large[name])
				took, bytes = min(took, again), min(bytes, allocated)
			}
		}
	}
}

// cost runs a stage and returns how much CPU time it took, whatever else the machine does, and how many bytes it
// allocated.
func cost(t *testing.T, s stage, on subject) (time.Duration, uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime(t)
	if err := s.run(t.Context(), on); err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	took := cpuTime(t) - start
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Texts that once took seconds to minutes, in full size. The work is counted by the looks at the context: one for
// workBytes of it.
func TestLargeTextsAreLittleWork(t *testing.T) {
	t.Parallel()
	limits := textSubject(pathological["limits"](400_000))
	thoughts := textSubject(pathological["thoughts"](20_000 * 15))
	for _, tt := range []struct {
		stage string
		on    subject
	}{{"VerifySummary", limits}, {"Digest", limits}, {"AcceptSummary", thoughts}} {
		for _, stage := range stages() {
			if stage.name != tt.stage {
				continue
			}
			c := &countedContext{Context: t.Context()}
			if err := stage.run(c, tt.on); err != nil {
				t.Errorf("%s: %v", stage.name, err)
			}
			if most := 400 * len(tt.on.text) / workBytes; c.asked > most {
				t.Errorf("%s: %d looks at the context, not at most %d", stage.name, c.asked, most)
			}
		}
	}
}

// countedContext counts how often its Err is asked for, and is done from the given time on.
type countedContext struct {
	context.Context
	asked, doneAt int
}

func (c *countedContext) Err() error {
	if c.asked++; c.doneAt > 0 && c.asked >= c.doneAt {
		return context.Canceled
	}
	return nil
}

// A stage looks at its context the more often the more there is to do, and ends at the first look that finds it done.
func TestStagesStopWithTheirContext(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]subject{
		"one large text": textSubject(pathological["different limits"](150_000)),
		"many messages":  {text: numberedText(150_000, "word %d "), messages: crowds["tool pairs"](8000)},
	} {
		small := subject{text: "word", messages: s.messages[:2]}
		for _, stage := range stages() {
			if stage.quick {
				continue
			}
			few, many := &countedContext{Context: t.Context()}, &countedContext{Context: t.Context()}
			if name == "many messages" {
				if err := stage.run(few, small); err != nil {
					t.Errorf("%s: %v", stage.name, err)
				}
			}
			if err := stage.run(many, s); err != nil {
				t.Errorf("%s, %s: %v", stage.name, name, err)
			}
			if many.asked < max(2, 2*few.asked) {
				t.Errorf("%s, %s: looked at its context %d times, and %d times for nothing", stage.name, name,
					many.asked,
					few.asked)
			}
			for _, at := range []int{1, 2, many.asked / 2, many.asked} {
				c := &countedContext{Context: t.Context(), doneAt: at}
				err := stage.run(c, s)
				if !errors.Is(err, context.Canceled) || c.asked > at {
					t.Errorf("%s, %s: done at look %d of %d: %v, %d looks", stage.name, name, at, many.asked, err,
						c.asked)
				}
			}
		}
	}
}

// A deadline that is over is the error of a stage, and a panic of its own is not hidden.
func TestInterruptible(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Time{})
	defer cancel()
	if _, err := Digest(ctx, DigestInput{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	defer func() {
		if r := recover(); r != "own" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, _ = interruptible(t.Context(), "a test", func(*work) int { panic("own") })
}
