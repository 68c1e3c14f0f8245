package vendorserver_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"precis/internal/testkit/vendorserver"
)

// TestResponsesSDK reads the answers with the vendor's own client, streamed and whole.
func TestResponsesSDK(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Key: "k", Default: &full})
	client := openaiClient(srv)
	params := responses.ResponseNewParams{
		Model: "gpt-6", Instructions: openai.String("Be brief."),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Go on.")},
	}
	check := func(name string, r *responses.Response) {
		t.Helper()
		if r.OutputText() != `First I read "it" <b>.` || r.Status != responses.ResponseStatusCompleted ||
			r.Model != "gpt-6" || r.ID == "" {
			t.Errorf("%s: text %q, status %q, model %q, id %q", name, r.OutputText(), r.Status, r.Model, r.ID)
		}
		if len(r.Output) != 4 || r.Output[0].Type != "reasoning" || r.Output[0].Summary[0].Text != "let me see, 世界" {
			t.Fatalf("%s: output %s", name, r.RawJSON())
		}
		if c := r.Output[2].AsFunctionCall(); c.CallID != "call_1" || c.Name != "read_file" ||
			c.Arguments != full.ToolCalls[0].Arguments {
			t.Errorf("%s: call %+v", name, c)
		}
		if u := r.Usage; u.InputTokens != 123 || u.InputTokensDetails.CachedTokens != 20 || u.OutputTokens != 7 ||
			u.TotalTokens != 130 {
			t.Errorf("%s: usage %+v", name, u)
		}
	}
	whole, err := client.Responses.New(ctxOf(t), params)
	if err != nil {
		t.Fatal(err)
	}
	check("whole", whole)

	stream := client.Responses.NewStreaming(ctxOf(t), params)
	var text, arguments, kinds strings.Builder
	for stream.Next() {
		switch ev := stream.Current(); ev.Type {
		case "response.output_text.delta":
			text.WriteString(ev.Delta)
		case "response.function_call_arguments.delta":
			arguments.WriteString(ev.Delta)
		case "response.output_item.added":
			kinds.WriteString(ev.Item.Type + " ")
		case "response.completed":
			check("streamed", &ev.Response)
		}
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	if text.String() != `First I read "it" <b>.` || arguments.String() != full.ToolCalls[0].Arguments+"{}" ||
		kinds.String() != "reasoning message function_call function_call " {
		t.Errorf("pieces: %q, %q, %q", text.String(), arguments.String(), kinds.String())
	}
}

// TestCompactSDK: the compact endpoint, and its window as the next input.
func TestCompactSDK(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: "secret"}})
	client := openaiClient(srv)
	items := responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("Look at a.go.", responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfMessage("It is empty.", responses.EasyInputMessageRoleAssistant),
	}
	for model, want := range map[string]int{"gpt-6": 2, "grok-4.7": 1} {
		compacted, err := client.Responses.Compact(ctxOf(t), responses.ResponseCompactParams{
			Model: responses.ResponseCompactParamsModel(model),
			Input: responses.ResponseCompactParamsInputUnion{OfResponseInputItemArray: items},
		})
		if err != nil {
			t.Fatal(err)
		}
		last := compacted.Output[len(compacted.Output)-1]
		if len(compacted.Output) != want || last.Type != "compaction" || last.AsCompaction().EncryptedContent == "" ||
			compacted.Usage.InputTokens == 0 {
			t.Errorf("%s: %s", model, compacted.RawJSON())
		}
		if want == 2 && compacted.Output[0].Content[0].Text != "Look at a.go." {
			t.Errorf("%s keeps %s", model, compacted.Output[0].RawJSON())
		}
	}
}

