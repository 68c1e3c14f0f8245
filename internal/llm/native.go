package llm

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"precis/internal/contract"
	"precis/pipeline"
)

// NativeBeta returns the beta header of requests that send the result of a native compaction back, "" where none is
// needed.
func NativeBeta(form contract.NativeForm) string {
	switch form {
	case contract.NativeOnDemand:
		return string(anthropic.AnthropicBetaCompact2026_09_04)
	case contract.NativeEdit:
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
	native(form contract.NativeForm) (protocol, error)
}

func noForm(vendor string, form contract.NativeForm) error {
	return pipeline.Errorf(pipeline.BadRequest, "%s: the vendor has no native compaction %q", vendor, form)
}
