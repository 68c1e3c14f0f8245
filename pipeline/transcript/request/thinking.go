package request

import (
	"encoding/json"
	"fmt"

	"precis/pipeline/transcript/rawjson"
)

// ClearThinking is what a request to Anthropic needs beside its messages when thinking stands behind a summary that a
// client wrote: an object with context_management, which lets the server drop that thinking. It goes with the beta
// ThinkingBeta. BuildRequest puts it in by itself.
func ClearThinking() json.RawMessage {
	return fmt.Appendf(nil, `{"context_management":%s}`, clearThinking(rawjson.Value{}))
}
