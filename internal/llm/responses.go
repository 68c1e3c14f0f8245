package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"precis/internal/contract"
)

// responsesProtocol speaks the Responses API through the official SDK, with OpenAI, xAI and every compatible server. It
// shares the client and more with the embedded protocol for chat completions.
type responsesProtocol struct{ *openaiProtocol }

func (p *responsesProtocol) native(form contract.NativeForm) (protocol, error) {
	if form != contract.NativeCompact {
		return nil, noForm(p.vendor.Name, form)
	}
	return &compactProtocol{p}, nil
}

func (p *responsesProtocol) request(c Call) ([]byte, error) {
	params := responses.ResponseNewParams{
		Model: c.Model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(c.User)},
	}
	if strings.TrimSpace(c.System) != "" {
		params.Instructions = openai.String(c.System)
	}
	if n := maxOutput(p.vendor, c, 0); n > 0 {
		params.MaxOutputTokens = openai.Int(int64(n))
	}
	if p.newLimit {
		// OpenAI and xAI store a response unless the request declines it. We never fetch one.
		params.Store = openai.Bool(false)
	}
	if p.own && c.Meta.Tenant != "" {
		params.SafetyIdentifier = openai.String(opaqueID(c.Meta.Tenant))
	}
	return json.Marshal(params)
}

func (p *responsesProtocol) streaming([]byte) string { return `"stream":true` }

func (p *responsesProtocol) post(ctx context.Context, _ string, body []byte,
	headers http.Header,
) (*http.Response, error) {
	return p.send(ctx, "responses", body, headers)
}