// TestCompactionSDK: Anthropic's compactions, streamed and whole.
func TestCompactionSDK(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{
		Default:     &vendorserver.Answer{Text: "A summary."},
		CountTokens: func(string) int { return 60_000 },
	})
	client := anthropicClient(srv)
	base := anthropic.BetaMessageNewParams{
		Model: "claude-opus-5-5", MaxTokens: 4096,
		Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Look."))},
	}
	onDemand, edit := base, base
	onDemand.Betas = []anthropic.AnthropicBeta{anthropic.AnthropicBetaCompact2026_09_04}
	onDemand.Compaction = anthropic.BetaCompactionConfigUnionParam{
		OfSummarize: &anthropic.BetaSummarizeCompactionParam{},
	}
	edit.Betas = []anthropic.AnthropicBeta{anthropic.AnthropicBetaCompact2026_01_12}
	compact := anthropic.BetaContextManagementConfigEditUnionParam{
		OfCompact20260112: &anthropic.BetaCompact20260112EditParam{PauseAfterCompaction: anthropic.Bool(true)},
	}
	edit.ContextManagement.Edits = []anthropic.BetaContextManagementConfigEditUnionParam{compact}
	check := func(name string, m *anthropic.BetaMessage, signed bool) {
		t.Helper()
		if m.StopReason != anthropic.BetaStopReasonCompaction || len(m.Content) != 1 {
			t.Fatalf("%s: %s", name, m.RawJSON())
		}
		block := m.Content[0].AsCompaction()
		if block.Content != "A summary." || (block.Signature != "") != signed {
			t.Errorf("%s: %+v", name, block)
		}
		if it := m.Usage.Iterations; m.Usage.InputTokens != 0 || len(it) != 1 || it[0].Type != "compaction" ||
			it[0].InputTokens != 60_000 {
			t.Errorf("%s: usage %s", name, m.Usage.RawJSON())
		}
	}
	for name, params := range map[string]anthropic.BetaMessageNewParams{"on demand": onDemand, "edit": edit} {
		signed := name == "on demand"
		whole, err := client.Beta.Messages.New(ctxOf(t), params)
		if err != nil {
			t.Fatal(err)
		}
		check(name+", whole", whole, signed)
		stream := client.Beta.Messages.NewStreaming(ctxOf(t), params)
		var m anthropic.BetaMessage
		for stream.Next() {
			if err := m.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if stream.Err() != nil {
			t.Fatal(stream.Err())
		}
		check(name+", streamed", &m, signed)

		// What came back is taken in the next request.
		next := params
		next.Compaction = anthropic.BetaCompactionConfigUnionParam{}
		next.Messages = []anthropic.BetaMessageParam{
			whole.ToParam(),
			anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("And now?")),
		}
		if _, err := client.Beta.Messages.New(ctxOf(t), next); err != nil {
			t.Errorf("%s: the next request: %v", name, err)
		}
	}
	late := onDemand
	late.Compaction = anthropic.BetaCompactionConfigUnionParam{}
	block, err := client.Beta.Messages.New(ctxOf(t), onDemand)
	if err != nil {
		t.Fatal(err)
	}
	late.Messages = append(append([]anthropic.BetaMessageParam{}, base.Messages...), block.ToParam(),
		anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("x")))
	var refused *anthropic.Error
	if _, err := client.Beta.Messages.New(ctxOf(t), late); !errors.As(err, &refused) || refused.StatusCode != 400 {
		t.Errorf("a block that is not the first one: %v", err)
	}
}

