package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/testkit/corpus"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

// nativeCall asks for a compaction of a conversation of two messages; large makes it larger than the least that
// Anthropic's edit takes.
func nativeCall(t *testing.T, form contract.NativeForm, large, stream bool) llm.Call {
	t.Helper()
	said := "Look at a.go."
	if large {
		said = strings.Repeat("word ", 60_000)
	}
	body := `{"model":"model-a","max_tokens":4000,"stop_sequences":["x"],"tools":[{"name":"read","input_schema":{` +
		`"type":"object"}}],"tool_choice":{"type":"any"},` +
		`"messages":[{"role":"user","content":"` + said +
		`"},{"role":"assistant","content":"It holds 90071992547409931 <b>."}]}`
	if form == contract.NativeCompact {
		body = `{"model":"grok-a","instructions":"Be brief.","store":false,"tools":[],"input":[{"role":"user",` +
			`"content":"` + said + `"}]}`
	}
	made, err := llm.NativeBody(form, []byte(body), "Summarize.")
	if err != nil {
		t.Fatal(err)
	}
	if form != contract.NativeCompact && !stream {
		made = []byte(strings.TrimSuffix(string(made), "}") + `,"stream":false}`)
	}
	return llm.Call{Model: gjson.GetBytes(made, "model").String(), Body: made, Format: form.Format(), Native: form}
}

// quarter counts a token for four bytes, which is fast and exact enough to exceed a limit.
func quarter(text string) int { return len(text) / 4 }

func nativeClient(t *testing.T, srv *vendorserver.Server, form contract.NativeForm) llm.Client {
	t.Helper()
	vendorType := contract.ProtocolAnthropic
	if form == contract.NativeCompact {
		vendorType = contract.ProtocolOpenAIResponses
	}
	return newClient(t, srv, vendorType)
}

// compactionBlock is a block as Anthropic sends it, in a form that no encoder would choose.
const compactionBlock = `{"type":"compaction","content":"A  summary, 世界.",` +
	`"encrypted_content":"x\u0041==","signature":"sig/+="}`

var compactionUsage = &vendorserver.Usage{Input: 100, CachedInput: 9000, CacheWrite: 30, Output: 7}

