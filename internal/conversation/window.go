package conversation

import (
	"precis/internal/llm"
	"precis/internal/store"
)

// Window is the model's context window in tokens: the client's own figure, else the model registry's, and never more
// than what a vendor's overflow error has named. 0: nothing is known.
func Window(c store.Conversation) int {
	window := c.Window
	if window == 0 {
		known, _ := llm.Lookup(c.Vendor, c.Model)
		window = known.Window
	}
	if learned := c.LearnedWindow; learned > 0 && (window == 0 || learned < window) {
		return learned
	}
	return window
}
