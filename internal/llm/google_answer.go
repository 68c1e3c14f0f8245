package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"precis/pipeline"

	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/tidwall/gjson"
	"google.golang.org/genai"
)

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

// generated adds a response, or a piece of a streamed one: they have the same form.
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
		a.Finish = pipeline.FinishContentFilter // the prompt was blocked, so there is no candidate
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
			a.ToolCalls = max(a.ToolCalls, 1) // a tool call that could not be read
		}
	}
	return nil
}
