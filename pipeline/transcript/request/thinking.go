package request

import (
	"encoding/json"
	"fmt"

	"precis/pipeline/transcript/rawjson"
)

// ClearThinking returns what a request to Anthropic needs beside its messages when thinking follows a summary that a
// client wrote: an object with context_management, which lets the server drop that thinking. It requires the beta
// ThinkingBeta. Build adds it automatically.
func ClearThinking() json.RawMessage {
	return fmt.Appendf(nil, `{"context_management":%s}`, clearThinking(rawjson.Value{}))
}