func googleClient(t *testing.T, srv *vendorserver.Server) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(ctxOf(t), &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: srv.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestGoogleSDK reads the answers with the vendor's own client, streamed and whole.
func TestGoogleSDK(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Key: "k", Default: &full})
	client := googleClient(t, srv)
	config := &genai.GenerateContentConfig{SystemInstruction: genai.Text("Be brief.")[0], MaxOutputTokens: 1000}
	check := func(name string, parts []*genai.Part, last *genai.GenerateContentResponse) {
		t.Helper()
		var text, thought strings.Builder
		var calls []*genai.FunctionCall
		for _, p := range parts {
			switch {
			case p.FunctionCall != nil:
				calls = append(calls, p.FunctionCall)
			case p.Thought:
				thought.WriteString(p.Text)
			default:
				text.WriteString(p.Text)
			}
		}
		if text.String() != `First I read "it" <b>.` || thought.String() != "let me see, 世界" || len(calls) != 2 ||
			calls[0].Name != "read_file" || calls[0].Args["path"] != "/tmp/a b" {
			t.Errorf("%s: text %q, thought %q, calls %v", name, text.String(), thought.String(), calls)
		}
		if last.Candidates[0].FinishReason != genai.FinishReasonStop || last.ModelVersion != "gemini-3.8-flash" ||
			last.ResponseID == "" {
			t.Errorf("%s: finish %q, model %q", name, last.Candidates[0].FinishReason, last.ModelVersion)
		}
		if u := last.UsageMetadata; u == nil || u.PromptTokenCount != 123 || u.CachedContentTokenCount != 20 ||
			u.CandidatesTokenCount != 7 || u.TotalTokenCount != 130 {
			t.Errorf("%s: usage %+v", name, u)
		}
	}
	whole, err := client.Models.GenerateContent(ctxOf(t), "gemini-3.8-flash", genai.Text("Go on."), config)
	if err != nil {
		t.Fatal(err)
	}
	check("whole", whole.Candidates[0].Content.Parts, whole)

	var parts []*genai.Part
	var last *genai.GenerateContentResponse
	for r, err := range client.Models.GenerateContentStream(ctxOf(t), "gemini-3.8-flash", genai.Text("Go on."),
		config) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Candidates[0].Content != nil {
			parts = append(parts, r.Candidates[0].Content.Parts...)
		}
		last = r
	}
	check("streamed", parts, last)
	if r := srv.Requests()[1]; !r.Stream || r.Model != "gemini-3.8-flash" || r.System != "Be brief." ||
		r.LastUser != "Go on." || r.MaxTokens != 1000 {
		t.Errorf("the request was read as %+v", r)
	}
}

// TestNewerSDKErrors: the vendors' own clients read the errors.
func TestNewerSDKErrors(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{
		{Error: &vendorserver.Error{Status: 429, RetryAfter: "7"}},
		{Text: "half", SSEError: &vendorserver.Error{Status: 503}},
		{Finish: "content_filter"},
		{Error: &vendorserver.Error{Status: 400, Code: "context_length_exceeded", Message: "too much"}},
		{Text: "half", SSEError: &vendorserver.Error{Status: 500}},
	}})
	google, client := googleClient(t, srv), openaiClient(srv)
	var ge genai.APIError
	if _, err := google.Models.GenerateContent(ctxOf(t), "g", genai.Text("x"), nil); !errors.As(err, &ge) ||
		ge.Code != 429 || ge.Status != "RESOURCE_EXHAUSTED" || len(ge.Details) != 1 ||
		ge.Details[0]["retryDelay"] != "7s" {
		t.Errorf("google: %v", err)
	}
	var streamErr error
	for _, err := range google.Models.GenerateContentStream(ctxOf(t), "g", genai.Text("x"), nil) {
		streamErr = err
	}
	if streamErr == nil || !strings.Contains(streamErr.Error(), "503") {
		t.Errorf("google stream: %v", streamErr)
	}
	blocked, err := google.Models.GenerateContent(ctxOf(t), "g", genai.Text("x"), nil)
	if err != nil || blocked.PromptFeedback == nil ||
		blocked.PromptFeedback.BlockReason != genai.BlockedReasonProhibitedContent || len(blocked.Candidates) != 0 {
		t.Errorf("google blocked: %v, %+v", err, blocked)
	}
	params := responses.ResponseNewParams{
		Model: "m",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("x")},
	}
	var oe *openai.Error
	if _, err := client.Responses.New(ctxOf(t), params); !errors.As(err, &oe) || oe.StatusCode != 400 ||
		oe.Code != "context_length_exceeded" {
		t.Errorf("responses: %v", err)
	}
	stream := client.Responses.NewStreaming(ctxOf(t), params)
	failed := ""
	for stream.Next() {
		if ev := stream.Current(); ev.Type == "error" {
			failed = ev.Message
		}
	}
	if failed == "" && stream.Err() == nil {
		t.Error("responses stream: no error")
	}
	if !json.Valid(srv.Requests()[0].Body) {
		t.Error("no JSON")
	}
}
