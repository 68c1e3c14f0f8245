package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"precis/pipeline"
)

// ClassifyAnswer reads a whole, non-streamed answer that came with status 200. vendor is the vendor's type,
// or its name; when it is neither, the shape of the body decides. The error is a *pipeline.Error, or nil
// when the answer may be a summary. Text and tool call together may: the call is never carried out.
func ClassifyAnswer(vendor string, body []byte) (Result, error) {
	res := Result{Raw: body, Status: 200}
	if len(bytes.TrimSpace(body)) == 0 {
		return res, pipeline.Errorf(pipeline.EmptyOutput, "%s: the answer has no body", vendor)
	}
	decode := decodeOpenAI
	switch object := gjson.GetBytes(body, "object").String(); {
	case vendor == TypeAnthropic || gjson.GetBytes(body, "type").String() == "message":
		decode = decodeAnthropic
	case object == "response":
		decode = decodeResponse
	case object == "response.compaction":
		decode = decodeCompacted
	case vendor == TypeGoogle || gjson.GetBytes(body, "candidates").Exists() ||
		gjson.GetBytes(body, "promptFeedback").Exists():
		decode = decodeGoogle
	}
	a, err := decode(body)
	if err != nil {
		return res, wholeError(vendor, body)
	}
	res.Answer, res.Usage, res.Model, res.RequestID = a.Answer, a.usage, a.model, a.id
	res.Native, res.NativeText = a.native, a.nativeText
	return res, verdict(vendor, a)
}

// wholeError tells why a body with a good status is no answer: an error in it after all, or no JSON of the
// kind.
func wholeError(vendor string, body []byte) *pipeline.Error {
	if json.Valid(body) && (gjson.GetBytes(body, "error").Exists() ||
		gjson.GetBytes(body, "type").String() == "error") {
		return Classify(vendor, 200, nil, body, nil)
	}
	return pipeline.Errorf(pipeline.MalformedOutput, "%s: the answer is not the JSON of a model's answer", vendor)
}

// verdict says whether an answer can be a summary at all: nil, or why not. It looks at how the answer
// ended, not at what it says.
func verdict(vendor string, a *answer) error {
	if a.asked {
		return nativeVerdict(vendor, a)
	}
	blank := strings.TrimSpace(a.Text) == ""
	fail := func(kind pipeline.ErrorKind, why string) error {
		return pipeline.Errorf(kind, "%s: %s", vendor, why)
	}
	switch a.Finish {
	case pipeline.FinishRefusal:
		return fail(pipeline.Refused, "the model declined")
	case pipeline.FinishContentFilter:
		return fail(pipeline.Refused, "a content filter stopped the answer")
	case pipeline.FinishLength:
		// Reasoning alone counts too: what helps is to ask for less, not to ask again.
		return fail(pipeline.OutputTooLong, "the answer was cut off at the output limit")
	case pipeline.FinishError:
		return fail(pipeline.ServerError, "the service broke the answer off")
	case pipeline.FinishNone:
		if blank && a.ToolCalls > 0 {
			break
		}
		return fail(pipeline.MalformedOutput, "the answer ends without a reason to finish, so it is incomplete")
	}
	switch {
	case !blank:
		return nil
	case a.ToolCalls > 0:
		return fail(pipeline.ToolCallOutput, "the model called a tool and said nothing")
	case a.Reasoning != "":
		return fail(pipeline.EmptyOutput, "the answer holds reasoning and no text")
	}
	return fail(pipeline.EmptyOutput, "the answer holds no text")
}

// finishOf brings the vendors' reasons to finish into one vocabulary. One that is not known is none: an
// answer that ended for an unknown reason is not taken for complete.
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
