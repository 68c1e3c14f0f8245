package conversation

import (
	"precis/internal/store/conversations"
	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Stored returns a decoded message in the form in which it is stored, with its sizes.
func Stored(m pipeline.Message) conversations.NewMessage {
	text := pipeline.RenderMessage(m)
	return conversations.NewMessage{
		ClientID: m.ID,
		Role:     m.Role,
		Kind:     m.Kind,
		Genuine:  m.Genuine(),
		Chars:    pipeline.Chars(text),
		Tokens:   pipeline.EstimateMessage(m),
		Native:   m.Native,

		Fingerprint: rawjson.Fingerprint(m.Native),
	}
}
