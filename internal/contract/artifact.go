package contract

// ArtifactKind says what an artifact is: as the kind under which it is stored, and as its role among the artifacts of
// an attempt.
type ArtifactKind string

// The kinds of artifacts.
const (
	// ArtifactSystem, ArtifactTools and ArtifactEnvelope are parts of the conversation when a snapshot was made.
	ArtifactSystem   ArtifactKind = "system"
	ArtifactTools    ArtifactKind = "tools"
	ArtifactEnvelope ArtifactKind = "envelope"
	// ArtifactSnapshot is what a run knew of the conversation.
	ArtifactSnapshot ArtifactKind = "state"
	// ArtifactPlan is which messages are summarized and which stay.
	ArtifactPlan ArtifactKind = "plan"
	// ArtifactInput is the summarizer's input, ArtifactOmitted the list of messages that it does not hold whole.
	ArtifactInput   ArtifactKind = "input"
	ArtifactOmitted ArtifactKind = "omitted"
	// ArtifactRequest is the body of a request to a model, ArtifactAnswer the model's answer.
	ArtifactRequest ArtifactKind = "request"
	ArtifactAnswer  ArtifactKind = "answer"
	// ArtifactSummaryText is the text of an accepted summary; its role is ArtifactSummary, the kind of the whole
	// summary message.
	ArtifactSummaryText ArtifactKind = "summary_text"
	ArtifactSummary     ArtifactKind = "summary"
	// ArtifactVerification is the comparison of a summary with its source.
	ArtifactVerification ArtifactKind = "verification"
	// ArtifactNative is what the vendor's own compaction gave, ArtifactNativeUse what it can be used for.
	ArtifactNative    ArtifactKind = "native"
	ArtifactNativeUse ArtifactKind = "native_use"
	// ArtifactContext is the new context, one native message a line.
	ArtifactContext ArtifactKind = "context"
	// ArtifactDifference is where an attempt of a replay differs from its original, ArtifactComparison the comparison
	// of the two runs.
	ArtifactDifference ArtifactKind = "difference"
	ArtifactComparison ArtifactKind = "comparison"
)
