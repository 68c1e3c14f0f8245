package pipeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"precis/internal/faults"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// The fault cases, played through the pure stages: partition, slim or digest, accept, verify, summary text, context.
// What holds after every compaction of every case is in play.compact; what a case is about beside that is in
// faultChecks. Each case is played in the form of both APIs. Cases that need a store, a clock or a server (crashes,
// races, retries, undo) are played by the tests of package faults alone.

// fault is what the pure stages need of a case.
type fault struct {
	Name     string
	Messages []map[string]any
	Settings struct {
		Window              int
		SummarizerWindow    int `json:"summarizer_window"`
		SummaryMaxTokens    int `json:"summary_max_tokens"`
		SummarizerMaxOutput int `json:"summarizer_max_output"`
		Redact              bool
		ToolDropThreshold   *float64 `json:"tool_drop_threshold"`
	}
	Answers         []map[string]any
	SecondAnswers   []map[string]any   `json:"second_answers"`
	AnswerVariants  []map[string]any   `json:"answer_variants"`
	MessageVariants [][]map[string]any `json:"message_variants"`
}

// faultGroups are the kinds that are a matter of the pure stages, with the cases of the collection for each.
var faultGroups = map[string][]string{
	"structure": {
		"a call without a result at the end of the history",
		"a result without its call at the start of the history",
		"thinking blocks in a message that is kept",
		"no model is available in the middle of a turn",
		"ten tool calls in one message",
		"a target format in which roles alternate",
		"a call whose worker died",
	},
	"answer": {
		"an answer of thinking alone",
		"three answers in a row are empty or cut off",
		"blank answers only",
		"the summarizer calls a tool",
		"each summary repeats the one before",
		"the same tail is kept by three compactions",
		"a summary that is cut off",
		"markup around and inside a summary",
		"a conversation in another language",
		"no new message since the last summary",
		"a refusal or a content filter",
		"text in the shape of a tool call",
	},
	"overflow": {
		"a history many times the summarizer's window",
		"a summarizer with a small output limit",
		"the many spellings of an overflow",
		"large content of every kind",
		"tool messages that are dropped",
		"a summarizer with a very small window",
	},
	"estimate": {
		"Chinese and Japanese text",
	},
	"what stays": {
		"work in progress since the last request",
		"a mode prompt that changes between two compactions",
		"messages of role user that no person wrote",
		"live state over three rounds",
		"the first request of a long conversation",
		"a limit that the user sets early",
		"subagents that are running",
		"a mode that only allows proposals",
	},
	"tail": {
		"a history that cannot become smaller",
		"a few long messages at the end",
		"a tool result as large as the window",
		"a last user message larger than the window",
	},
	"security": {
		"a summary that repeats the instructions",
		"credentials in a tool result",
	},
	"empty, none": {
		"a conversation far below the limit",
		"nothing to compact",
		"messages without text",
		"a manual compaction is repeated",
	},
}

func loadFaults(t *testing.T) map[string]fault {
	t.Helper()
	cases, err := faults.Cases()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]fault{}
	for _, c := range cases {
		var f fault
		if err := json.Unmarshal(c.JSON, &f); err != nil {
			t.Fatalf("case %q: %v", c.Name, err)
		}
		all[c.Name] = f
	}
	return all
}

// indexed puts the number of a repetition into a block.
func indexed(v any, i int) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{i}", fmt.Sprint(i))
	case []any:
		out := make([]any, len(v))
		for k := range v {
			out[k] = indexed(v[k], i)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key := range v {
			out[key] = indexed(v[key], i)
		}
		return out
	}
	return v
}

// anthropicForm writes a message of a case, which is in either API's form, in Anthropic's.
func anthropicForm(m map[string]any) map[string]any {
	text := func(s any) map[string]any { return map[string]any{"type": "text", "text": s} }
	var blocks []any
	switch content := m["content"].(type) {
	case string:
		if m["role"] == "tool" {
			return map[string]any{
				"role": "user",
				"content": []any{map[string]any{
					"type": "tool_result", "tool_use_id": m["tool_call_id"],
					"content": content,
				}},
			}
		}
		if m["tool_calls"] == nil {
			return map[string]any{"role": m["role"], "content": content}
		}
		if content != "" {
			blocks = append(blocks, text(content))
		}
	case []any:
		blocks = content
	}
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		call := c.(map[string]any)
		function := call["function"].(map[string]any)
		input := map[string]any{}
		if s := function["arguments"].(string); s != "" {
			input["arguments"] = s
		}
		blocks = append(blocks, map[string]any{
			"type": "tool_use", "id": call["id"], "name": function["name"],
			"input": input,
		})
	}
	if blocks == nil {
		blocks = []any{}
	}
	return map[string]any{"role": m["role"], "content": blocks}
}

