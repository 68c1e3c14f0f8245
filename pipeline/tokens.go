package pipeline

import (
	"math"
	"strings"
	"sync"
	"unicode/utf8"

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

// runeStart is at, or the beginning of the code point that it is inside of.
func runeStart(s string, at int) int {
	for back := at; back > 0 && back > at-utf8.UTFMax; back-- {
		if back >= len(s) || utf8.RuneStart(s[back]) {
			return min(back, len(s))
		}
	}
	return at
}

// The classes of bytes that weighText tells apart.
const (
	classLower = iota
	classUpper
	classDigit
	classSpace
	classBreak // line ends and tabs
	classLead  // the first byte of a char beyond ASCII
	classNext  // its other bytes
	classOther // signs and controls
	classCount
)

var byteClass = func() (class [256]uint8) {
	for b := range class {
		switch c := byte(b); {
		case c >= 0xc0:
			class[b] = classLead
		case c >= 0x80:
			class[b] = classNext
		case c >= 'a' && c <= 'z':
			class[b] = classLower
		case c >= 'A' && c <= 'Z':
			class[b] = classUpper
		case c >= '0' && c <= '9':
			class[b] = classDigit
		case c == ' ':
			class[b] = classSpace
		case c == '\n' || c == '\r' || c == '\t':
			class[b] = classBreak
		default:
			class[b] = classOther
		}
	}
	return class
}()

// byteWeight is what a byte adds to weighText by its class and the class before it, in hundredths of a
// token: a new word, a change of case, a run of signs. Only how two texts compare counts, since the samples
// set the level, so that round figures serve; they come from counting tokens of mixed transcripts.
var byteWeight = func() (weight [classCount][classCount]int) {
	for prev := range weight {
		weight[prev] = [classCount]int{
			classLower: 80, classUpper: 80, classDigit: 80, classSpace: 5, classBreak: 40,
			classLead: 35, classNext: 22, classOther: 80,
		}
	}
	weight[classLower][classLower] = 9
	weight[classUpper][classLower] = 12
	weight[classLower][classUpper] = 90
	weight[classUpper][classUpper] = 30
	weight[classDigit][classDigit] = 37
	weight[classSpace][classSpace] = 3
	weight[classSpace][classLower] = 90
	weight[classSpace][classUpper] = 90
	weight[classSpace][classOther] = 70
	weight[classBreak][classBreak] = 10
	weight[classBreak][classSpace] = 50
	weight[classOther][classOther] = 35
	weight[classOther][classLower] = 70
	weight[classOther][classUpper] = 70
	return weight
}()

// weighText is a figure that grows as the tokens of a text do, from one look at each byte.
func weighText(s string) int {
	// Counting pairs first keeps the loop free of dependent additions.
	var pairs [classCount * classCount]int
	prev := uint8(classBreak)
	for i := 0; i < len(s); i++ {
		class := byteClass[s[i]]
		pairs[prev*classCount+class]++
		prev = class
	}
	weight := 0
	for pair, n := range pairs {
		weight += n * byteWeight[pair/classCount][pair%classCount]
	}
	return weight
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

// EstimateMessage is the number of tokens that a message costs in a request: all of its parts, images by
// their dimensions, never by the length of their base64, and a few for its frame.
func EstimateMessage(m Message) int {
	n := messageOverhead
	for _, p := range m.Parts {
		n += EstimatePart(p)
	}
	return n
}

// EstimateItem is the number of tokens that an entry of a context costs in a request, its edits applied.
func EstimateItem(item ContextItem) int { return tokenCounts(nil).item(item) }

// tokenCounts are the estimates of the texts in entries that are edited, so that each is made once. It may be nil:
// then nothing is kept.
type tokenCounts map[string]int

func (c tokenCounts) text(s string) int {
	if n, known := c[s]; known {
		return n
	}
	n := EstimateText(s)
	c.keep(s, n)
	return n
}

func (c tokenCounts) keep(s string, tokens int) {
	if c != nil {
		c[s] = tokens
	}
}

// item is EstimateItem.
func (c tokenCounts) item(item ContextItem) int {
	if item.Native != nil {
		return item.Native.tokens()
	}
	if item.Made != nil {
		return messageOverhead + EstimateText(item.Made.Text)
	}
	m := *item.Message
	if len(item.Edits) == 0 {
		if m.Tokens > 0 {
			return m.Tokens
		}
		return EstimateMessage(m)
	}
	n := messageOverhead
	for i, p := range m.Parts {
		n += c.edited(p, i, item.Edits)
	}
	return n
}

// edited is EstimatePart for a part with edits. What an edit replaces is not counted: it may be large, and this
// is done on every read of a context.
func (c tokenCounts) edited(p Part, index int, edits []Edit) int {
	contents := map[int]int{} // tokens of the contents that are edited
	for _, e := range edits {
		if e.Part != index {
			continue
		}
		tokens := 0
		if e.Op == EditReplace {
			tokens = c.text(e.Text)
		}
		switch {
		case e.Content >= 0:
			contents[e.Content] = tokens
		case p.Kind == PartToolResult && e.Op == EditReplace:
			return partOverhead + tokens
		default:
			return tokens
		}
	}
	if len(contents) == 0 {
		return c.part(p)
	}
	n := partOverhead
	for i, part := range p.Content {
		if tokens, ok := contents[i]; ok {
			n += tokens
		} else {
			n += c.part(part)
		}
	}
	return n
}

// EstimatePart is the number of tokens that one part costs in a request.
func EstimatePart(p Part) int { return tokenCounts(nil).part(p) }

// part is EstimatePart.
func (c tokenCounts) part(p Part) int {
	switch p.Kind {
	case PartText:
		return c.text(p.Text)
	case PartReasoning:
		return max(c.text(p.Text), estimateSealed(p.Raw))
	case PartToolCall:
		return partOverhead + c.text(p.Name) + c.text(p.Input)
	case PartToolResult:
		n := partOverhead
		for _, content := range p.Content {
			n += c.part(content)
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

const (
	// leastSealed is the shortest run of base64 that is taken for a signature, in chars: a text has none so long,
	// and the shortest signature of an empty thought has 232.
	leastSealed = 200
	// sealedFrame is what a signature has beside the thought, in chars.
	sealedFrame = 232
)

// estimateSealed is the number of tokens of reasoning that comes back in a form that only its vendor reads: a
// signature of Anthropic's, redacted_thinking, encrypted_content of OpenAI's. It is as long as what it seals: of 474
// recorded blocks that have both, every signature has 232 chars and four for three bytes of the thought; the one
// recorded answer of OpenAI's that tells both figures agrees within 3 %. A token has four bytes, as English has. Of
// 118 recorded blocks with an empty thought, what their servers counted is this and a third more, as with all that
// the newest of Anthropic's models read.
func estimateSealed(raw []byte) int {
	tokens, run := 0, 0
	for i := 0; i <= len(raw); i++ {
		if i < len(raw) && base64Class[raw[i]] != 0 {
			run++
			continue
		}
		if run >= leastSealed {
			tokens += max(run-sealedFrame, 0) * 3 / 4 / 4
		}
		run = 0
	}
	return tokens
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
