package contract

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

// Format returns the format of the requests for the form.
func (f NativeForm) Format() Protocol {
	switch f {
	case NativeOnDemand, NativeEdit:
		return ProtocolAnthropic
	case NativeCompact:
		return ProtocolOpenAIResponses
	}
	return ""
}

// Readable reports whether a person and other models can read the result.
func (f NativeForm) Readable() bool { return f == NativeOnDemand || f == NativeEdit }
