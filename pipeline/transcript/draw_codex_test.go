package transcript_test

import (
	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

func init() {
	drawn[transcript.Codex] = func() *rapid.Generator[[]byte] {
		return rapid.Map(drawItem(), func(s string) []byte {
			return []byte(`{"timestamp":"2026-05-01T10:00:00.000Z", "type":"response_item" ,"payload": ` + s + ` }`)
		})
	}
}