// openAIForm is a message in OpenAI's form; nil where it has none, as for images and reasoning of Anthropic's.
func openAIForm(m map[string]any) map[string]any {
	if content, ok := m["content"].([]any); ok {
		if len(content) == 0 {
			m["content"] = "" // what an import makes of it
		}
		for _, b := range content {
			if b.(map[string]any)["type"] != "text" {
				return nil
			}
		}
	}
	out := map[string]any{}
	for _, key := range []string{"role", "content", "tool_calls", "tool_call_id"} {
		if v, ok := m[key]; ok {
			out[key] = v
		}
	}
	return out
}

// formatsOf are the APIs in which messages can be written.
func formatsOf(messages []map[string]any) []transcript.Format {
	for _, m := range messages {
		nested, _ := m["messages"].([]any)
		for _, n := range nested {
			if list := formatsOf([]map[string]any{n.(map[string]any)}); len(list) == 1 {
				return list
			}
		}
		blocks, _ := m["content"].([]any)
		for _, b := range blocks {
			kind := b.(map[string]any)["type"]
			if kind != "text" && (kind != "thinking" || len(blocks) > 1) {
				return []transcript.Format{transcript.Anthropic}
			}
		}
	}
	return []transcript.Format{transcript.OpenAI, transcript.Anthropic}
}

// request is what a summarizer was asked.
type request struct {
	text      string
	tokens    int
	maxOutput int
}

// play is a conversation with what the store would hold of it, and a scripted summarizer.
type play struct {
	t        *testing.T
	fault    fault
	format   transcript.Format
	settings pipeline.Settings
	redact   bool
	all      []pipeline.Message
	state    map[string]string

	summary          string // the text of the summary message
	covered, seen    int64
	carried          map[int64]bool
	valve            pipeline.TailValve
	valveUpTo        int64
	digested         bool
	script, external []map[string]any
	requests         []request
	markers          int
	nothing          string // why the last compaction did nothing
	contexts         []pipeline.Context
	kinds            []pipeline.ErrorKind // of what was not accepted
	notes            []string             // of each summary text
}

func TestFaults(t *testing.T) {
	t.Parallel()
	all := loadFaults(t)
	for group, names := range faultGroups {
		for _, name := range names {
			f, ok := all[name]
			if !ok {
				t.Errorf("there is no case %q", name)
				continue
			}
			for _, format := range formatsOf(f.Messages) {
				for variant := range max(1, len(f.MessageVariants), len(f.AnswerVariants)) {
					t.Run(fmt.Sprintf("%s/%s/%s/%d", group, name, format, variant), func(t *testing.T) {
						t.Parallel()
						p := newPlay(t, f, format, variant)
						p.run(f.Messages, variant)
						if check := faultChecks[name]; check != nil {
							check(t, p)
						}
					})
				}
			}
		}
	}
}

func newPlay(t *testing.T, f fault, format transcript.Format, variant int) *play {
	p := &play{
		t: t, fault: f, format: format, settings: pipeline.DefaultSettings(), state: map[string]string{},
		carried: map[int64]bool{},
	}
	p.redact = f.Settings.Redact
	if f.Settings.ToolDropThreshold != nil {
		p.settings.ToolDropThreshold = *f.Settings.ToolDropThreshold
	}
	if f.Settings.SummaryMaxTokens > 0 {
		p.settings.SummaryMaxTokens = f.Settings.SummaryMaxTokens
	}
	if err := p.settings.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, answer := range f.Answers {
		if answer["use_variant"] == true {
			answer = f.AnswerVariants[variant]
		}
		p.script = append(p.script, answer)
	}
	p.external = f.SecondAnswers
	return p
}

// run does what the messages of a case say, in order.
func (p *play) run(messages []map[string]any, variant int) {
	for _, m := range messages {
		switch op, _ := m["op"].(string); op {
		case "":
			p.append(m)
		case "repeat":
			for i := range int(m["times"].(float64)) {
				var block []map[string]any
				for _, b := range m["messages"].([]any) {
					block = append(block, indexed(b, i).(map[string]any))
				}
				p.run(block, variant)
			}
		case "use_variant":
			for _, v := range p.fault.MessageVariants[variant] {
				p.append(v)
			}
		case "set_state":
			p.setState(m)
		case "compact", "compact_full":
			p.compact(op == "compact_full")
		case "read_state", "wait_idle", "wait_compaction":
		default:
			p.t.Fatalf("operation %q is not implemented for the pure stages", op)
		}
	}
}

func (p *play) setState(m map[string]any) {
	for from, to := range map[string]string{
		"mode_prompt": "mode", "todo": "todo", "plan": "plan", "skills": "skills",
		"constraints": "pins",
	} {
		switch v := m[from].(type) {
		case string:
			p.state[to] = v
		case []any:
			var lines []string
			for _, line := range v {
				lines = append(lines, line.(string))
			}
			p.state[to] = strings.Join(lines, "\n")
		}
	}
}

