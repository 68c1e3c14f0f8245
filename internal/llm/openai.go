package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// openaiProtocol speaks chat completions through the official SDK, with OpenAI and with every compatible server.
type openaiProtocol struct {
	vendor Vendor
	client openai.Client
	// own is true for OpenAI itself, and Azure's OpenAI.
	own bool
	// newLimit is true for servers that need max_completion_tokens. OpenAI's reasoning models refuse the older
	// max_tokens, and xAI has deprecated it; vLLM, Ollama, llama.cpp, DeepSeek, Mistral and most others know
	// max_tokens, and some of them only that.
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
		// NewClient would take keys and headers from the environment, but only the configuration may decide.
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
		// The metadata field is "only allowed when store is enabled", and the vendor must not store the conversation.
		// So the metadata is sent as headers, and storing is declined.
		params.Store = openai.Bool(false)
		if c.Meta.Tenant != "" {
			params.SafetyIdentifier = openai.String(opaqueID(c.Meta.Tenant))
		}
	}
	return json.Marshal(params)
}

// streaming requests the usage too: without it a streamed answer does not say what it cost.
func (p *openaiProtocol) streaming(body []byte) string {
	if hasKey(body, "stream_options") {
		return `"stream":true`
	}
	return `"stream":true,"stream_options":{"include_usage":true}`
}

func (p *openaiProtocol) headers([]byte) http.Header { return http.Header{} }

func (p *openaiProtocol) post(ctx context.Context, _ string, body []byte, headers http.Header) (*http.Response, error) {
	return p.send(ctx, "chat/completions", body, headers)
}

// send posts a body to a path of the API.
func (p *openaiProtocol) send(ctx context.Context, path string, body []byte,
	headers http.Header,
) (*http.Response, error) {
	var res *http.Response
	opts := make([]option.RequestOption, 0, len(headers))
	for k := range headers {
		opts = append(opts, option.WithHeader(k, headers.Get(k)))
	}
	err := p.client.Post(ctx, path, body, &res, opts...)
	return res, err
}

func (p *openaiProtocol) requestIDHeader() string { return "X-Request-Id" }
