package scenario_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/request"
)

const good = "<summary>The parts were read one by one; the last question is open.</summary>"

// vendors are the ways in which a summary is asked for: what is configured, and the format of an agent that speaks
// to that vendor itself.
var vendors = []struct {
	name   string
	typ    string
	format transcript.Format
}{
	{"anthropic", contract.ProtocolAnthropic, transcript.Anthropic},
	{"openai", contract.ProtocolOpenAI, transcript.OpenAI},
	{"xai", contract.ProtocolOpenAI, transcript.OpenAI},
	{"house", contract.ProtocolOpenAI, transcript.OpenAI}, // a server of one's own that speaks the protocol
	{"responses", contract.ProtocolOpenAIResponses, transcript.OpenAIResponses},
	{"google", contract.ProtocolGoogle, transcript.Google},
	{"bedrock", contract.ProtocolBedrock, transcript.Anthropic},
}

func configure(s *scenario.System, name, typ string) {
	base := s.Vendor.URL
	if strings.HasPrefix(typ, "openai") {
		base = s.Vendor.OpenAIURL()
	}
	s.Config.Vendors[name] = config.Vendor{Type: typ, BaseURL: base, APIKey: "test-key"}
}

// cases are what a vendor may do, in answers and in what comes of the run.
var cases = []struct {
	name       string
	answers    []vendorserver.Answer
	summarizer string // "" is the vendor's model
	path       []string
	// waits is the least time between the first two requests.
	waits time.Duration
}{
	{name: "text", answers: []vendorserver.Answer{{Text: good}}},
	{name: "overflow", answers: []vendorserver.Answer{{RejectOverTokens: 1}}, summarizer: "digest", path: []string{
		"input_tokens_exceeded→slim_harder", "input_tokens_exceeded→slim_harder", "input_tokens_exceeded→slim_harder",
		"input_tokens_exceeded→larger_window",
	}},
	{
		name: "too-many-bytes", answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 413}}, {Text: good}},
		path: []string{"input_too_large→slim_harder"},
	},
	{
		name: "cut-off", answers: []vendorserver.Answer{{Text: "<summary>half", Finish: "length"}, {Text: good}},
		path: []string{"output_too_long→shorter_output"},
	},
	{
		name: "refusal", answers: []vendorserver.Answer{{Text: "I cannot help with that.", Finish: "refusal"}},
		summarizer: "digest", path: []string{"refused→next_summarizer"},
	},
	{
		name: "filtered", answers: []vendorserver.Answer{{Finish: "content_filter"}}, summarizer: "digest",
		path: []string{"refused→next_summarizer"},
	},
	{name: "tool-call", answers: []vendorserver.Answer{{ToolCalls: []vendorserver.ToolCall{{
		ID: "c1", Name: "read",
		Arguments: `{}`,
	}}}, {Text: good}}, path: []string{"tool_call_output→once_more"}},
	{name: "thinking", answers: []vendorserver.Answer{{Content: []vendorserver.Block{{
		Type: "thinking", Thinking: "hm",
		Signature: "s",
	}}}, {Text: good}}, path: []string{"empty_output→once_more"}},
	{name: "dropped", answers: []vendorserver.Answer{{CloseAfterText: "<summary>half"}, {Text: good}}},
	{
		name: "rate-limit", answers: []vendorserver.Answer{
			{Error: &vendorserver.Error{Status: 429, RetryAfter: "2"}},
			{Text: good},
		},
		waits: 2 * time.Second,
	},
	{name: "overloaded", answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 529}}, {Text: good}}},
	{name: "unavailable", answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 503}}, {Text: good}}},
	{
		name: "auth", answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 401}}}, summarizer: "digest",
		path: []string{"auth→next_summarizer"},
	},
	{
		name: "no-credit", answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 402}}},
		summarizer: "digest", path: []string{"quota→next_summarizer"},
	},
}

