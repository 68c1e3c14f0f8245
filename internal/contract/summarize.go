package contract

import "precis/pipeline"

// SummarizeRequest asks a summarizer for a summary.
type SummarizeRequest struct {
	Ref
	Plan  string `json:"plan"`
	Input string `json:"input"`
	// InputTokens is the size of the input by the local estimate, 0: not known.
	InputTokens int                 `json:"input_tokens,omitempty"`
	MaxOutput   int                 `json:"max_output,omitempty"`
	Summarizer  pipeline.Summarizer `json:"summarizer"`
}

// SummarizeResult refers to a summary that passed its checks.
type SummarizeResult struct {
	// Summary is the hash of the summary artifact.
	Summary string `json:"summary"`
	Tokens  int    `json:"tokens"`
	// InputTokens and OutputTokens are what the vendor billed, 0 for the digest.
	InputTokens  int `json:"input_tokens,omitempty"`
	OutputTokens int `json:"output_tokens,omitempty"`
	// Native is the hash of what the vendor's own compaction gave, "" if it was not used, and NativeUse that of what
	// it can be used for. If only the vendor can read it, Summary is "", and another summarizer writes one beside it.
	Native    string `json:"native,omitempty"`
	NativeUse string `json:"native_use,omitempty"`
	// ConstraintsMissing, UnsupportedIdentifiers and Misattributed are the figures of the verification.
	ConstraintsMissing     int `json:"constraints_missing,omitempty"`
	UnsupportedIdentifiers int `json:"unsupported_identifiers,omitempty"`
	Misattributed          int `json:"misattributed,omitempty"`
}
