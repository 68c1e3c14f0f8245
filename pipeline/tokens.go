package pipeline

import (
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// vocabulary is the o200k tokenizer. Its tables take some 30 ms to build, so they wait for the first use.
var vocabulary = sync.OnceValue(func() tokenizer.Codec {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		// The vocabulary is compiled in: only another version of the library could do this.
		panic("pipeline: the o200k vocabulary is missing: " + err.Error())
	}
	return codec
})

// countTokens is the exact number of o200k tokens of s.
func countTokens(s string) int {
	n, err := vocabulary().Count(s)
	if err != nil {
		// The split expression has no time limit set, the only error it can give.
		panic("pipeline: tokenizer: " + err.Error())
	}
	return n
}

// A text over exactTextBytes is estimated from samples: that many bytes are counted at the tokenizer's own
// speed, some 10 MB/s, in a few milliseconds.
const (
	exactTextBytes = 24 << 10
	// sampleBytes is the size of one sample. Cutting a text adds about half a token a cut, and a sample of
	// this size has some 300.
	sampleBytes = 1 << 10
	// sampleStride is how much more text brings one more sample.
	sampleStride = 20 << 10
)

// EstimateText is the number of tokens of s. A text up to 24 KiB is counted by the o200k tokenizer itself.
// A longer one is counted in samples, one at a shifting place in each of the equal stretches that the text
// is divided into, and scaled by weighText, which looks at every byte: on real transcripts, on any one
// language, on code, base64 and their mixtures that is a few percent off the count, and never 10. The cost
// is linear, at 50 to 100 MB/s for a text of megabytes.
//
// Every estimate of a text comes from here, so that what a vendor's own tokenizer makes of the same text
// needs to be set right in one place only.
func EstimateText(s string) int {
	if len(s) <= exactTextBytes {
		return countTokens(s)
	}
	samples := exactTextBytes/sampleBytes + (len(s)-exactTextBytes)/sampleStride
	stretch := len(s) / samples
	tokens, weight := 0, 0
	// A fixed sequence of offsets: a period in the text does not meet one in the sampling, and the same
	// text has the same estimate always.
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