// TestVendorsAsked asks every vendor for a summary, and lets it fail in every way, through the real workflow.
func TestVendorsAsked(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			script := vendorserver.Script{Models: map[string][]vendorserver.Answer{}, Compatible: v.name == "house"}
			for _, c := range cases {
				answers := slices.Clone(c.answers)
				answers[len(answers)-1].Forever = true
				script.Models[c.name] = answers
			}
			s := scenario.New(t, script)
			configure(s, v.name, v.typ)
			s.StartWorker()
			t.Run("cases", func(t *testing.T) {
				for _, c := range cases {
					t.Run(c.name, func(t *testing.T) {
						t.Parallel()
						ref := s.Create(scenario.Conversation{
							Vendor: "nobody", Window: 16000, Messages: scenario.Turns(6, 2000),
							Settings: map[string]any{"summarizers": []any{v.name + "/" + c.name}, "digest": "always"},
						})
						run := s.Compact(ref, runs.Request{})
						want := c.summarizer
						if want == "" {
							want = v.name + "/" + c.name
						}
						if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != want {
							t.Errorf("%s by %s, want %s\n%s", run.Outcome, run.Facts.Summarizer, want, s.Attempts(run))
						}
						var path []string
						for _, p := range c.path {
							path = append(path, v.name+"/"+c.name+":"+p)
						}
						if got := s.Fallbacks(run); !slices.Equal(got, path) {
							t.Errorf("path %q, want %q", got, path)
						}
						if c.waits > 0 {
							checkWait(t, s, c.name, c.waits)
						}
					})
				}
			})
			checkMetadata(t, s, v.name)
		})
	}
}

func checkWait(t *testing.T, s *scenario.System, model string, least time.Duration) {
	t.Helper()
	var at []time.Time
	for _, r := range s.Vendor.Requests() {
		if r.Model == model {
			at = append(at, r.At)
		}
	}
	if len(at) < 2 || at[1].Sub(at[0]) < least {
		t.Errorf("%s: asked at %v, the vendor wants %v in between", model, at, least)
	}
}

// checkMetadata: every request says why it is made, and for whom.
func checkMetadata(t *testing.T, s *scenario.System, vendor string) {
	t.Helper()
	for _, r := range s.Vendor.Requests() {
		for header, want := range map[string]string{
			"X-Precis-Inference-Reason": "agent-summarization", "X-Precis-Tenant": scenario.Tenant,
			"X-Precis-Feature": "handoff",
		} {
			if got := r.Header.Get(header); got != want {
				t.Fatalf("%s: %s is %q, want %q", vendor, header, got, want)
			}
		}
		if r.Header.Get("X-Precis-Run") == "" {
			t.Fatalf("%s: no run in %v", vendor, r.Header)
		}
	}
}

// TestSelfByVendor has each agent's own model summarize on the agent's own request.
func TestSelfByVendor(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
			configure(s, v.name, v.typ)
			s.StartWorker()
			ref := s.Create(scenario.Conversation{
				Format: v.format, Vendor: v.name, Window: 20000, Messages: scenario.TurnsIn(v.format, 6, 2000),
				System: json.RawMessage(`"You are a careful agent."`), Tools: json.RawMessage(`[]`),
			})
			before := s.Context(ref)
			run := s.Compact(ref, runs.Request{})
			if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != "self" ||
				run.Facts.Mode != pipeline.ModeExplicit {
				t.Fatalf("%s by %s (%s)\n%s", run.Outcome, run.Facts.Summarizer, run.Facts.Mode, s.Attempts(run))
			}
			requests := s.Vendor.Requests()
			if len(requests) != 1 {
				t.Fatalf("%d requests", len(requests))
			}
			if body := string(requests[0].Body); !strings.Contains(body, strings.Join(before, ",")) {
				t.Errorf("the agent's messages do not stand in the request as they are: %.400s", body)
			}
			after := s.Context(ref)
			if len(after) >= len(before) || after[len(after)-1] != before[len(before)-1] {
				t.Errorf("%d messages before, %d after, the last one %s", len(before), len(after), after[len(after)-1])
			}
		})
	}
}

// native is a run in mode beta, with a vendor that compacts by itself.
type native struct {
	name    string
	vendor  string
	format  transcript.Format
	forms   []string
	tokens  int // of the conversation
	answers []vendorserver.Answer
	// summarizer, mode and asked are what comes of it; asked are the native forms of the requests, "" for one with a
	// prompt of ours.
	summarizer string
	mode       pipeline.Mode
	asked      []string
	// kept says that the vendor's own goes back to it.
	kept bool
}

