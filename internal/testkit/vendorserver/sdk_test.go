package vendorserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"

	"precis/internal/testkit/vendorserver"
)

// full is an answer with everything in it.
var full = vendorserver.Answer{
	Content: []vendorserver.Block{
		{Type: "thinking", Thinking: "let me see, 世界", Signature: "sig=="},
		{Type: "text", Text: "First I read \"it\" <b>."},
	},
	ToolCalls: []vendorserver.ToolCall{
		{ID: "call_1", Name: "read_file", Arguments: `{"path": "/tmp/a b", "n": 9007199254740993}`},
		{ID: "call_2", Name: "list", Arguments: `{}`},
	},
	Usage:      &vendorserver.Usage{Input: 100, CachedInput: 20, CacheWrite: 3, Output: 7},
	ChunkChars: 3,
}

func anthropicClient(srv *vendorserver.Server) anthropic.Client {
	return anthropic.NewClient(
		anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithBaseURL(srv.URL),
		anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0),
	)
}

func openaiClient(srv *vendorserver.Server) openai.Client {
	return openai.NewClient(openaioption.WithBaseURL(srv.OpenAIURL()), openaioption.WithAPIKey("k"),
		openaioption.WithMaxRetries(0))
}

func ctxOf(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestAnthropicSDK reads the answers with the vendor's own client, streamed and whole.
func TestAnthropicSDK(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Key: "k", Default: &full})
	client := anthropicClient(srv)
	params := anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 1000,
		System:   []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Go on."))},
	}
	check := func(name string, m *anthropic.Message) {
		if len(m.Content) != 4 {
			t.Fatalf("%s: %d blocks: %s", name, len(m.Content), m.RawJSON())
		}
		if m.Content[0].Thinking != "let me see, 世界" || m.Content[0].Signature != "sig==" ||
			m.Content[1].Text != `First I read "it" <b>.` {
			t.Errorf("%s: thinking %q %q, text %q", name, m.Content[0].Thinking, m.Content[0].Signature,
				m.Content[1].Text)
		}
		if c := m.Content[2]; c.Type != "tool_use" || c.ID != "call_1" || c.Name != "read_file" ||
			string(c.Input) != full.ToolCalls[0].Arguments && !strings.Contains(string(c.Input), "9007199254740993") {
			t.Errorf("%s: call %+v with input %s", name, c.ID, c.Input)
		}
		if string(m.Content[3].Input) != "{}" {
			t.Errorf("%s: second input %s", name, m.Content[3].Input)
		}
		if m.StopReason != anthropic.StopReasonToolUse || m.Model != "claude-sonnet-4-5" || m.ID == "" {
			t.Errorf("%s: stop %q, model %q, id %q", name, m.StopReason, m.Model, m.ID)
		}
		u := m.Usage
		if u.InputTokens != 100 || u.CacheReadInputTokens != 20 || u.CacheCreationInputTokens != 3 ||
			u.OutputTokens != 7 {
			t.Errorf("%s: usage %+v", name, u)
		}
	}
	whole, err := client.Messages.New(ctxOf(t), params)
	if err != nil {
		t.Fatal(err)
	}
	check("whole", whole)

	stream := client.Messages.NewStreaming(ctxOf(t), params)
	var streamed anthropic.Message
	for stream.Next() {
		if err := streamed.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	check("streamed", &streamed)
}

func TestOpenAISDK(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Key: "k", Default: &full})
	client := openaiClient(srv)
	params := openai.ChatCompletionNewParams{
		Model: "gpt-5.2",
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."),
			openai.UserMessage("Go on."),
		},
	}
	check := func(name string, c *openai.ChatCompletion) {
		if len(c.Choices) != 1 {
			t.Fatalf("%s: %d choices", name, len(c.Choices))
		}
		m := c.Choices[0].Message
		if m.Content != `First I read "it" <b>.` || c.Choices[0].FinishReason != "tool_calls" || c.Model != "gpt-5.2" ||
			c.ID == "" {
			t.Errorf("%s: content %q, finish %q, model %q, id %q", name, m.Content, c.Choices[0].FinishReason, c.Model,
				c.ID)
		}
		if len(m.ToolCalls) != 2 || m.ToolCalls[0].ID != "call_1" || m.ToolCalls[0].Function.Name != "read_file" ||
			m.ToolCalls[0].Function.Arguments != full.ToolCalls[0].Arguments {
			t.Errorf("%s: calls %+v", name, m.ToolCalls)
		}
		if u := c.Usage; u.PromptTokens != 123 || u.PromptTokensDetails.CachedTokens != 20 || u.CompletionTokens != 7 ||
			u.TotalTokens != 130 {
			t.Errorf("%s: usage %+v", name, u)
		}
	}
	whole, err := client.Chat.Completions.New(ctxOf(t), params)
	if err != nil {
		t.Fatal(err)
	}
	check("whole", whole)

	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := client.Chat.Completions.NewStreaming(ctxOf(t), params)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatal("a chunk does not fit the ones before")
		}
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	check("streamed", &acc.ChatCompletion)
}

// TestSDKErrors: the vendors' own clients read the errors, those in a stream too.
func TestSDKErrors(t *testing.T) {
	t.Parallel()
	srv := vendorserver.New(t, vendorserver.Script{Answers: []vendorserver.Answer{
		{Error: &vendorserver.Error{Status: 529}},
		{Text: "half", SSEError: &vendorserver.Error{Status: 529}},
		{Error: &vendorserver.Error{Status: 400, Code: "context_length_exceeded", Message: "too much"}},
		{Text: "half", SSEError: &vendorserver.Error{Status: 500}},
	}})
	anthropicParams := anthropic.MessageNewParams{
		Model: "m", MaxTokens: 10, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(
			anthropic.NewTextBlock("x"))},
	}
	a, o := anthropicClient(srv), openaiClient(srv)
	var ae *anthropic.Error
	if _, err := a.Messages.New(ctxOf(t), anthropicParams); !errors.As(err, &ae) || ae.StatusCode != 529 ||
		ae.Type() != "overloaded_error" {
		t.Errorf("anthropic: %v", err)
	}
	stream := a.Messages.NewStreaming(ctxOf(t), anthropicParams)
	for stream.Next() {
	}
	if err := stream.Err(); !errors.As(err, &ae) || ae.Type() != "overloaded_error" {
		t.Errorf("anthropic stream: %v", err)
	}
	openaiParams := openai.ChatCompletionNewParams{
		Model:    "m",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")},
	}
	var oe *openai.Error
	if _, err := o.Chat.Completions.New(ctxOf(t), openaiParams); !errors.As(err, &oe) || oe.StatusCode != 400 ||
		oe.Code != "context_length_exceeded" || oe.Message != "too much" {
		t.Errorf("openai: %v", err)
	}
	chunks := o.Chat.Completions.NewStreaming(ctxOf(t), openaiParams)
	for chunks.Next() {
	}
	if err := chunks.Err(); err == nil || !strings.Contains(err.Error(), "server_error") {
		t.Errorf("openai stream: %v", err)
	}
}
