package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/tidwall/gjson"
)

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
			calls[-1] = true // the form that came before tools
		}
		a.ToolCalls = len(calls)
		if choice.FinishReason != "" {
			a.Finish = finishOf(choice.FinishReason)
		}
	}
	return dec.Err()
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
		a.ToolCalls++ // the form that came before tools
	}
	a.Finish = finishOf(c.Choices[0].FinishReason)
	a.finish()
	return a, nil
}

// content adds the text and the reasoning of a message or of a piece of one. OpenAI's own form has no field for
// reasoning: DeepSeek, Kimi, xAI and vLLM use reasoning_content, OpenRouter and Groq use reasoning, and Mistral makes
// content a list of text and thinking.
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