// nativeAnswers are answers to requests for a native compaction.
var nativeAnswers = map[string]struct {
	form   contract.NativeForm
	small  bool
	answer vendorserver.Answer
	want   pipeline.ErrorKind
	native string
	text   string
}{
	"OnDemand": {
		form: contract.NativeOnDemand, small: true,
		answer: vendorserver.Answer{
			Content: []vendorserver.Block{{Type: "compaction", Raw: json.RawMessage(compactionBlock)}},
			Usage:   compactionUsage,
		}, native: "[" + compactionBlock + "]", text: "A  summary, 世界.",
	},
	"OnDemandCutOff": {
		form: contract.NativeOnDemand, answer: vendorserver.Answer{Finish: "max_tokens", Usage: compactionUsage},
		want: pipeline.OutputTooLong,
	},
	"OnDemandNoRoom": {
		form: contract.NativeOnDemand, answer: vendorserver.Answer{Finish: "model_context_window_exceeded"},
		want: pipeline.OutputTooLong,
	},
	"OnDemandTool": {
		form:   contract.NativeOnDemand,
		answer: vendorserver.Answer{ToolCalls: []vendorserver.ToolCall{{ID: "t", Name: "read", Arguments: "{}"}}},
		want:   pipeline.ToolCallOutput,
	},
	"OnDemandRefused": {
		form: contract.NativeOnDemand, answer: vendorserver.Answer{Finish: "refusal"},
		want: pipeline.Refused,
	},
	"OnDemandNoText": {
		form: contract.NativeOnDemand, answer: vendorserver.Answer{Finish: "end_turn"},
		want: pipeline.EmptyOutput,
	},
	"OnDemandNull": {
		form:   contract.NativeOnDemand,
		answer: vendorserver.Answer{Content: []vendorserver.Block{{Type: "compaction"}}},
		want:   pipeline.EmptyOutput,
	},
	"OnDemandBlank": {
		form:   contract.NativeOnDemand,
		answer: vendorserver.Answer{Content: []vendorserver.Block{{Type: "compaction", Text: " \n"}}},
		want:   pipeline.EmptyOutput,
	},
	"Edit": {
		form: contract.NativeEdit,
		answer: vendorserver.Answer{
			Content: []vendorserver.Block{{Type: "compaction", Text: "A summary.", Data: "enc"}},
			Usage:   compactionUsage,
		}, native: `[{"type":"compaction","content":"A summary.","encrypted_content":"enc"}]`,
		text: "A summary.",
	},
	"EditDidNotFire": {
		form: contract.NativeEdit, small: true, answer: vendorserver.Answer{Text: "I go on."},
		want: pipeline.EmptyOutput,
	},
	"EditNull": {
		form:   contract.NativeEdit,
		answer: vendorserver.Answer{Content: []vendorserver.Block{{Type: "compaction"}}},
		want:   pipeline.EmptyOutput,
	},
	"EditAndText": {
		form: contract.NativeEdit,
		answer: vendorserver.Answer{Content: []vendorserver.Block{
			{Type: "compaction", Text: "A summary."},
			{Type: "text", Text: "I go on."},
		}, Finish: "end_turn"},
		native: `[{"type":"compaction","content":"A summary."}]`, text: "A summary.",
	},
	"Compact": {
		form: contract.NativeCompact, answer: vendorserver.Answer{Text: "secret", Usage: compactionUsage},
		native: `[{"id":"cmp_1","type":"compaction","encrypted_content":"c2VjcmV0"}]`,
	},
	"CompactEmpty": {form: contract.NativeCompact, answer: vendorserver.Answer{}, want: pipeline.EmptyOutput},
	"CompactNotServed": {
		form: contract.NativeCompact, answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 404}},
		want: pipeline.ModelNotFound,
	},
	"Unavailable": {
		form: contract.NativeOnDemand, answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 529}},
		want: pipeline.Overloaded,
	},
}

// TestNativeAnswers requests each form, and each of its failures. The server validates the requests.
func TestNativeAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range nativeAnswers {
		for _, stream := range []bool{true, false} {
			if !stream && c.form == contract.NativeCompact {
				continue // it never streams
			}
			mode := "Stream"
			if !stream {
				mode = "Whole"
			}
			t.Run(name+mode, func(t *testing.T) {
				t.Parallel()
				srv := vendorserver.New(t, vendorserver.Script{
					Answers:     []vendorserver.Answer{c.answer},
					CountTokens: quarter,
				})
				res, err := nativeClient(t, srv, c.form).Call(ctxOf(t), nativeCall(t, c.form, !c.small, stream))
				if kind := pipeline.KindOf(err); kind != c.want {
					t.Fatalf("%q, want %q (%v)", kind, c.want, err)
				}
				if string(res.Native) != c.native || res.NativeText != c.text {
					t.Errorf("native %s, text %q", res.Native, res.NativeText)
				}
				if c.answer.Usage != nil {
					want := llm.Usage{Input: 9130, CachedInput: 9000, CacheWrite: 30, Output: 7}
					if res.Usage != want {
						t.Errorf("usage %+v, want %+v: that of all iterations", res.Usage, want)
					}
				}
				if r := srv.Requests()[0]; r.Native != string(c.form) {
					t.Errorf("the server saw %q", r.Native)
				}
			})
		}
	}
}

