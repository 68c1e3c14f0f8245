package pipeline

import (
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// vocabulary is the o200k tokenizer. It is built on first use, since its tables take some 30 ms.
var vocabulary = sync.OnceValue(func() tokenizer.Codec {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		// The vocabulary is compiled in: only another version of the library could do this.
		panic("pipeline: the o200k vocabulary is missing: " + err.Error())
	}
	return codec
})

// countTokens returns the exact number of o200k tokens of s.
func countTokens(s string) int {
	n, err := vocabulary().Count(s)
	if err != nil {
		// The split expression has no time limit set, the only error it can give.
		panic("pipeline: tokenizer: " + err.Error())
	}
	return n
}

// A text over exactTextBytes is estimated from samples: that many bytes are counted by the tokenizer, at some 10 MB/s,
// in a few milliseconds.
const (
	exactTextBytes = 24 << 10
	// sampleBytes is the size of one sample. Each cut adds about half a token, and a sample of this size has some 300.
	sampleBytes = 1 << 10
	// sampleStride is how much more text adds one more sample.
	sampleStride = 20 << 10
)

// EstimateText returns the number of tokens of s. A text up to 24 KiB is counted by the o200k tokenizer. A longer one
// is counted in samples, one at a varying place in each of the equal sections of the text, and scaled by weighText,
// which looks at every byte. On real transcripts, on any one language, on code, base64 and mixtures of them the result
// is a few percent off the count, and never 10. The cost is linear, at 50 to 100 MB/s for a text of megabytes.
//
// Every estimate of a text is made here, so that a difference between tokenizers has to be corrected in one place only.
func EstimateText(s string) int {
	if len(s) <= exactTextBytes {
		return countTokens(s)
	}
	samples := exactTextBytes/sampleBytes + (len(s)-exactTextBytes)/sampleStride
	stretch := len(s) / samples
	tokens, weight := 0, 0
	// A fixed sequence of offsets: it does not coincide with a period in the text, and the same text always has the
	// same estimate.
	shift := uint64(0x9e3779b97f4a7c15)
	for i := range samples {
		shift ^= shift << 13
		shift ^= shift >> 7
		shift ^= shift << 17
		from := i*stretch + int(shift%uint64(stretch-sampleBytes+1))
		sample := s[runeStart(s, from):runeStart(s, from+sampleBytes)]
		tokens += countTokens(sample)
		weight += weighText(sample)
	}
	return int(float64(tokens) / float64(max(weight, 1)) * float64(weighText(s)))
}
