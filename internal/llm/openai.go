package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/tidwall/gjson"
)

// openaiProtocol speaks chat completions through the official SDK, with OpenAI and with every server that
// is compatible.
type openaiProtocol struct {
	vendor Vendor
	client openai.Client
	// own is true for OpenAI itself, and Azure's OpenAI.
	own bool
	// newLimit is true for servers that want max_completion_tokens. OpenAI's reasoning models refuse the older
	// max_tokens, and xAI has it as deprecated; vLLM, Ollama, llama.cpp, DeepSeek, Mistral and most others
	// know max_tokens, and some of them nothing else.
	newLimit bool
}

func newOpenAI(v Vendor, base string) *openaiProtocol {
	host := hostOf(base)
	own := v.Name == "openai" || host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
	opts := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithHTTPClient(&http.Client{Transport: v.transport()}),
		option.WithMaxRetries(0),
	}
	if v.APIKey != "" {
		opts = append(opts, option.WithAPIKey(v.APIKey))
	}
	return &openaiProtocol{
		vendor: v,
		// Not NewClient: that takes keys and headers from the environment, where the configuration alone decides.
		client:   openai.Client{Options: opts},
		own:      own,
		newLimit: own || v.Name == "xai" || host == "api.x.ai",
	}
}

func (p *openaiProtocol) request(c Call) ([]byte, error) {
	params := openai.ChatCompletionNewParams{Model: c.Model}
	if strings.TrimSpace(c.System) != "" {
		params.Messages = append(params.Messages, openai.SystemMessage(c.System))
	}
	params.Messages = append(params.Messages, openai.UserMessage(c.User))
	if n := maxOutput(p.vendor, c, 0); n > 0 {
		if p.newLimit {
			params.MaxCompletionTokens = openai.Int(int64(n))
		} else {
			params.MaxTokens = openai.Int(int64(n))
		}
	}
	if p.own {
		// The metadata field would ask for the conversation to be stored at the vendor: "only allowed when
		// store is enabled". So the metadata goes by headers, and storing is declined.
		params.Store = openai.Bool(false)
		if c.Meta.Tenant != "" {
			params.SafetyIdentifier = openai.String(opaqueID(c.Meta.Tenant))
		}
	}
	return json.Marshal(params)
}

// streaming asks for the usage as well: without it a streamed answer says nothing of what it cost.
func (p *openaiProtocol) streaming(body []byte) string {
	if hasKey(body, "stream_options") {
		return `"stream":true`
	}
	return `"stream":true,"stream_options":{"include_usage":true}`
}

func (p *openaiProtocol) headers([]byte) http.Header { return http.Header{} }

func (p *openaiProtocol) post(ctx context.Context, _ string, body []byte, headers http.Header) (*http.Response, error) {
	var res *http.Response
	opts := make([]option.RequestOption, 0, len(headers))
	for k := range headers {
		opts = append(opts, option.WithHeader(k, headers.Get(k)))
	}
	err := p.client.Post(ctx, "chat/completions", body, &res, opts...)
	return res, err
}

func (p *openaiProtocol) requestIDHeader() string { return "X-Request-Id" }

func (p *openaiProtocol) events(res *http.Response, a *answer) error {
	dec := ssestream.NewDecoder(res)
	calls := map[int64]bool{}
	for dec.Next() {
		data := dec.Event().Data
		if strings.HasPrefix(string(data), "[DONE]") {
			return nil
		}
		if e := gjson.GetBytes(data, "error"); e.Exists() && e.Type != gjson.Null {
			return &streamError{data: data}
		}
		var chunk openai.ChatCompletionChunk
		if err := json.Unmarshal(data, &chunk); err != nil {
			return err
		}
		if chunk.ID != "" {
			a.id = chunk.ID
		}
		if chunk.Model != "" {
			a.model = chunk.Model
		}
		if chunk.JSON.Usage.Valid() {
			a.usage = openaiUsage(chunk.Usage)
		}
		if len(chunk.Choices) == 0 || chunk.Choices[0].Index != 0 {
			continue
		}
		choice := chunk.Choices[0]
		a.content(choice.Delta.Content, choice.Delta.JSON.Content.Raw(), choice.Delta.JSON.ExtraFields)
		if choice.Delta.Refusal != "" {
			a.refusal = true
		}
		for _, tc := range choice.Delta.ToolCalls {
			calls[tc.Index] = true
		}
		if choice.Delta.JSON.FunctionCall.Valid() {
			calls[-1] = true // the form of before the tools
		}
		a.ToolCalls = len(calls)
		if choice.FinishReason != "" {
			a.Finish = finishOf(choice.FinishReason)
		}
	}
	return dec.Err()
}

// content takes in the text and the reasoning of a message or of a piece of one. Reasoning has no place in
// OpenAI's own form: DeepSeek, Kimi, xAI and vLLM have reasoning_content, OpenRouter and Groq have reasoning, and
// Mistral makes content a list of text and thinking.
func (a *answer) content(text, raw string, extra map[string]respjson.Field) {
	if strings.HasPrefix(raw, "[") {
		gjson.Parse(raw).ForEach(func(_, part gjson.Result) bool {
			switch part.Get("type").String() {
			case "text":
				a.addText(part.Get("text").String())
			case "thinking":
				part.Get("thinking.#.text").ForEach(func(_, t gjson.Result) bool {
					a.addReasoning(t.String())
					return true
				})
			case "refusal":
				a.refusal = true
			}
			return true
		})
	} else {
		a.addText(text)
	}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if f, ok := extra[name]; ok {
			if r := gjson.Parse(f.Raw()); r.Type == gjson.String {
				a.addReasoning(r.String())
				break
			}
		}
	}
}

func openaiUsage(u openai.CompletionUsage) Usage {
	return Usage{
		Input:       int(u.PromptTokens),
		CachedInput: int(u.PromptTokensDetails.CachedTokens),
		CacheWrite:  int(u.PromptTokensDetails.CacheWriteTokens),
		Output:      int(u.CompletionTokens),
	}
}

func (p *openaiProtocol) decode(body []byte) (*answer, error) { return decodeOpenAI(body) }

func decodeOpenAI(body []byte) (*answer, error) {
	var c openai.ChatCompletion
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, err
	}
	if len(c.Choices) == 0 {
		return nil, errors.New("no choices")
	}
	a := &answer{id: c.ID, model: c.Model, usage: openaiUsage(c.Usage)}
	m := c.Choices[0].Message
	a.content(m.Content, m.JSON.Content.Raw(), m.JSON.ExtraFields)
	a.refusal = a.refusal || m.Refusal != ""
	a.ToolCalls = len(m.ToolCalls)
	if m.JSON.FunctionCall.Valid() {
		a.ToolCalls++ // the form of before the tools
	}
	a.Finish = finishOf(c.Choices[0].FinishReason)
	a.finish()
	return a, nil
}
