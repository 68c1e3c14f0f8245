package conversation

import (
	"precis/internal/llm"
	"precis/internal/store"
)

// Calibration is what a local estimate of the conversation's context is scaled by, real tokens for one estimated: the
// ratio at the last figure of the server, and until there is one what is known of the model's tokenizer.
func Calibration(c store.Conversation) float64 {
	if c.Usage.Calibration > 0 {
		return c.Usage.Calibration
	}
	return llm.TokenRatio(c.Vendor, c.Model)
}
