package llm

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"precis/pipeline"
)

// wholeError returns why a body with a good status is not an answer: it contains an error, or it is not the JSON of an
// answer.
func wholeError(vendor string, body []byte) *pipeline.Error {
	if json.Valid(body) && (gjson.GetBytes(body, "error").Exists() ||
		gjson.GetBytes(body, "type").String() == "error") {
		return Classify(vendor, 200, nil, body, nil)
	}
	return pipeline.Errorf(pipeline.MalformedOutput, "%s: the answer is not the JSON of a model's answer", vendor)
}

// checkAnswer returns nil when an answer can be a summary, else why not. It considers how the answer ended, not what it
// says.
func checkAnswer(vendor string, a *answer) error {
	if a.asked {
		return checkNative(vendor, a)
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
		// An answer of reasoning alone counts too: a smaller request helps, a retry does not.
		return fail(pipeline.OutputTooLong, "the answer was cut off at the output limit")
	case pipeline.FinishError:
		return fail(pipeline.ServerError, "the service broke off the answer")
	case pipeline.FinishNone:
		if blank && a.ToolCalls > 0 {
			break
		}
		return fail(pipeline.MalformedOutput, "the answer has no finish reason, so it is incomplete")
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

// checkNative returns nil when the answer is a native compaction, else why not.
func checkNative(vendor string, a *answer) error {
	if a.native != nil && a.Finish == pipeline.FinishStop {
		return nil
	}
	kind, why := pipeline.EmptyOutput, "the answer holds no compaction block with content"
	switch a.Finish {
	case pipeline.FinishRefusal, pipeline.FinishContentFilter:
		kind, why = pipeline.Refused, "the vendor declined to compact"
	case pipeline.FinishLength:
		kind, why = pipeline.OutputTooLong, "the compaction was cut off at the output limit"
	case pipeline.FinishToolUse:
		kind, why = pipeline.ToolCallOutput, "the model called a tool instead of compacting"
	case pipeline.FinishError:
		kind, why = pipeline.ServerError, "the service broke off the compaction"
	case pipeline.FinishNone:
		kind, why = pipeline.MalformedOutput, "the answer has no finish reason, so it is incomplete"
	}
	a.native, a.nativeText = nil, ""
	return pipeline.Errorf(kind, "%s: %s", vendor, why)
}
