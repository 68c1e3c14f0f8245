package transcript_test

import (
	"bytes"

	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

func init() {
	// The records are those of Claude Code, with other keys around the message.
	drawn[transcript.ClaudeStream] = func() *rapid.Generator[[]byte] {
		return rapid.Map(drawMessage(transcript.ClaudeCode), func(b []byte) []byte {
			b = bytes.ReplaceAll(b, []byte(`"parentUuid":"p"`), []byte(`"parent_tool_use_id":null`))
			return bytes.ReplaceAll(b, []byte(`"toolUseResult"`), []byte(`"tool_use_result"`))
		})
	}
}
