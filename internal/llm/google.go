package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/tidwall/gjson"
	"google.golang.org/genai"

	"precis/pipeline"
)

// googleProtocol speaks generateContent with the types of the official SDK. The SDK's client is not used: it
// encodes a request anew and decodes an answer before anyone sees it, where an agent's own request has to go out
// byte for byte and an answer has to be kept as it came.
type googleProtocol struct {
	vendor Vendor
	client *http.Client
	// models is the address of the collection of models.
	models string
}

// googleVersion is the version of the API that the SDK asks for.
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

// streaming is asked for by the address.
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

func (p *googleProtocol) events(res *http.Response, a *answer) error {
	dec := ssestream.NewDecoder(res)
	for dec.Next() {
		data := dec.Event().Data
		if len(strings.TrimSpace(string(data))) == 0 {
			continue
		}
		if gjson.GetBytes(data, "error").IsObject() {
			return &streamError{data: data}
		}
		if err := a.generated(data); err != nil {
			return err
		}
	}
	return dec.Err()
}

func (p *googleProtocol) decode(body []byte) (*answer, error) { return decodeGoogle(body) }

func decodeGoogle(body []byte) (*answer, error) {
	if !gjson.GetBytes(body, "candidates").Exists() && !gjson.GetBytes(body, "promptFeedback").Exists() {
		return nil, errors.New("no candidates")
	}
	a := &answer{}
	if err := a.generated(body); err != nil {
		return nil, err
	}
	a.finish()
	return a, nil
}

// generated takes in a response, or a piece of a streamed one: they have the same form.
func (a *answer) generated(data []byte) error {
	var r genai.GenerateContentResponse
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.ResponseID != "" {
		a.id = r.ResponseID
	}
	if r.ModelVersion != "" {
		a.model = r.ModelVersion
	}
	if u := r.UsageMetadata; u != nil {
		a.usage = Usage{
			Input:       int(u.PromptTokenCount + u.ToolUsePromptTokenCount),
			CachedInput: int(u.CachedContentTokenCount),
			Output:      int(u.CandidatesTokenCount + u.ThoughtsTokenCount),
		}
	}
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" && f.BlockReason != genai.BlockedReasonUnspecified {
		a.Finish = pipeline.FinishContentFilter // the prompt itself was blocked: there is no candidate
	}
	if len(r.Candidates) == 0 || r.Candidates[0] == nil || r.Candidates[0].Index != 0 {
		return nil
	}
	candidate := r.Candidates[0]
	if candidate.Content != nil {
		for _, part := range candidate.Content.Parts {
			switch {
			case part == nil:
			case part.FunctionCall != nil || part.ExecutableCode != nil || part.ToolCall != nil:
				a.ToolCalls++
			case part.Thought:
				a.addReasoning(part.Text)
			default:
				a.addText(part.Text)
			}
		}
	}
	switch reason := candidate.FinishReason; reason {
	case "", genai.FinishReasonUnspecified:
	case genai.FinishReasonStop:
		a.Finish = pipeline.FinishStop
		if a.ToolCalls > 0 {
			a.Finish = pipeline.FinishToolUse
		}
	default:
		a.Finish = finishOf(string(reason))
		if a.Finish == pipeline.FinishToolUse {
			a.ToolCalls = max(a.ToolCalls, 1) // a call that could not be read
		}
	}
	return nil
}
