package llm

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"precis/pipeline"
)

// answer gathers the pieces of an answer as they arrive.
type answer struct {
	pipeline.Answer
	text, reasoning strings.Builder
	chars           int
	usage           Usage
	id, model       string
	refusal         bool
	// asked is true when a native compaction was requested; native and nativeText are its result.
	asked      bool
	native     json.RawMessage
	nativeText string
	onText     func()
}

func (a *answer) addText(s string) { a.add(&a.text, s) }

func (a *answer) addReasoning(s string) { a.add(&a.reasoning, s) }

func (a *answer) add(b *strings.Builder, s string) {
	if s == "" {
		return
	}
	b.WriteString(s)
	a.chars += utf8.RuneCountInString(s)
	if a.onText != nil {
		a.onText()
	}
}

// finish puts the pieces together.
func (a *answer) finish() {
	a.Text, a.Reasoning = a.text.String(), a.reasoning.String()
	if a.refusal {
		a.Finish = pipeline.FinishRefusal
	}
}

// dropText removes the text of an answer that broke off, because half a summary reads like a whole one.
func (a *answer) dropText() {
	a.Text, a.Reasoning, a.Finish = "", "", pipeline.FinishNone
	a.native, a.nativeText = nil, ""
}

// finishOf translates a vendor's finish reason. An unknown reason counts as none: an answer that ended for an unknown
// reason is not taken to be complete.
func finishOf(reason string) pipeline.Finish {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "stop_sequence", "eos", "eos_token", "completed", "complete", "compaction":
		return pipeline.FinishStop
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return pipeline.FinishLength
	case "tool_use", "tool_calls", "function_call", "tool_call", "malformed_function_call", "unexpected_tool_call",
		"too_many_tool_calls":
		return pipeline.FinishToolUse
	case "refusal":
		return pipeline.FinishRefusal
	case "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive",
		"content_filtered",
		"language", "image_safety", "image_prohibited_content", "image_recitation", "model_armor", "jailbreak":
		return pipeline.FinishContentFilter
	case "error", "abort", "cancelled", "insufficient_system_resource", "network_error", "failed", "other":
		return pipeline.FinishError
	}
	return pipeline.FinishNone
}