var natives = []native{
	{
		name: "on-demand", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand", "edit"},
		tokens: 60_000, answers: []vendorserver.Answer{{Text: good}}, summarizer: "native", mode: pipeline.ModeBeta,
		asked: []string{"on_demand"}, kept: true,
	},
	{
		name: "edit", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"edit"}, tokens: 60_000,
		answers: []vendorserver.Answer{{Text: good}}, summarizer: "native", mode: pipeline.ModeBeta,
		asked: []string{"edit"}, kept: true,
	},
	{ // A block without content is a compaction that failed
		name: "null-block", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"edit"}, tokens: 60_000,
		answers:    []vendorserver.Answer{{Content: []vendorserver.Block{{Type: "compaction"}}}, {Text: good}},
		summarizer: "self", mode: pipeline.ModeExplicit, asked: []string{"edit", ""},
	},
	{ // Under the least that the vendor takes
		name: "too-small", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand", "edit"},
		tokens: 20_000, answers: []vendorserver.Answer{{Text: good}}, summarizer: "self", mode: pipeline.ModeExplicit,
		asked: []string{""},
	},
	{
		name: "native-cut-off", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand"},
		tokens: 60_000, answers: []vendorserver.Answer{{Finish: "max_tokens"}, {Text: good}}, summarizer: "self",
		mode: pipeline.ModeExplicit, asked: []string{"on_demand", ""},
	},
	{
		name: "native-refused", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand"},
		tokens: 60_000, answers: []vendorserver.Answer{{Finish: "refusal"}, {Text: good}}, summarizer: "self",
		mode: pipeline.ModeExplicit, asked: []string{"on_demand", ""},
	},
	{
		name: "native-tool-call", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand"},
		tokens: 60_000, answers: []vendorserver.Answer{{ToolCalls: []vendorserver.ToolCall{{
			ID: "t", Name: "read",
			Arguments: "{}",
		}}}, {Text: good}}, summarizer: "self", mode: pipeline.ModeExplicit,
		asked: []string{"on_demand", ""},
	},
	{
		name: "native-overflow", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand"},
		tokens: 60_000, answers: []vendorserver.Answer{{Error: &vendorserver.Error{
			Status:  400,
			Message: "prompt is too long: 213462 tokens > 200000 maximum",
		}}, {Text: good}}, summarizer: "self",
		mode: pipeline.ModeExplicit, asked: []string{"on_demand", ""},
	},
	{
		name: "native-unavailable", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand"},
		tokens: 60_000, answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 529}}, {Text: good}},
		summarizer: "native", mode: pipeline.ModeBeta, asked: []string{"on_demand", "on_demand"}, kept: true,
	},
	{
		name: "native-dropped", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"on_demand"},
		tokens: 60_000, answers: []vendorserver.Answer{{Text: good, DropAfterBytes: 300}, {Text: good}},
		summarizer: "native", mode: pipeline.ModeBeta, asked: []string{"on_demand", "on_demand"}, kept: true,
	},
	{
		name: "none", vendor: "anthropic", format: transcript.Anthropic, forms: []string{"none"}, tokens: 60_000,
		answers: []vendorserver.Answer{{Text: good}}, summarizer: "self", mode: pipeline.ModeExplicit,
		asked: []string{""},
	},
	{
		name: "compact", vendor: "openai", format: transcript.OpenAIResponses, forms: []string{"compact"},
		tokens: 20_000, answers: []vendorserver.Answer{{Text: "what only the vendor reads"}, {Text: good}},
		summarizer: "self", mode: pipeline.ModeBeta, asked: []string{"compact", ""}, kept: true,
	},
	{
		name: "compact-empty", vendor: "openai", format: transcript.OpenAIResponses, forms: []string{"compact"},
		tokens: 20_000, answers: []vendorserver.Answer{{}, {Text: good}}, summarizer: "self",
		mode: pipeline.ModeExplicit, asked: []string{"compact", ""},
	},
	{
		name: "compact-not-there", vendor: "openai", format: transcript.OpenAIResponses, forms: []string{"compact"},
		tokens: 20_000, answers: []vendorserver.Answer{{Error: &vendorserver.Error{Status: 404}}, {Text: good}},
		summarizer: "self", mode: pipeline.ModeExplicit, asked: []string{"compact", ""},
	},
	{ // the chat protocol has no place for what the endpoint gives
		name: "chat", vendor: "openai", format: transcript.OpenAI, forms: []string{"compact"}, tokens: 20_000,
		answers: []vendorserver.Answer{{Text: good}}, summarizer: "self", mode: pipeline.ModeExplicit,
		asked: []string{""},
	},
	{
		name: "grok-compact", vendor: "xai", format: transcript.OpenAIResponses, forms: []string{"compact"},
		tokens: 20_000, answers: []vendorserver.Answer{{Text: "what only the vendor reads"}, {Text: good}},
		summarizer: "self", mode: pipeline.ModeBeta, asked: []string{"compact", ""}, kept: true,
	},
	{
		name: "google-beta", vendor: "google", format: transcript.Google, forms: nil, tokens: 20_000,
		answers: []vendorserver.Answer{{Text: good}}, summarizer: "self", mode: pipeline.ModeExplicit,
		asked: []string{""},
	},
}

