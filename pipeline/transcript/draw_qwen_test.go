package transcript_test

import (
	"pgregory.net/rapid"

	"precis/pipeline/transcript"
)

func init() { drawn[transcript.Qwen] = drawQwen }

// drawQwen draws a valid record of Qwen Code, with unusual blanks.
func drawQwen() *rapid.Generator[[]byte] {
	return rapid.Map(drawContent(), func(content []byte) []byte {
		return []byte(`{ "uuid":"u", "parentUuid": null ,"type":"user","message": ` + string(content) + ` }`)
	})
}
