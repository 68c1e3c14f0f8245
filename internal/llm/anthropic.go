package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/tidwall/gjson"
)

// Facts of the Anthropic API, as of its documentation and SDK v2.15 (November 2026).
const (
	// anthropicOldVersion is the API version that still takes the sampling parameters; the SDK's own, 2026-10-21,
	// refuses them.
	anthropicOldVersion = "2023-06-01"
	// betaHeader names the beta features that a request uses, with commas between them.
	betaHeader = "Anthropic-Beta"
	// defaultMaxOutput is asked for where neither the caller nor the registry knows a limit, in tokens: the API
	// wants a figure, and every model since Claude 3.5 takes this one.
	defaultMaxOutput = 8192
)

// anthropicProtocol speaks the Messages API through the official SDK.
type anthropicProtocol struct {
	vendor Vendor
	client anthropic.Client
	// own is false for a compatible server.
	own bool
	// form is the native compaction that is asked for, "" for an ordinary request.
	form NativeForm
}

// newAnthropic makes the protocol for an address. further come after our own options, and win.
func newAnthropic(v Vendor, base string, further ...option.RequestOption) *anthropicProtocol {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), // the configuration alone decides, not what the shell happens to export
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

// headers chooses the API version and the betas that the body needs, so that an agent's own request is
// taken as it is.
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
			// A block of an earlier compaction stands at the head, and brings the beta that it is of.
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
		// The SDK sends a bearer token; servers that copy the API read the older header.
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

func (p *anthropicProtocol) events(res *http.Response, a *answer) error {
	a.asked = p.form != ""
	block := compactionBlock{}
	dec := ssestream.NewDecoder(res)
	for dec.Next() {
		data := dec.Event().Data
		var ev anthropic.MessageStreamEventUnion
		if dec.Event().Type == "error" || gjson.GetBytes(data, "type").String() == "error" {
			return &streamError{data: data}
		}
		if len(strings.TrimSpace(string(data))) == 0 {
			continue
		}
		if err := json.Unmarshal(data, &ev); err != nil {
			return err
		}
		switch ev.Type {
		case "message_start":
			a.id, a.model = ev.Message.ID, ev.Message.Model
			u := ev.Message.Usage
			a.usage = anthropicUsage(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
			a.iterations(gjson.GetBytes(data, "message.usage").Raw)
		case "content_block_start":
			a.block(ev.ContentBlock.Type, ev.ContentBlock.Text, ev.ContentBlock.Thinking)
			if ev.ContentBlock.Type == "compaction" {
				block = compactionBlock{raw: gjson.GetBytes(data, "content_block").Raw}
			}
		case "content_block_delta":
			a.addText(ev.Delta.Text)
			a.addReasoning(ev.Delta.Thinking)
			block.delta(gjson.GetBytes(data, "delta").Raw)
		case "content_block_stop":
			if block.raw != "" {
				a.compaction(block.whole())
				block = compactionBlock{}
			}
		case "message_delta":
			if ev.Delta.StopReason != "" {
				a.Finish = finishOf(string(ev.Delta.StopReason))
			}
			// The figures are totals so far; older servers give the output alone.
			u := ev.Usage
			if u.JSON.InputTokens.Valid() {
				a.usage = anthropicUsage(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens,
					u.OutputTokens)
			} else if u.JSON.OutputTokens.Valid() {
				a.usage.Output = int(u.OutputTokens)
			}
			a.iterations(gjson.GetBytes(data, "usage").Raw)
		case "message_stop":
			return nil
		}
	}
	return dec.Err()
}

// block takes in a content block, or its beginning.
func (a *answer) block(kind, text, thinking string) {
	switch kind {
	case "text":
		a.addText(text)
	case "thinking":
		a.addReasoning(thinking)
	case "tool_use":
		a.ToolCalls++
	}
}

func anthropicUsage(input, read, write, output int64) Usage {
	return Usage{Input: int(input + read + write), CachedInput: int(read), CacheWrite: int(write), Output: int(output)}
}

// iterations takes the figures of usage.iterations, where the answer was made in several passes: each is billed,
// and the figures at the top leave out the pass that compacts.
func (a *answer) iterations(usage string) {
	all := gjson.Get(usage, "iterations")
	if !all.IsArray() || len(all.Array()) == 0 {
		return
	}
	sum := Usage{}
	for _, it := range all.Array() {
		u := anthropicUsage(it.Get("input_tokens").Int(), it.Get("cache_read_input_tokens").Int(),
			it.Get("cache_creation_input_tokens").Int(), it.Get("output_tokens").Int())
		sum.Input += u.Input
		sum.CachedInput += u.CachedInput
		sum.CacheWrite += u.CacheWrite
		sum.Output += u.Output
	}
	a.usage = sum
}

func (p *anthropicProtocol) decode(body []byte) (*answer, error) {
	a, err := decodeAnthropic(body)
	if a != nil {
		a.asked = p.form != ""
	}
	return a, err
}

func decodeAnthropic(body []byte) (*answer, error) {
	var m anthropic.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if !m.JSON.Content.Valid() {
		return nil, errors.New("no content")
	}
	a := &answer{id: m.ID, model: m.Model}
	for _, b := range m.Content {
		a.block(b.Type, b.Text, b.Thinking)
		if b.Type == "compaction" {
			a.compaction(b.RawJSON())
		}
	}
	a.Finish = finishOf(string(m.StopReason))
	a.usage = anthropicUsage(m.Usage.InputTokens, m.Usage.CacheReadInputTokens, m.Usage.CacheCreationInputTokens,
		m.Usage.OutputTokens)
	a.iterations(m.Usage.RawJSON())
	a.finish()
	return a, nil
}

// opaqueID stands for a tenant at a vendor, which wants to tell users apart and must not learn who they are.
func opaqueID(tenant string) string {
	sum := sha256.Sum256([]byte("precis tenant\x00" + tenant))
	return hex.EncodeToString(sum[:16])
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