func (p *play) append(m map[string]any) {
	metadata, _ := m["metadata"].(map[string]any)
	form := openAIForm
	if p.format == transcript.Anthropic {
		form = anthropicForm
	}
	if m["role"] == "system" && p.format == transcript.Anthropic {
		return // is beside the messages there
	}
	out := form(m)
	if out == nil {
		return // a message of thinking alone has no form in this API
	}
	native, err := json.Marshal(out)
	if err != nil {
		p.t.Fatal(err)
	}
	msg := decoded(p.t, p.format, string(native))[0]
	msg.Seq = int64(len(p.all) + 1)
	if metadata["synthetic"] == true {
		msg.Kind = pipeline.KindSynthetic
	}
	p.all = append(p.all, msg)
}

// live is what the next compaction works on.
func (p *play) live() []pipeline.Message {
	var ms []pipeline.Message
	if p.summary != "" {
		prior := pipeline.Message{
			Role: pipeline.RoleUser, Kind: pipeline.KindSummary, Tokens: pipeline.EstimateText(p.summary),
			Parts: []pipeline.Part{{Kind: pipeline.PartText, Text: p.summary}},
		}
		ms = append(ms, prior)
	}
	return append(ms, p.stored()...)
}

// stored are the messages that no marker covers, and what the last one carries.
func (p *play) stored() []pipeline.Message {
	var ms []pipeline.Message
	for _, m := range p.all {
		if m.Seq > p.covered || p.carried[m.Seq] || m.Role == pipeline.RoleSystem {
			ms = append(ms, m)
		}
	}
	return ms
}

// view is what the model sees, and that its API takes it.
func (p *play) view() pipeline.Context {
	in := pipeline.ContextInput{
		Live: p.stored(), Settings: p.settings, SummaryText: p.summary, Window: p.fault.Settings.Window,
		Vendor: string(p.format), Valve: p.valve, ValveUpTo: p.valveUpTo,
	}
	for _, key := range pipeline.EnrichmentKeys {
		if p.summary != "" {
			in.Enrichments = append(in.Enrichments, pipeline.Enrichment{Key: key, Text: p.state[key]})
		}
	}
	return must(pipeline.BuildContext(p.t.Context(), in))
}

