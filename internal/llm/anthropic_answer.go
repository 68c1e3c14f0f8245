package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/tidwall/gjson"
)

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
			// The figures are totals so far; older servers send only that of the output.
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

// block adds a content block, or its beginning.
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

// iterations adds up usage.iterations, which an answer made in several passes has: each pass is billed, and the figures
// at the top leave out the pass that compacts.
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