// TestNativeBrokenOff: an incomplete block is not a result.
func TestNativeBrokenOff(t *testing.T) {
	t.Parallel()
	for _, form := range []contract.NativeForm{contract.NativeOnDemand, contract.NativeEdit, contract.NativeCompact} {
		answer := vendorserver.Answer{Text: "A summary of everything."}
		srv := vendorserver.New(t, vendorserver.Script{Default: &answer, CountTokens: quarter})
		client, call := nativeClient(t, srv, form), nativeCall(t, form, true, true)
		whole, err := client.Call(ctxOf(t), call)
		if err != nil || whole.Native == nil {
			t.Fatalf("%s: %v", form, err)
		}
		complete := 0
		for n := 1; n < len(whole.Raw); n += 37 {
			answer.DropAfterBytes = n
			srv.SetScript(vendorserver.Script{Default: &answer, CountTokens: quarter})
			res, err := client.Call(ctxOf(t), call)
			switch {
			case err == nil && len(res.Native) > 0:
				complete++
			case err == nil || res.Native != nil || res.NativeText != "":
				t.Errorf("%s after %d of %d bytes: %v, %s", form, n, len(whole.Raw), err, res.Native)
			}
		}
		if complete > 3 {
			t.Errorf("%s: %d cut answers were taken for whole", form, complete)
		}
	}
}

// TestNativeBody: keys that a form does not accept are removed, all others stay as they were.
func TestNativeBody(t *testing.T) {
	t.Parallel()
	body := []byte(`{ "model":"m" ,"max_tokens":10,"stream":true,"stop_sequences":["x"],"tool_choice":{` +
		`"type":"auto"},"output_config":{"format":{"type":"json_schema"},"effort":"high","task_budget":{` +
		`"remaining":1}},` +
		`"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"messages":[ {"role":"user" ,` +
		`"content":"<b> 9007199254740993 \u0041"} ] }`)
	for form, want := range map[contract.NativeForm]string{
		contract.NativeOnDemand: `{"type":"summarize","instructions":"Say it."}`,
		contract.NativeEdit: `{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000},` +
			`"pause_after_compaction":true,"instructions":"Say it."}]}`,
	} {
		got, err := llm.NativeBody(form, body, "Say it.")
		if err != nil {
			t.Fatal(err)
		}
		key := map[contract.NativeForm]string{
			contract.NativeOnDemand: "compaction",
			contract.NativeEdit:     "context_management",
		}[form]
		if raw := gjson.GetBytes(got, key).Raw; raw != want {
			t.Errorf("%s: %s is %s", form, key, raw)
		}
		for _, removed := range []string{
			"stop_sequences", "stream", "output_config.format", "output_config.task_budget",
		} {
			if gjson.GetBytes(got, removed).Exists() {
				t.Errorf("%s: %s was not removed", form, removed)
			}
		}
		for _, path := range []string{"messages", "tool_choice", "output_config.effort", "max_tokens"} {
			if gjson.GetBytes(got, path).Raw != gjson.GetBytes(body, path).Raw {
				t.Errorf("%s: %s is %s", form, path, gjson.GetBytes(got, path).Raw)
			}
		}
	}
	long, err := llm.NativeBody(contract.NativeOnDemand, body, strings.Repeat("x", 20_000))
	if err != nil || gjson.GetBytes(long, "compaction.instructions").Exists() {
		t.Errorf("instructions that are too long: %v, %s", err, gjson.GetBytes(long, "compaction").Raw)
	}
	compact, err := llm.NativeBody(contract.NativeCompact,
		[]byte(`{"model":"m","instructions":null,"store":false,"input":[ 1 ],"stream":true,"prompt_cache_key":"k"}`),
		"ignored")
	if want := `{"model":"m","input":[ 1 ],"prompt_cache_key":"k"}`; err != nil || string(compact) != want {
		t.Errorf("%s, want %s (%v)", compact, want, err)
	}
	if _, err := llm.NativeBody("magic", body, ""); err == nil {
		t.Error("an unknown form is taken")
	}
}