// text is all that the model sees, as it is sent.
func (p *play) text() string {
	c := p.view()
	if len(c.Items) == 0 {
		return ""
	}
	var b strings.Builder
	for _, m := range p.taken(c) {
		b.Write(m)
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *play) limit() int {
	d := pipeline.EvaluateTrigger(pipeline.TriggerInput{
		Window:      p.fault.Settings.Window,
		EstimateAll: p.view().Stats.Tokens,
	}, p.settings)
	return d.Limit
}

// compact is one compaction, down the ladder as far as the case needs it, and what holds after every one.
func (p *play) compact(full bool) {
	t := p.t
	t.Helper()
	before := p.view()
	var natives [][]byte
	for _, m := range p.all {
		natives = append(natives, bytes.Clone(m.Native))
	}
	live := p.live()
	part := must(pipeline.PartitionMessages(p.t.Context(), pipeline.PartitionInput{
		Messages: live, Settings: p.settings, Full: full, Window: p.fault.Settings.Window, SeenSeq: p.seen,
	}))
	if p.nothing = part.Nothing; part.Nothing == "" {
		var source []pipeline.Message
		for _, i := range part.ToSummarize {
			source = append(source, live[i])
		}
		p.selfRequest(before)
		summary, slimmed := p.summarize(source)
		var kept []pipeline.Message
		p.carried = map[int64]bool{}
		for _, list := range [][]int{part.Carried, part.Tail} {
			for _, i := range list {
				kept = append(kept, live[i])
			}
		}
		for _, i := range part.Carried {
			p.carried[live[i].Seq] = true
		}
		p.covered = max(p.covered, part.CoversTo)
		for _, i := range part.Tail {
			if live[i].Seq <= p.covered {
				p.carried[live[i].Seq] = true
			}
		}
		if !p.digested {
			var users []pipeline.Message
			for _, m := range source {
				if m.Genuine() {
					users = append(users, m)
				}
			}
			summary = must(pipeline.UserMessagesSection(p.t.Context(), summary, users, p.settings.SummaryMaxTokens*3/4))
			var err error
			if summary, _, err = pipeline.VerifySummary(t.Context(), summary, source, kept); err != nil {
				t.Fatal(err)
			}
			if p.redact {
				summary = pipeline.NewRedactor(source).Redact(summary)
			}
		}
		if n := pipeline.EstimateText(summary); n > p.settings.SummaryMaxTokens+3000 {
			t.Errorf("a summary of %d tokens, its cap is %d", n, p.settings.SummaryMaxTokens)
		}
		p.summary = pipeline.SummaryText(pipeline.SummaryTextInput{
			Summary: summary, Digest: p.digested, UnderWay: pipeline.UnderWay(p.all),
			ProposeOnly: strings.Contains(p.state["mode"], "propose"), TailKept: len(part.Tail) > 0,
			Repeated: len(part.Carried), OmittedMessages: slimmed.Placeholders + slimmed.DroppedTools + slimmed.Cut,
		})
		p.notes = append(p.notes, p.summary)
		p.markers++
		p.seen = p.all[len(p.all)-1].Seq
	}
	// Above the trigger still: the tail is squeezed (no_shrink), whether or not there was something to summarize.
	for _, valve := range []pipeline.TailValve{pipeline.TailValvePreviews, pipeline.TailValveHeadTail} {
		if p.view().Stats.Tokens < p.limit() {
			break
		}
		p.valve, p.valveUpTo = valve, p.all[len(p.all)-1].Seq
	}
	p.contexts = append(p.contexts, p.view())
	p.invariants(natives)
}

// invariants are what holds after every compaction.
func (p *play) invariants(natives [][]byte) {
	t := p.t
	t.Helper()
	c := p.view()
	if len(c.Items) == 0 {
		return
	}
	messages := p.taken(c) // calls are answered, roles and blocks are right
	if p.summary != "" {
		if !slices.ContainsFunc(messages,
			func(m json.RawMessage) bool { return !bytes.Contains(m[:min(40, len(m))], []byte(`"system"`)) }) {
			t.Error("nothing but system messages is left")
		}
		last := c.Items[len(c.Items)-1]
		ends := pipeline.RoleUser
		if last.Message != nil {
			ends = last.Message.Role
		}
		if end := p.all[len(p.all)-1]; end.Role != pipeline.RoleAssistant && ends == pipeline.RoleAssistant {
			t.Error("the view ends with the agent, and the conversation does not")
		}
	}
	var last *pipeline.Message
	seen := map[int64]int{}
	for i, m := range p.all {
		if !bytes.Equal(m.Native, natives[i]) {
			t.Errorf("message %d of the transcript was changed", m.Seq)
		}
		if m.Genuine() {
			last = &p.all[i]
		}
	}
	summaries, system := 0, 0
	for i, item := range c.Items {
		if item.Made != nil {
			if item.Made.Kind == pipeline.KindSummary {
				summaries++
			}
			continue
		}
		seen[item.Message.Seq]++
		if item.Message.Role == pipeline.RoleSystem {
			if system++; i != 0 || len(item.Edits) > 0 {
				t.Error("the system message is not first, or not as it was")
			}
		}
		if last != nil && item.Message.Seq == last.Seq && len(item.Edits) > 0 {
			t.Errorf("the user's last message was edited: %+v", item.Edits)
		}
	}
	if last != nil && seen[last.Seq] != 1 {
		t.Errorf("the user's last message occurs %d times", seen[last.Seq])
	}
	for seq, n := range seen {
		if n > 1 {
			t.Errorf("message %d occurs %d times", seq, n)
		}
	}
	if want := min(p.markers, 1); summaries != want {
		t.Errorf("%d summaries, want %d", summaries, want)
	}
}

// selfRequest checks that the agent's own model could be asked: its last request, and one instruction.
func (p *play) selfRequest(c pipeline.Context) {
	p.t.Helper()
	prompt, err := pipeline.ChoosePrompt(string(p.format), true, pipeline.ModeExplicit, "")
	if err != nil {
		p.t.Fatal(err)
	}
	instruction := pipeline.Made{
		Role: pipeline.RoleUser,
		Text: pipeline.SelfInstruction(prompt, "", pipeline.Variation{}),
	}
	c.Items = append(slices.Clone(c.Items), pipeline.ContextItem{Made: &instruction})
	p.taken(c)
}

// taken checks that the API takes a context, with the user's next message behind it where the agent spoke last, and
// gives the messages of the context.
func (p *play) taken(c pipeline.Context) []json.RawMessage {
	p.t.Helper()
	more := 0
	if last := c.Items[len(c.Items)-1]; last.Message != nil && last.Message.Role == pipeline.RoleAssistant {
		c.Items = append(slices.Clone(c.Items),
			pipeline.ContextItem{Made: &pipeline.Made{Role: pipeline.RoleUser, Text: "next"}})
		more = 1
	}
	body := sent(p.t, p.format, c)
	messages := messagesOf(p.t, body)
	validated(p.t, p.format, bytes.ReplaceAll(body, []byte(unknownKey), nil))
	return messages[:len(messages)-more]
}

// unknownKey is a key of a block in one of the cases: it has to be kept, and no API would accept it.
const unknownKey = `,"x_unknown":{"a":[1,1000],"b":1}`

// summarize asks the scripted summarizers, the digest at last.
func (p *play) summarize(source []pipeline.Message) (string, pipeline.Slimmed) {
	p.digested = false
	replaced := 0
	for _, m := range source {
		replaced += m.Tokens
	}
	for _, script := range []*[]map[string]any{&p.script, &p.external} {
		var variation pipeline.Variation
		variation.MaxTokens = p.settings.SummaryMaxTokens
		factor := 1.0
		for try := 0; try < 4 && len(*script) > 0; try++ {
			slimmed, prompt := p.ask(source, variation, factor)
			answer := (*script)[0]
			if answer["forever"] != true {
				*script = (*script)[1:]
			}
			summary, err := p.accept(answer, prompt, replaced)
			if err == nil {
				return summary, slimmed
			}
			p.kinds = append(p.kinds, err.Kind)
			if err.Kind == pipeline.Refused {
				break
			}
			variation.Again++
			switch err.Kind {
			case pipeline.OutputTooLong, pipeline.NotSmaller:
				variation.Shorter = true
			case pipeline.InputTokensExceeded, pipeline.InputTooLarge:
				factor /= 2
			}
		}
	}
	p.digested = true
	budget := min(p.settings.SummaryMaxTokens, p.fault.Settings.Window/4) * 3
	return must(pipeline.Digest(p.t.Context(), pipeline.DigestInput{
			Messages: source, Todo: p.state["todo"],
			BudgetChars: budget,
		})),
		pipeline.Slimmed{}
}

// ask prepares the request as a summarizer would get it, and checks that it fits before it is sent.
func (p *play) ask(source []pipeline.Message, v pipeline.Variation,
	factor float64,
) (pipeline.Slimmed, pipeline.Prompt) {
	t := p.t
	t.Helper()
	prompt, err := pipeline.ChoosePrompt(string(p.format), true, pipeline.ModeExplicit, "")
	if err != nil {
		t.Fatal(err)
	}
	sum := pipeline.Summarizer{
		Kind: pipeline.SummarizerExternal, Vendor: "openai", Model: "m",
		Window: p.fault.Settings.SummarizerWindow, MaxOutput: p.fault.Settings.SummarizerMaxOutput,
	}
	if sum.Window == 0 {
		sum.Window = p.fault.Settings.Window
	}
	if sum.MaxOutput == 0 {
		sum.MaxOutput = 2000
	}
	fixed := pipeline.ExternalRequest(prompt, pipeline.Slimmed{}, "", v)
	chars, tokens := 0, 0
	for _, m := range source {
		text := pipeline.RenderMessage(m)
		chars, tokens = chars+pipeline.Chars(text), tokens+pipeline.EstimateText(text)
	}
	in := pipeline.SlimInput{
		Messages: source, ToolDropThreshold: p.settings.ToolDropThreshold, MinUsefulChars: p.settings.MinUsefulChars,
		BudgetChars: pipeline.InputBudgetChars(p.settings, sum,
			pipeline.EstimateText(fixed.System)+pipeline.EstimateText(fixed.User),
			float64(chars)/float64(max(tokens, 1))),
	}
	if p.redact {
		in.Redact = pipeline.NewRedactor(source).Redact
	}
	in = must(in.Share(p.t.Context(), factor))
	for range 4 {
		slimmed := must(pipeline.Slim(p.t.Context(), in))
		req := pipeline.ExternalRequest(prompt, slimmed, "", v)
		r := request{
			text:   req.System + "\n" + req.User,
			tokens: pipeline.EstimateText(req.System) + pipeline.EstimateText(req.User),
		}
		if !pipeline.FitsWindow(p.settings, sum, r.tokens) {
			in.BudgetChars = in.BudgetChars * 3 / 4
			continue
		}
		r.maxOutput = pipeline.MaxOutputFor(p.settings, sum, r.tokens)
		if r.maxOutput < 1 || r.maxOutput > sum.MaxOutput || r.tokens+r.maxOutput > sum.Window {
			t.Errorf("a request of %d tokens for %d, in a window of %d", r.tokens, r.maxOutput, sum.Window)
		}
		if !strings.Contains(r.text, "language") {
			t.Error("the request does not say in which language to answer")
		}
		for _, earlier := range p.requests {
			if earlier.text == r.text && v.Again > 0 {
				t.Error("a retry is the request before")
			}
		}
		p.requests = append(p.requests, r)
		return slimmed, prompt
	}
	t.Fatal("no request fits")
	return pipeline.Slimmed{}, prompt
}

// accept reads an answer of the script.
func (p *play) accept(script map[string]any, prompt pipeline.Prompt, replaced int) (string, *pipeline.Error) {
	if failure, ok := script["error"].(map[string]any); ok {
		kind := pipeline.InputTokensExceeded // what the cases here are about
		if failure["code"] == "content_filter" {
			kind = pipeline.Refused
		} else if status := failure["status"].(float64); status >= 500 {
			kind = pipeline.ServerError
		}
		return "", pipeline.Errorf(kind, "scripted")
	}
	if script["sse_error"] != nil {
		return "", pipeline.Errorf(pipeline.InputTokensExceeded, "scripted")
	}
	a := pipeline.Answer{Finish: pipeline.FinishStop}
	a.Text, _ = script["text"].(string)
	if script["echo_previous_summary"] == true {
		a.Text = p.summary + script["plus"].(string)
	}
	if script["echo_last_prompt"] == true {
		a.Text = p.requests[len(p.requests)-1].text + "\n" + script["then_text"].(string)
	}
	if blocks, ok := script["content"].([]any); ok {
		for _, b := range blocks {
			a.Reasoning, _ = b.(map[string]any)["thinking"].(string)
		}
	}
	if calls, ok := script["tool_calls"].([]any); ok {
		a.ToolCalls = len(calls)
	}
	switch finish, _ := script["finish"].(string); finish {
	case "length":
		a.Finish = pipeline.FinishLength
	case "tool_calls":
		a.Finish = pipeline.FinishToolUse
	case "refusal":
		a.Finish = pipeline.FinishRefusal
	case "content_filter":
		a.Finish = pipeline.FinishContentFilter
	}
	summary, err := pipeline.AcceptSummary(p.t.Context(), a,
		pipeline.AcceptLimits{ReplacedTokens: replaced, MaxTokens: p.settings.SummaryMaxTokens, Prompt: prompt})
	var refused *pipeline.Error
	if err != nil && !errors.As(err, &refused) {
		p.t.Fatal(err)
	}
	return summary, refused
}

// once and never check how often the view says something.
func (p *play) once(phrases ...string) {
	p.t.Helper()
	text := p.text()
	for _, phrase := range phrases {
		if n := strings.Count(text, phrase); n != 1 {
			p.t.Errorf("%q occurs %d times in %.3000s", phrase, n, text)
		}
	}
}

func (p *play) never(phrases ...string) {
	p.t.Helper()
	text := p.text()
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			p.t.Errorf("%q is in %.3000s", phrase, text)
		}
	}
}

