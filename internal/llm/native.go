package llm

import (
	"strings"

	"precis/pipeline"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// NativeForm is a form of a vendor's own compaction.
type NativeForm string

// The forms; docs/vendors.md says where each comes from.
const (
	// NativeOnDemand is Anthropic's request for a summary and nothing else (beta compact-2026-09-04). The result is one
	// signed block that comes first in later requests, in place of the messages that it summarizes.
	NativeOnDemand NativeForm = "on_demand"
	// NativeEdit is Anthropic's compaction edit (beta compact-2026-01-12), with a pause after it has fired. Its trigger
	// is at least pipeline.MinAnthropicCompactionInputTokens.
	NativeEdit NativeForm = "edit"
	// NativeCompact is the endpoint /responses/compact of OpenAI and xAI. Its result is opaque.
	NativeCompact NativeForm = "compact"
)

// Format returns the format of the requests for the form, one of the Type constants.
func (f NativeForm) Format() string {
	switch f {
	case NativeOnDemand, NativeEdit:
		return TypeAnthropic
	case NativeCompact:
		return TypeOpenAIResponses
	}
	return ""
}

// Readable reports whether a person and other models can read the result.
func (f NativeForm) Readable() bool { return f == NativeOnDemand || f == NativeEdit }

// Beta returns the beta header of requests that send a result of this form back, "" where none is needed.
func (f NativeForm) Beta() string {
	switch f {
	case NativeOnDemand:
		return string(anthropic.AnthropicBetaCompact2026_09_04)
	case NativeEdit:
		return string(anthropic.AnthropicBetaCompact2026_01_12)
	}
	return ""
}

// Family names the models that are assumed to read each other's opaque blocks: the vendor, and the model's name up to
// its first number, such as "anthropic/claude-opus-5" of claude-opus-5-5 or "openai/gpt-5" of gpt-5.4-mini.
func Family(vendor, model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	end := strings.IndexAny(name, "0123456789")
	if end >= 0 {
		for end < len(name) && name[end] >= '0' && name[end] <= '9' {
			end++
		}
		name = name[:end]
	}
	return strings.ToLower(vendor) + "/" + name
}

// nativeProtocol is a protocol with a compaction of its own.
type nativeProtocol interface {
	native(form NativeForm) (protocol, error)
}

func noForm(vendor string, form NativeForm) error {
	return pipeline.Errorf(pipeline.BadRequest, "%s: the vendor has no native compaction %q", vendor, form)
}
