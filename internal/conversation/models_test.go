package conversation_test

import (
	"testing"

	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store/conversations"
)

// TestCalibration: a real figure beats what is known of the model's tokenizer.
func TestCalibration(t *testing.T) {
	t.Parallel()
	c := conversations.Conversation{Vendor: "anthropic", Model: "claude-opus-4-7"}
	if got := conversation.Calibration(c, llm.Models{}); got != 1.62 {
		t.Errorf("before any figure: %v, want the tokenizer's 1.62", got)
	}
	c.Usage.Calibration = 1.4
	if got := conversation.Calibration(c, llm.Models{}); got != 1.4 {
		t.Errorf("after one: %v, want its 1.4", got)
	}
}
