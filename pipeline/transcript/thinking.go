package transcript

import "encoding/json"

// ClearThinking is what a request to Anthropic needs beside its messages when thinking stands behind a summary that a
// client wrote: an object with context_management, which lets the server drop that thinking. It goes with the beta
// ThinkingBeta. BuildRequest puts it in by itself.
func ClearThinking() json.RawMessage {
	return append(append([]byte(`{"context_management":`), clearThinking(nil, span{})...), '}')
}