// ordered checks that the view says things in an order.
func (p *play) ordered(phrases ...string) {
	p.t.Helper()
	text, at := p.text(), 0
	for _, phrase := range phrases {
		n := strings.Index(text[at:], phrase)
		if n < 0 {
			p.t.Errorf("%q is not behind what comes before it in %.3000s", phrase, text)
			return
		}
		at += n
	}
}

func (p *play) asked(n int) {
	p.t.Helper()
	if len(p.requests) != n {
		p.t.Errorf("%d requests, want %d", len(p.requests), n)
	}
}

// whole checks that the view is the conversation as it came.
func (p *play) whole() {
	p.t.Helper()
	c := p.view()
	if len(c.Items) != len(p.all) {
		p.t.Errorf("%d entries of %d", len(c.Items), len(p.all))
		return
	}
	for i, item := range c.Items {
		if item.Message == nil || item.Message.Seq != p.all[i].Seq || len(item.Edits) > 0 {
			p.t.Errorf("entry %d is %+v", i, item)
		}
	}
}

// faultChecks are what each case is about.
var faultChecks = map[string]func(*testing.T, *play){
	"a call without a result at the end of the history": func(t *testing.T,
		p *play,
	) {
		p.once("start the server now", "No result was recorded")
		p.asked(1)
	},
	"a result without its call at the start of the history": func(t *testing.T, p *play) { p.once("LAST"); p.asked(1) },
	"thinking blocks in a message that is kept": func(t *testing.T, p *play) {
		// The bytes of the blocks, unknown keys and the empty thought among them.
		native := string(p.all[3].Native)
		p.once(native[strings.Index(native, `"content":`) : len(native)-1])
	},
	"no model is available in the middle of a turn": func(t *testing.T, p *play) {
		if !p.digested || len(p.kinds) == 0 || p.kinds[0] != pipeline.ServerError {
			t.Errorf("digest %v after %v", p.digested, p.kinds)
		}
		if last := p.view().Items; last[len(last)-1].Message == nil || last[len(last)-1].Message.Results()[0] != "m1" {
			t.Error("the view does not end with the result")
		}
	},
	"ten tool calls in one message": func(t *testing.T, p *play) {
		calls := strings.Count(p.text(), `"p`)
		if calls != 0 && calls != 20 {
			t.Errorf("%d of the ten calls and results", calls)
		}
	},
	"a target format in which roles alternate": func(t *testing.T, p *play) { p.ordered("SUM", "u3-EXACT") },
	"a call whose worker died": func(t *testing.T, p *play) {
		if p.markers != 2 || p.view().Stats.Tokens >= 14_400 {
			t.Errorf("%d markers, %d tokens", p.markers, p.view().Stats.Tokens)
		}
		p.once("r11")
	},

	"an answer of thinking alone": func(t *testing.T,
		p *play,
	) {
		p.once("GOOD")
		p.asked(2)
		wantKinds(t, p, pipeline.EmptyOutput)
	},
	"three answers in a row are empty or cut off": func(t *testing.T, p *play) { p.once("GOOD", "u3"); p.asked(3) },
	"blank answers only": func(t *testing.T,
		p *play,
	) {
		p.once("KEEP-THIS-TEXT")
		p.never("unavailable")
		isDigest(t, p)
	},
	"the summarizer calls a tool": func(t *testing.T,
		p *play,
	) {
		p.once("GOOD")
		p.never("s1")
		wantKinds(t, p, pipeline.ToolCallOutput)
	},
	"each summary repeats the one before":        func(t *testing.T, p *play) { p.once("</conversation_summary>") },
	"the same tail is kept by three compactions": func(t *testing.T, p *play) { p.once("TAIL-UNIQ") },
	"a summary that is cut off": func(t *testing.T, p *play) {
		p.once("FULL")
		p.never("the first half of a summ")
		wantKinds(t, p, pipeline.OutputTooLong)
	},
	"markup around and inside a summary": func(t *testing.T, p *play) {
		p.once("BODY", "</conversation_summary>")
		p.never("DRAFT-THOUGHTS", "</invoke>")
	},
	"a conversation in another language": func(t *testing.T, p *play) { p.once("RESUMO"); p.never("metade") },
	"no new message since the last summary": func(t *testing.T,
		p *play,
	) {
		p.once("SUM1")
		p.never("There was nothing before")
		p.asked(1)
	},
	"a refusal or a content filter": func(t *testing.T, p *play) {
		p.once("GOOD")
		p.never("Sorry")
		p.asked(2)
		wantKinds(t, p, pipeline.Refused)
	},
	"text in the shape of a tool call": func(t *testing.T, p *play) {
		p.once("GOOD")
		p.never("<tool>read")
		wantKinds(t, p, pipeline.ToolCallOutput)
	},

	"a history many times the summarizer's window": func(t *testing.T, p *play) { p.once("SUM", "LAST"); fits(t, p) },
	"a summarizer with a small output limit":       func(t *testing.T, p *play) { p.once("LAST"); fits(t, p) },
	"the many spellings of an overflow": func(t *testing.T, p *play) {
		p.once("SUM", "LAST")
		if len(p.requests) > 3 || p.requests[1].tokens >= p.requests[0].tokens {
			t.Errorf("%d requests, of %d and %d tokens", len(p.requests), p.requests[0].tokens, p.requests[1].tokens)
		}
	},
	"large content of every kind": func(t *testing.T, p *play) {
		p.once("SUM", "LAST")
		fits(t, p)
		if !strings.Contains(p.requests[0].text, "SMALL-ASK") || strings.Contains(p.requests[0].text, "hm hm") {
			t.Error("the small question is not whole in the request, or reasoning is")
		}
	},
	"tool messages that are dropped": func(t *testing.T, p *play) {
		p.asked(1)
		for i := range 8 {
			for _, said := range []string{"USER-", "NARRATION-", "CONCLUSION-"} {
				if !strings.Contains(p.requests[0].text, fmt.Sprint(said, i)) {
					t.Errorf("%s%d is not in the request", said, i)
				}
			}
		}
		for _, noise := range []string{"TOOLTEXT", "ARGS"} {
			if strings.Contains(p.requests[0].text, noise) {
				t.Errorf("%s came back", noise)
			}
		}
	},
	"a summarizer with a very small window": func(t *testing.T, p *play) {
		fits(t, p)
		if !strings.Contains(p.requests[0].text, "<message seq") {
			t.Error("the request holds no transcript")
		}
	},
	"Chinese and Japanese text": func(t *testing.T, p *play) {
		if n := p.all[0].Tokens; n < 18_000 {
			t.Errorf("estimated at %d tokens", n)
		}
		for _, r := range p.requests {
			wide := strings.Count(r.text, "漢") + strings.Count(r.text, "字")
			if wide+(len(r.text)-3*wide)/4 > 16_000 {
				t.Errorf("a request of %d wide chars", wide)
			}
		}
		p.once("続けて")
	},

	"work in progress since the last request": func(t *testing.T, p *play) {
		p.ordered("SUM", "TASK-NOW", "STEP-1", "RES-1", "STEP-2", "RES-2")
		for _, item := range p.view().Items {
			if m := item.Message; m != nil && m.Genuine() && strings.Contains(pipeline.RenderMessage(*m), "TASK-OLD") {
				t.Error("the old task is a message of the user's still")
			}
		}
	},
	"a mode prompt that changes between two compactions": func(t *testing.T,
		p *play,
	) {
		p.once("MODE-Y")
		p.never("MODE-X")
	},
	"messages of role user that no person wrote": func(t *testing.T, p *play) {
		found := slices.ContainsFunc(p.view().Items, func(item pipeline.ContextItem) bool {
			return item.Message != nil && item.Message.Genuine() &&
				strings.Contains(pipeline.RenderMessage(*item.Message), "REAL-TASK")
		})
		if n := strings.Count(p.text(), "ENV-INFO"); !found || n > 1 {
			t.Errorf("the task is there: %v; the environment occurs %d times", found, n)
		}
	},
	"live state over three rounds": func(t *testing.T, p *play) {
		p.once("PLAN-B", "SKILL-A")
		p.never("TODO-A", "PLAN-A")
		if p.format == transcript.OpenAI {
			p.once("RULE-1 RULE-2 RULE-3")
		}
		if note := strings.ToLower(p.summary); strings.Contains(note, "restart") ||
			strings.Contains(note, "start over") {
			t.Error("the text asks for a fresh start")
		}
	},
	"the first request of a long conversation": func(t *testing.T, p *play) {
		if !strings.Contains(p.requests[0].text, "FIRST-REQUEST") {
			t.Error("the summarizer did not get the original question")
		}
		p.ordered("SUM", "LAST")
		if n := strings.Count(p.text(), "FIRST-REQUEST"); n > 1 {
			t.Errorf("the phrase occurs %d times", n)
		}
	},
	"a limit that the user sets early": func(t *testing.T, p *play) {
		if !strings.Contains(p.requests[0].text, "NEVER write to the billing database, rule-4471") {
			t.Error("the limit is not in the first request")
		}
		p.once("NEVER release during the weekend, rule-2208", "NEVER write to the billing database, rule-4471")
	},
	"subagents that are running": func(t *testing.T, p *play) { p.never("RUNNING-CHILD") },
	"a mode that only allows proposals": func(t *testing.T, p *play) {
		p.ordered("SUM. What comes next", "PLAN-MODE", "write the plan down first")
		p.once("PLAN-MODE")
		p.never("Go on from where")
	},

	"a history that cannot become smaller": func(t *testing.T,
		p *play,
	) {
		p.compact(false)
		p.compact(false)
		atMost(t, p, 2)
	},
	"a few long messages at the end": func(t *testing.T,
		p *play,
	) {
		atMost(t, p, 1)
		below(t, p, 28_800)
		p.once("Q4 ")
	},
	"a tool result as large as the window": func(t *testing.T, p *play) {
		below(t, p, 18_000)
		atMost(t, p, 2)
		p.once("LOG-HEAD", "LOG-TAIL", "look into the log")
	},
	"a last user message larger than the window": func(t *testing.T,
		p *play,
	) {
		p.compact(false)
		atMost(t, p, 2)
		p.once("PASTE-HEAD", "PASTE-TAIL")
	},
	"a summary that repeats the instructions": func(t *testing.T, p *play) { promptIsGone(t, p) },
	"credentials in a tool result": func(t *testing.T, p *play) {
		for _, secret := range []string{"AKIAQRSTUVWXYZABCDEF", "tok.prt.sig987654321"} {
			if strings.Contains(p.requests[0].text, secret) {
				t.Errorf("%s went out", secret)
			}
			p.never(secret)
		}
		if !strings.Contains(p.requests[0].text, "[redacted]") {
			t.Error("the tool's result is not in the request")
		}
	},

	"a conversation far below the limit": func(t *testing.T, p *play) { p.whole() },
	"nothing to compact": func(t *testing.T, p *play) {
		p.asked(0)
		if len(p.all) > 0 {
			p.whole()
		}
		want := map[int]string{0: pipeline.NothingEmpty, 1: pipeline.NothingEmpty, 2: pipeline.NothingAllProtected}
		if n := len(p.all); n > 0 && p.all[0].Role != pipeline.RoleSystem {
			want[1] = pipeline.NothingAllProtected
		}
		if p.nothing != want[len(p.all)] {
			t.Errorf("%d messages: nothing to do because of %q, want %q", len(p.all), p.nothing, want[len(p.all)])
		}
	},
	"messages without text":           func(t *testing.T, p *play) { p.once("LAST", "SUM") },
	"a manual compaction is repeated": func(t *testing.T, p *play) { p.asked(1) },
}