// TestNativeCompaction walks mode beta through the real workflow.
func TestNativeCompaction(t *testing.T) {
	t.Parallel()
	script := vendorserver.Script{Models: map[string][]vendorserver.Answer{}}
	for _, n := range natives {
		script.Models[n.name] = n.answers
	}
	s := scenario.New(t, script)
	configure(s, "xai", contract.ProtocolOpenAI)
	configure(s, "google", contract.ProtocolGoogle)
	s.Config.Models = map[string]config.Model{}
	for _, n := range natives {
		s.Config.Models[n.vendor+"/"+n.name] = config.Model{Window: 200_000, MaxOutput: 8192, NativeCompaction: n.forms}
	}
	s.StartWorker()
	for _, n := range natives {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			ref := s.Create(scenario.Conversation{
				Format: n.format, Vendor: n.vendor, Model: n.name, Window: 200_000,
				System: json.RawMessage(`"You are a careful agent."`), Tools: json.RawMessage(`[]`),
				Settings: map[string]any{"mode": "beta", "tool_result_keep_turns": 0},
				Messages: limited(n.format, scenario.TurnsIn(n.format, 10, n.tokens/10)),
			})
			run := s.Compact(ref, runs.Request{})
			if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != n.summarizer ||
				run.Facts.Mode != n.mode {
				t.Fatalf("%s by %s (%s) %s\n%s", run.Outcome, run.Facts.Summarizer, run.Facts.Mode, run.Reason,
					s.Attempts(run))
			}
			var asked []string
			for _, r := range s.Vendor.Requests() {
				if r.Model == n.name {
					asked = append(asked, r.Native)
				}
			}
			if !slices.Equal(asked, n.asked) {
				t.Errorf("asked %q, want %q", asked, n.asked)
			}
			checkNative(t, s, n, run)
		})
	}
}

const limit = "Never touch the folder prod-7731."

// limited puts a limit of the user's at the beginning of a talk.
func limited(format transcript.Format, talk []string) []string {
	first := strings.Replace(talk[0], "Request 0:", limit+" Request 0:", 1)
	return append([]string{first}, talk[1:]...)
}

