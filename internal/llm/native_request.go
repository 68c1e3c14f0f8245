package llm

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"precis/internal/contract"
	"precis/pipeline"
)

// maxNativeInstructions is the maximum length of the instructions of a compaction on demand, in chars.
const maxNativeInstructions = 16_384

// NativeBody turns an ordinary request with the messages to be compacted into the request for a native compaction: keys
// that the form does not accept are removed, and those that request it are added. instructions replace the vendor's own
// prompt where the form accepts some; instructions that are too long are left out.
func NativeBody(form contract.NativeForm, body []byte, instructions string) ([]byte, error) {
	if pipeline.Chars(instructions) > maxNativeInstructions {
		instructions = ""
	}
	if form == contract.NativeCompact {
		return compactBody(body)
	}
	drop := []string{
		"stop_sequences", "output_format", "output_config.format", "output_config.task_budget",
		"context_management", "stream",
	}
	switch gjson.GetBytes(body, "tool_choice.type").String() {
	case "any", "tool":
		drop = append(drop, "tool_choice")
	}
	var err error
	for _, path := range drop {
		if !gjson.GetBytes(body, path).Exists() {
			continue
		}
		if body, err = sjson.DeleteBytes(body, path); err != nil {
			return nil, fmt.Errorf("remove %s from the request: %w", path, err)
		}
	}
	switch form {
	case contract.NativeOnDemand:
		asked := struct {
			Type         string `json:"type"`
			Instructions string `json:"instructions,omitempty"`
		}{"summarize", instructions}
		return putKey(body, "compaction", asked)
	case contract.NativeEdit:
		type trigger struct {
			Type  string `json:"type"`
			Value int    `json:"value"`
		}
		type edit struct {
			Type         string  `json:"type"`
			Trigger      trigger `json:"trigger"`
			Pause        bool    `json:"pause_after_compaction"`
			Instructions string  `json:"instructions,omitempty"`
		}
		return putKey(body, "context_management", map[string][]edit{"edits": {{
			Type: "compact_20260112", Trigger: trigger{"input_tokens", pipeline.MinAnthropicCompactionInputTokens},
			Pause: true, Instructions: instructions,
		}}})
	}
	return nil, fmt.Errorf("unknown native compaction %q", form)
}

func putKey(body []byte, key string, value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return sjson.SetRawBytes(body, key, raw)
}

// compactBody keeps the keys that /responses/compact accepts.
func compactBody(body []byte) ([]byte, error) {
	out := []byte("{}")
	var err error
	for _, key := range []string{"model", "instructions", "input", "prompt_cache_key"} {
		v := gjson.GetBytes(body, key)
		if !v.Exists() || v.Type == gjson.Null {
			continue
		}
		if out, err = sjson.SetRawBytes(out, key, []byte(v.Raw)); err != nil {
			return nil, fmt.Errorf("make the request for a compaction: %w", err)
		}
	}
	return out, nil
}

// editTrigger is more tokens than any context has: the edit is then declared and does nothing.
const editTrigger = 10_000_000

// WithCompactionEdit declares the compaction edit in an ordinary request that sends one of its blocks back, because
// Anthropic otherwise rejects the block. For every other form the body is returned unchanged. An empty body counts as
// an object without keys.
func WithCompactionEdit(body []byte, form contract.NativeForm) ([]byte, error) {
	if form == contract.NativeEdit && len(body) == 0 {
		body = []byte("{}")
	}
	declared := `context_management.edits.#(type=="compact_20260112")`
	if form != contract.NativeEdit || gjson.GetBytes(body, declared).Exists() {
		return body, nil
	}
	edit := fmt.Sprintf(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":%d}}`, editTrigger)
	if gjson.GetBytes(body, "context_management.edits").IsArray() {
		return sjson.SetRawBytes(body, "context_management.edits.-1", []byte(edit))
	}
	return spliceKeys(body, "context_management",
		func([]byte) string { return `"context_management":{"edits":[` + edit + `]}` })
}