func wantKinds(t *testing.T, p *play, kinds ...pipeline.ErrorKind) {
	t.Helper()
	if !slices.Equal(p.kinds, kinds) {
		t.Errorf("not accepted for %v, want %v", p.kinds, kinds)
	}
}

func isDigest(t *testing.T, p *play) {
	t.Helper()
	if !p.digested || !strings.Contains(p.summary, "No model wrote this summary") {
		t.Error("it is no digest, or does not say so")
	}
}

func fits(t *testing.T, p *play) {
	t.Helper()
	for _, r := range p.requests {
		if r.tokens+r.maxOutput > p.fault.Settings.SummarizerWindow {
			t.Errorf("a request of %d tokens for %d", r.tokens, r.maxOutput)
		}
	}
	if p.digested {
		t.Error("it came to the digest")
	}
}

func atMost(t *testing.T, p *play, n int) {
	t.Helper()
	if len(p.requests) > n {
		t.Errorf("%d requests, at most %d", len(p.requests), n)
	}
}

func below(t *testing.T, p *play, tokens int) {
	t.Helper()
	if n := p.view().Stats.Tokens; n >= tokens {
		t.Errorf("%d tokens, want fewer than %d", n, tokens)
	}
}

// promptIsGone checks that nothing of the instructions is in the view, and that a request has them once.
func promptIsGone(t *testing.T, p *play) {
	t.Helper()
	prompt, err := pipeline.ChoosePrompt(string(p.format), true, pipeline.ModeExplicit, "")
	if err != nil {
		t.Fatal(err)
	}
	view := p.text()
	for line := range strings.Lines(prompt.Text + "\n" + prompt.System) {
		line = strings.TrimSpace(line)
		if pipeline.Chars(line) < 60 {
			continue
		}
		if strings.Contains(view, line) {
			t.Errorf("the view has %q", line)
		}
		for _, r := range p.requests {
			if n := strings.Count(r.text, line); n > 1 {
				t.Errorf("a request has %q %d times", line, n)
			}
		}
	}
}
