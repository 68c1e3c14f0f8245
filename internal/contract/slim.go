package contract

import "precis/pipeline"

// SlimRequest asks for the input of a summarizer, within what it takes.
type SlimRequest struct {
	Ref
	Plan       string              `json:"plan"`
	Summarizer pipeline.Summarizer `json:"summarizer"`
	// Factor scales the input, see pipeline.SlimInput.Share: 1 at first, halved by fallbacks.
	Factor    float64            `json:"factor"`
	Variation pipeline.Variation `json:"variation"`
}

// SlimResult refers to the input.
type SlimResult struct {
	// Input is the hash of the input artifact.
	Input string `json:"input"`
	// Chars and Tokens are the input's size, tokens by the local estimate.
	Chars  int `json:"chars"`
	Tokens int `json:"tokens"`
	// MaxOutput is the output limit to ask for, in tokens.
	MaxOutput int `json:"max_output,omitempty"`
	// Omitted, Cut and DroppedTools count messages that the input does not hold whole.
	Omitted      int `json:"omitted,omitempty"`
	Cut          int `json:"cut,omitempty"`
	DroppedTools int `json:"dropped_tools,omitempty"`
}
