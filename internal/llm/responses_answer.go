package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"precis/pipeline"

	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
)

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
			// The event repeats the whole response. Its text counts only if the server sent no pieces of it.
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

// failure returns the error of a failed response in the form of an error's body.
func failure(response string) []byte {
	return []byte(`{"error":` + gjson.Get(response, "error").Raw + `}`)
}

func (p *responsesProtocol) decode(body []byte) (*answer, error) { return decodeResponse(body) }

// decodeResponse reads a whole response. A failed response is an error: wholeError then reads why.
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