// TestWithCompactionEdit: a block of the edit is sent back only with its declaration, which never fires.
func TestWithCompactionEdit(t *testing.T) {
	t.Parallel()
	const edit = `{"type":"compact_20260112","trigger":{"type":"input_tokens","value":10000000}}`
	for body, want := range map[string]string{
		``:        `{"context_management":{"edits":[` + edit + `]}}`,
		`{"a":1}`: `{"a":1,"context_management":{"edits":[` + edit + `]}}`,
		`{"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}}`: `{"context_management":{"edits":[` +
			`{"type":"clear_thinking_20251015"},` + edit + `]}}`,
		`{"context_management":{"edits":[{"type":"compact_20260112"}]}}`: `{"context_management":{"edits":[` +
			`{"type":"compact_20260112"}]}}`,
	} {
		if got, err := llm.WithCompactionEdit([]byte(body), contract.NativeEdit); err != nil || string(got) != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
		if got, err := llm.WithCompactionEdit([]byte(body), contract.NativeOnDemand); err != nil ||
			string(got) != body {
			t.Errorf("on demand: %s (%v)", got, err)
		}
	}
}

// TestNativeBetas: the betas follow from the keys of the body.
func TestNativeBetas(t *testing.T) {
	t.Parallel()
	block := func(signature string) string {
		return `{"model":"m","max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"compaction",` +
			`"content":"s"` + signature + `}]},{"role":"user","content":"x"}]`
	}
	for name, c := range map[string]struct{ body, want string }{
		"None": {`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, ""},
		"Asked": {`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"compaction":{` +
			`"type":"summarize"}}`, "compact-2026-09-04"},
		"Signed": {block(`,"signature":"s"`) + `}`, "compact-2026-09-04"},
		"Unsigned": {
			block("") + `,"context_management":{"edits":[{"type":"compact_20260112"}]}}`,
			"compact-2026-01-12,context-management-2025-06-27",
		},
		"SignedAsk": {block(`,"signature":"s"`) + `,"compaction":{"type":"summarize"}}`, "compact-2026-09-04"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "ok"}})
			if _, err := newClient(t, srv, contract.ProtocolAnthropic).Call(ctxOf(t),
				llm.Call{Model: "m", Body: []byte(c.body)}); err != nil && name != "Asked" && name != "SignedAsk" {
				t.Fatal(err)
			}
			if got := srv.Requests()[0].Header.Get("Anthropic-Beta"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestRecordedCompactions reads recorded answers of the vendors.
func TestRecordedCompactions(t *testing.T) {
	t.Parallel()
	if !corpus.Given() {
		return
	}
	load := func(name string) []struct {
		URI      string          `json:"uri"`
		Response json.RawMessage `json:"response"`
	} {
		file, _ := corpus.Open(t, "provider-compaction/"+name)
		var out []struct {
			URI      string          `json:"uri"`
			Response json.RawMessage `json:"response"`
		}
		if err := json.Unmarshal(file.Read(t), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := load("anthropic-compaction-end-to-end.json")[0].Response
	res, err := llm.ClassifyAnswer("anthropic", first)
	if err != nil {
		t.Fatal(err)
	}
	if text := gjson.GetBytes(first, "content.0.content").String(); res.NativeText != text || text == "" {
		t.Errorf("the block says %.60q, read was %.60q", text, res.NativeText)
	}
	if top := int(gjson.GetBytes(first, "usage.input_tokens").Int()); res.Usage.Input <= top ||
		res.Usage.Input < pipeline.MinAnthropicCompactionInputTokens {
		t.Errorf("usage %+v: the compaction is left out, the figure at the top is %d", res.Usage, top)
	}

	found := false
	for _, r := range load("openai-responses-compact.json") {
		if !strings.HasSuffix(r.URI, "/responses/compact") {
			continue
		}
		found = true
		res, err := llm.ClassifyAnswer("openai", r.Response)
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Native) != gjson.GetBytes(r.Response, "output").Raw {
			t.Errorf("the window was changed: %.200s", res.Native)
		}
		if !strings.Contains(res.NativeText, "What is 2+2?") || res.Usage.Input == 0 {
			t.Errorf("readable %q, usage %+v", res.NativeText, res.Usage)
		}
	}
	if !found {
		t.Error("no recorded compaction")
	}
}

func TestFamily(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vendor, model, want string }{
		{"anthropic", "claude-opus-5-5", "anthropic/claude-opus-5"},
		{"anthropic", "claude-opus-5-20261001", "anthropic/claude-opus-5"},
		{"anthropic", "claude-opus-4-8", "anthropic/claude-opus-4"},
		{"OpenAI", "GPT-5.4-mini", "openai/gpt-5"},
		{"openai", "o3-pro", "openai/o3"},
		{"xai", "grok-4.6", "xai/grok-4"},
		{"openrouter", "anthropic/claude-sonnet-5", "openrouter/claude-sonnet-5"},
		{"house", "mistral", "house/mistral"},
		{"house", "", "house/"},
	} {
		if got := llm.Family(c.vendor, c.model); got != c.want {
			t.Errorf("%s/%s is of %s, want %s", c.vendor, c.model, got, c.want)
		}
	}
}

// TestFormats: a vendor accepts requests only in the formats that it speaks.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, typ, format string
		want              bool
	}{
		{"anthropic", contract.ProtocolAnthropic, contract.ProtocolAnthropic, true},
		{"anthropic", contract.ProtocolAnthropic, contract.ProtocolOpenAI, false},
		{"openai", contract.ProtocolOpenAI, contract.ProtocolOpenAIResponses, true},
		{"xai", contract.ProtocolOpenAI, contract.ProtocolOpenAIResponses, true},
		{"vllm", contract.ProtocolOpenAI, contract.ProtocolOpenAIResponses, false},
		{"vllm", contract.ProtocolOpenAIResponses, contract.ProtocolOpenAIResponses, true},
		{"vllm", contract.ProtocolOpenAIResponses, contract.ProtocolOpenAI, true},
		{"google", contract.ProtocolGoogle, contract.ProtocolGoogle, true},
		{"google", contract.ProtocolGoogle, contract.ProtocolOpenAI, false},
	} {
		v := llm.Vendor{Name: c.name, Type: c.typ, BaseURL: "http://127.0.0.1:1"}
		if got := llm.Speaks(v, c.format); got != c.want {
			t.Errorf("%s of type %s takes %s: %v", c.name, c.typ, c.format, got)
		}
		if c.want {
			continue
		}
		client, err := llm.New(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Call(ctxOf(t),
			llm.Call{Model: "m", Body: []byte(`{}`), Format: c.format}); pipeline.KindOf(err) != pipeline.BadRequest {
			t.Errorf("%s of type %s, %s: %v", c.name, c.typ, c.format, err)
		}
	}
	google, err := llm.New(llm.Vendor{Name: "google", Type: contract.ProtocolGoogle})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := google.Call(ctxOf(t),
		llm.Call{
			Model: "m", Body: []byte(`{}`), Format: contract.ProtocolGoogle,
			Native: contract.NativeCompact,
		}); pipeline.KindOf(err) != pipeline.BadRequest {
		t.Errorf("a compaction that Google has not: %v", err)
	}
}

// TestNewModels: the configuration overrides the table.
func TestNewModels(t *testing.T) {
	t.Parallel()
	no := false
	models := llm.NewModels(map[string]llm.Known{
		"anthropic/claude-opus-4-5-own": {
			Window: 7000, NativeCompaction: []contract.NativeForm{contract.NativeEdit},
			Thinking: &no,
		},
		"House/Qwen": {Window: 131072},
	})
	m, ok := models.Lookup("anthropic", "claude-opus-4-5-own")
	if !ok || m.Window != 7000 || m.MaxOutput != 64_000 || m.Thinking || len(m.NativeCompaction) != 1 {
		t.Errorf("%+v", m)
	}
	if m, ok := models.Lookup("house", "qwen"); !ok || m.Window != 131072 || m.MaxOutput != 0 {
		t.Errorf("%+v, %v", m, ok)
	}
	if m, _ := models.Lookup("anthropic", "claude-opus-4-5"); m.Window != 200_000 {
		t.Errorf("another model changed: %+v", m)
	}
}
