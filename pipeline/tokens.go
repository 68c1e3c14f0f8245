package pipeline

import (
	"math"
	"strings"
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

const (
	// messageOverhead is what the frame of a message costs beside its parts, in tokens: OpenAI documents
	// three a message and one for the role.
	messageOverhead = 4
	// partOverhead is what the frame of a tool call or a tool result costs: ids and names of fields.
	partOverhead = 8
	// imageTokens is assumed for an image of unknown size: what a large one costs.
	imageTokens = 1600
	// pdfPageBytes and pdfPageTokens are for a file that is not text: an average page, and what Anthropic
	// says that a page costs (1,500 to 3,000 tokens).
	pdfPageBytes  = 75_000
	pdfPageTokens = 2000
)

// EstimateText is the number of tokens of s.
func EstimateText(s string) int { return countTokens(s) }

// EstimateMessage is the number of tokens that a message costs in a request: all of its parts, images by
// their dimensions, never by the length of their base64, and a few for its frame.
func EstimateMessage(m Message) int {
	n := messageOverhead
	for _, p := range m.Parts {
		n += EstimatePart(p)
	}
	return n
}

// EstimatePart is the number of tokens that one part costs in a request.
func EstimatePart(p Part) int {
	switch p.Kind {
	case PartText, PartReasoning:
		return EstimateText(p.Text)
	case PartToolCall:
		return partOverhead + EstimateText(p.Name) + EstimateText(p.Input)
	case PartToolResult:
		n := partOverhead
		for _, c := range p.Content {
			n += EstimatePart(c)
		}
		return n
	case PartImage:
		return EstimateImage(p.Width, p.Height)
	case PartFile:
		return estimateFile(p)
	}
	text, _ := OmitBinary(string(p.Raw))
	return EstimateText(text)
}

func estimateFile(p Part) int {
	switch {
	case p.Text != "":
		return EstimateText(p.Text)
	case strings.HasPrefix(p.MediaType, "image/"):
		return EstimateImage(p.Width, p.Height)
	case strings.HasPrefix(p.MediaType, "text/"):
		return p.Bytes / 4
	}
	return pdfPageTokens * max(1, (p.Bytes+pdfPageBytes-1)/pdfPageBytes)
}

// EstimateImage is the number of tokens of an image of width × height pixels: the larger of what Anthropic
// and OpenAI document, since an estimate that is short costs more than one that is long. Anthropic scales
// to 1,568 pixels on the long edge and 1.15 megapixels, and counts width × height / 750; OpenAI scales to
// 2,048 pixels on the long edge and 768 on the short one, and counts 85 and 170 for each tile of 512 × 512.
// A size below one pixel is unknown, and counts as a large image.
func EstimateImage(width, height int) int {
	if width < 1 || height < 1 {
		return imageTokens
	}
	w, h := float64(width), float64(height)
	return max(anthropicImage(w, h), openAIImage(w, h))
}

func anthropicImage(w, h float64) int {
	scale := min(1, 1568/max(w, h))
	pixels := min(w*h*scale*scale, 1.15e6)
	return int(math.Round(pixels / 750))
}

func openAIImage(w, h float64) int {
	scale := min(1, 2048/max(w, h))
	scale = min(scale, 768/min(w, h))
	tiles := func(edge float64) int { return max(1, int(math.Ceil(edge*scale/512-1e-9))) }
	return 85 + 170*tiles(w)*tiles(h)
}
