package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"precis/pipeline"
)

// responsesProtocol speaks the Responses API through the official SDK, with OpenAI, xAI and every server that is
// compatible. What chat completions and it have in common, the client among it, is the embedded protocol's.
type responsesProtocol struct{ *openaiProtocol }

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
		// OpenAI and xAI keep a response unless they are told not to: nothing here is ever fetched again.
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
	var res *http.Response
	opts := make([]option.RequestOption, 0, len(headers))
	for k := range headers {
		opts = append(opts, option.WithHeader(k, headers.Get(k)))
	}
	err := p.client.Post(ctx, "responses", body, &res, opts...)
	return res, err
}

func (p *responsesProtocol) events(res *http.Response, a *answer) error {
	dec := ssestream.NewDecoder(res)
	for dec.Next() {
		data := dec.Event().Data
		if len(strings.TrimSpace(string(data))) == 0 || strings.HasPrefix(string(data), "[DONE]") {
			continue
		}
		var ev responses.ResponseStreamEventUnion
		if err := json.Unmarshal(data, &ev); err != nil {
			return err
		}
		switch ev.Type {
		case "error":
			return &streamError{data: data}
		case "response.created", "response.in_progress":
			a.id, a.model = ev.Response.ID, ev.Response.Model
		case "response.output_text.delta":
			a.addText(gjson.GetBytes(data, "delta").String())
		case "response.refusal.delta":
			a.refusal = true
		case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
			a.addReasoning(gjson.GetBytes(data, "delta").String())
		case "response.failed":
			return &streamError{data: failure(gjson.GetBytes(data, "response").Raw)}
		case "response.completed", "response.incomplete", "response.cancelled":
			// The whole response comes once more. Its text counts only where a server sent no pieces of it.
			whole, err := decodeResponse([]byte(gjson.GetBytes(data, "response").Raw))
			if err != nil {
				return err
			}
			a.id, a.model, a.usage, a.ToolCalls, a.Finish = whole.id, whole.model, whole.usage, whole.ToolCalls,
				whole.Finish
			a.refusal = a.refusal || whole.refusal
			if a.text.Len() == 0 {
				a.addText(whole.Text)
			}
			if a.reasoning.Len() == 0 {
				a.addReasoning(whole.Reasoning)
			}
			return nil
		}
	}
	return dec.Err()
}

// failure is the error of a response that failed, as the body of an error has it.
func failure(response string) []byte {
	return []byte(`{"error":` + gjson.Get(response, "error").Raw + `}`)
}

func (p *responsesProtocol) decode(body []byte) (*answer, error) { return decodeResponse(body) }

// decodeResponse reads a whole response. One that failed is an error: wholeError then reads why.
func decodeResponse(body []byte) (*answer, error) {
	var r responses.Response
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	if !r.JSON.Output.Valid() || r.Status == responses.ResponseStatusFailed {
		return nil, errors.New("no output")
	}
	a := &answer{id: r.ID, model: r.Model, usage: responsesUsage(r.Usage)}
	for _, item := range r.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				switch part.Type {
				case "output_text", "text":
					a.addText(part.Text)
				case "refusal":
					a.refusal = true
				}
			}
		case "reasoning":
			for _, s := range item.Summary {
				a.addReasoning(s.Text)
			}
			for _, part := range item.Content {
				a.addReasoning(part.Text)
			}
		case "function_call", "custom_tool_call", "mcp_call", "computer_call", "local_shell_call", "shell_call",
			"apply_patch_call":
			a.ToolCalls++
		}
	}
	switch r.Status {
	case responses.ResponseStatusCompleted, "":
		a.Finish = pipeline.FinishStop
		if a.ToolCalls > 0 {
			a.Finish = pipeline.FinishToolUse
		}
	case responses.ResponseStatusIncomplete:
		a.Finish = finishOf(r.IncompleteDetails.Reason)
	default:
		a.Finish = finishOf(string(r.Status))
	}
	a.finish()
	return a, nil
}

func responsesUsage(u responses.ResponseUsage) Usage {
	return Usage{
		Input:       int(u.InputTokens),
		CachedInput: int(u.InputTokensDetails.CachedTokens),
		CacheWrite:  int(u.InputTokensDetails.CacheWriteTokens),
		Output:      int(u.OutputTokens),
	}
}
