package llm

import (
	"bytes"

	"github.com/tidwall/gjson"

	"precis/internal/contract"
	"precis/pipeline"
)

// ClassifyAnswer reads a whole, non-streamed answer with status 200. vendor is the vendor's type or its name; when it
// is neither, the shape of the body decides. The error is a *pipeline.Error, nil when the answer may be a summary.
// Text together with a tool call may be one: the tool is never run.
func ClassifyAnswer(vendor string, body []byte) (Result, error) {
	res := Result{Raw: body, Status: 200}
	if len(bytes.TrimSpace(body)) == 0 {
		return res, pipeline.Errorf(pipeline.EmptyOutput, "%s: the answer has no body", vendor)
	}
	decode := decodeOpenAI
	switch object := gjson.GetBytes(body, "object").String(); {
	case vendor == contract.ProtocolAnthropic || gjson.GetBytes(body, "type").String() == "message":
		decode = decodeAnthropic
	case object == "response":
		decode = decodeResponse
	case object == "response.compaction":
		decode = decodeCompacted
	case vendor == contract.ProtocolGoogle || gjson.GetBytes(body, "candidates").Exists() ||
		gjson.GetBytes(body, "promptFeedback").Exists():
		decode = decodeGoogle
	}
	a, err := decode(body)
	if err != nil {
		return res, wholeError(vendor, body)
	}
	res.Answer, res.Usage, res.Model, res.RequestID = a.Answer, a.usage, a.model, a.id
	res.Native, res.NativeText = a.native, a.nativeText
	return res, checkAnswer(vendor, a)
}