// checkNative looks at what the model of the conversation sees, what another one would, and what was paid.
func checkNative(t *testing.T, s *scenario.System, n native, run runs.Run) {
	t.Helper()
	ref := store.ConversationRef{Tenant: scenario.Tenant, ID: run.Conversation}
	view := s.View(ref)
	if (view.Marker.Native != "") != n.kept {
		t.Fatalf("the vendor's own is kept: %v, want %v", view.Marker.Native != "", n.kept)
	}
	own := s.Context(ref)
	mustSend(t, n.format, own, view.NativeForm())
	if !strings.Contains(strings.Join(own, "\n"), limit) {
		t.Errorf("the user's limit is lost: %.600s", strings.Join(own, "\n"))
	}
	if !n.kept {
		if !strings.Contains(own[0], "conversation_summary") {
			t.Errorf("the context begins with %.200s", own[0])
		}
		return
	}
	if strings.Contains(strings.Join(own, "\n"), "<conversation_summary>") {
		t.Error("the model sees the readable summary beside the vendor's own")
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(view.Source.Native, &parts); err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		if !strings.Contains(own[i], string(part)) {
			t.Errorf("%s does not stand in the context as it came, but %.400s", part, own[i])
		}
	}

	other := "another-model"
	if _, err := s.Store.Changes.Update(t.Context(), ref, conversations.Patch{Model: &other}); err != nil {
		t.Fatal(err)
	}
	readable := s.Context(ref)
	mustSend(t, n.format, readable, "")
	if !strings.Contains(readable[0], "The parts were read one by one") ||
		strings.Contains(strings.Join(readable, ""), `"compaction"`) {
		t.Errorf("another model sees %.400s", readable[0])
	}
	if _, err := s.Store.Changes.Update(t.Context(), ref, conversations.Patch{Model: &n.name}); err != nil {
		t.Fatal(err)
	}
	if again := s.Context(ref); !slices.Equal(again, own) {
		t.Error("back at the first model the context is another one")
	}
	ledger, err := s.Store.ModelCalls.List(t.Context(), run.Ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ledger {
		if e.State == modelcalls.Complete && (e.Input == 0 || e.Output == 0) {
			t.Errorf("call %d is booked with %d and %d tokens", e.Call, e.Input, e.Output)
		}
	}
}

// mustSend puts a context into a request of its format and validates it as the vendor would.
func mustSend(t *testing.T, format transcript.Format, messages []string, form contract.NativeForm) {
	t.Helper()
	raw := make([][]byte, len(messages))
	for i, m := range messages {
		raw[i] = []byte(m)
	}
	body, err := request.Build(request.Input{Format: format, Model: "m", Messages: raw})
	if err == nil {
		body, err = llm.WithCompactionEdit(body, form)
	}
	if err != nil {
		t.Fatal(err)
	}
	switch format {
	case transcript.Anthropic:
		err = vendorserver.ValidateAnthropic(body)
	case transcript.OpenAI:
		err = vendorserver.ValidateOpenAI(body)
	}
	if err != nil {
		t.Errorf("the context is not valid: %v\n%.400s", err, body)
	}
}

// TestCompactsAgainOnTopOfItsOwn: the second compaction sends the first one's block, and keeps only its own.
func TestCompactsAgainOnTopOfItsOwn(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
	s.Config.Models = map[string]config.Model{"anthropic/again": {
		Window:           200_000,
		NativeCompaction: []string{"on_demand"},
	}}
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Model: "again", Window: 200_000, System: json.RawMessage(`"s"`), Tools: json.RawMessage(`[]`),
		Settings: map[string]any{"mode": "beta", "tool_result_keep_turns": 0}, Messages: scenario.Turns(10, 6000),
	})
	first := s.Compact(ref, runs.Request{})
	block := strings.Trim(string(s.View(ref).Source.Native), "[]")
	full := s.Context(ref)
	s.Append(ref, scenario.Turns(10, 6000)...)
	second := s.Compact(ref, runs.Request{})
	for _, run := range []runs.Run{first, second} {
		if run.Outcome != precis.OutcomeApplied || run.Facts.Summarizer != "native" {
			t.Fatalf("%s by %s %s\n%s", run.Outcome, run.Facts.Summarizer, run.Reason, s.Attempts(run))
		}
	}
	requests := s.Vendor.Requests()
	if len(requests) != 2 || !strings.Contains(string(requests[1].Body), block) {
		t.Errorf("%d requests, the second one without the first one's block", len(requests))
	}
	now := strings.Join(s.Context(ref), "")
	if strings.Count(now, `"type":"compaction"`) != 1 || strings.Contains(now, block) {
		t.Errorf("the context holds %d blocks", strings.Count(now, `"type":"compaction"`))
	}
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	if undone := s.Context(ref); !slices.Equal(undone[:1], full[:1]) || !strings.Contains(undone[0], block) {
		t.Errorf("after an undo the context begins with %.200s", undone[0])
	}
}
