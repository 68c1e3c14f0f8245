package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/tidwall/gjson"

	"precis/internal/contract"
)

// Facts of the Anthropic API, as of its documentation and SDK v2.15 (November 2026).
const (
	// anthropicOldVersion is the API version that still takes the sampling parameters; the SDK's own, 2026-10-21,
	// refuses them.
	anthropicOldVersion = "2023-06-01"
	// betaHeader names the beta features that a request uses, with commas between them.
	betaHeader = "Anthropic-Beta"
	// defaultMaxOutput is the limit where neither the caller nor the table of models has one, in tokens: the API needs
	// a figure, and every model since Claude 3.5 accepts this one.
	defaultMaxOutput = 8192
)

// anthropicProtocol speaks the Messages API through the official SDK.
type anthropicProtocol struct {
	vendor Vendor
	client anthropic.Client
	// own is false for a compatible server.
	own bool
	// form is the native compaction that is requested, "" for an ordinary request.
	form contract.NativeForm
}

// newAnthropic makes the protocol for an address. The options in further override our own.
func newAnthropic(v Vendor, base string, further ...option.RequestOption) *anthropicProtocol {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), // only the configuration decides, not the variables of the shell
		option.WithoutOpenTelemetry(),       // its spans may hold the conversation
		option.WithBaseURL(base),
		option.WithHTTPClient(&http.Client{Transport: v.transport()}),
		option.WithMaxRetries(0),
	}
	if v.APIKey != "" {
		opts = append(opts, option.WithAPIKey(v.APIKey))
	}
	opts = append(opts, further...)
	return &anthropicProtocol{vendor: v, client: anthropic.NewClient(opts...), own: hostOf(base) == "api.anthropic.com"}
}

func (p *anthropicProtocol) native(form contract.NativeForm) (protocol, error) {
	if form.Format() != contract.ProtocolAnthropic {
		return nil, noForm(p.vendor.Name, form)
	}
	c := *p
	c.form = form
	return &c, nil
}

func (p *anthropicProtocol) request(c Call) ([]byte, error) {
	params := anthropic.MessageNewParams{
		Model:     c.Model,
		MaxTokens: int64(maxOutput(p.vendor, c, defaultMaxOutput)),
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(c.User))},
	}
	if strings.TrimSpace(c.System) != "" {
		params.System = []anthropic.TextBlockParam{{Text: c.System}}
	}
	if c.Meta.Tenant != "" {
		params.Metadata.UserID = anthropic.String(opaqueID(c.Meta.Tenant))
	}
	return json.Marshal(params)
}

func (p *anthropicProtocol) streaming([]byte) string { return `"stream":true` }

// headers chooses the API version and the betas that the body needs, so that an agent's own request is accepted
// unchanged.
func (p *anthropicProtocol) headers(body []byte) http.Header {
	h := http.Header{}
	var betas []string
	add := func(beta anthropic.AnthropicBeta) {
		if !slices.Contains(betas, string(beta)) {
			betas = append(betas, string(beta))
		}
	}
	gjson.ParseBytes(body).ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "temperature", "top_p", "top_k":
			h.Set("Anthropic-Version", anthropicOldVersion)
		case "context_management":
			add(anthropic.AnthropicBetaContextManagement2025_06_27)
			if strings.Contains(v.Raw, `"compact_20260112"`) {
				add(anthropic.AnthropicBetaCompact2026_01_12)
			}
		case "compaction":
			if v.Type != gjson.Null {
				add(anthropic.AnthropicBetaCompact2026_09_04)
			}
		case "messages":
			// A block of an earlier compaction comes first, and needs the beta that made it.
			switch b := v.Get("0.content.0"); {
			case b.Get("type").String() != "compaction":
			case b.Get("signature").String() != "":
				add(anthropic.AnthropicBetaCompact2026_09_04)
			default:
				add(anthropic.AnthropicBetaCompact2026_01_12)
			}
		}
		return true
	})
	if len(betas) > 0 {
		h.Set(betaHeader, strings.Join(betas, ","))
	}
	if !p.own && p.vendor.APIKey != "" {
		// The SDK sends a bearer token; compatible servers read the older header.
		h.Set("X-Api-Key", p.vendor.APIKey)
	}
	return h
}

func (p *anthropicProtocol) post(ctx context.Context, _ string, body []byte,
	headers http.Header,
) (*http.Response, error) {
	var res *http.Response
	opts := make([]option.RequestOption, 0, len(headers))
	for k := range headers {
		opts = append(opts, option.WithHeader(k, headers.Get(k)))
	}
	err := p.client.Post(ctx, "v1/messages", body, &res, opts...)
	return res, err
}

func (p *anthropicProtocol) requestIDHeader() string { return "Request-Id" }
