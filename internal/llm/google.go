package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genai"
)

// googleProtocol speaks generateContent with the types of the official SDK. The SDK's client is not used because it
// re-encodes a request and decodes an answer, while an agent's own request has to be sent byte for byte and an answer
// has to be kept as received.
type googleProtocol struct {
	vendor Vendor
	client *http.Client
	// models is the address of the collection of models.
	models string
}

// googleVersion is the version of the API that the SDK uses.
const googleVersion = "v1beta"

func newGoogle(v Vendor, base string) *googleProtocol {
	base = strings.TrimRight(base, "/")
	if last := base[strings.LastIndexByte(base, '/')+1:]; !strings.HasPrefix(last, "v1") {
		base += "/" + googleVersion
	}
	return &googleProtocol{vendor: v, client: &http.Client{Transport: v.transport()}, models: base + "/models/"}
}

func (p *googleProtocol) request(c Call) ([]byte, error) {
	request := struct {
		SystemInstruction *genai.Content   `json:"systemInstruction,omitempty"`
		Contents          []*genai.Content `json:"contents"`
		GenerationConfig  struct {
			MaxOutputTokens int32 `json:"maxOutputTokens,omitempty"`
		} `json:"generationConfig"`
	}{Contents: genai.Text(c.User)}
	if strings.TrimSpace(c.System) != "" {
		request.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: c.System}}}
	}
	request.GenerationConfig.MaxOutputTokens = int32(maxOutput(p.vendor, c, 0))
	return json.Marshal(request)
}

// streaming returns no keys: the address requests streaming.
func (p *googleProtocol) streaming([]byte) string { return "" }

func (p *googleProtocol) headers([]byte) http.Header { return http.Header{} }

func (p *googleProtocol) post(ctx context.Context, model string, body []byte,
	headers http.Header,
) (*http.Response, error) {
	address := p.models + url.PathEscape(strings.TrimPrefix(model, "models/")) + ":streamGenerateContent?alt=sse"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	if p.vendor.APIKey != "" {
		req.Header.Set("X-Goog-Api-Key", p.vendor.APIKey)
	}
	return p.client.Do(req)
}

func (p *googleProtocol) requestIDHeader() string { return "X-Goog-Request-Id" }
