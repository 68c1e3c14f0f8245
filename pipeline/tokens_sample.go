package pipeline

import "unicode/utf8"

// runeStart returns at, or the beginning of the code point that contains it.
func runeStart(s string, at int) int {
	for back := at; back > 0 && back > at-utf8.UTFMax; back-- {
		if back >= len(s) || utf8.RuneStart(s[back]) {
			return min(back, len(s))
		}
	}
	return at
}

// The classes of bytes that weighText distinguishes.
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

// byteWeight is what a byte adds to weighText by its class and the class before it, in hundredths of a token: a new
// word, a change of case, a run of signs. Only the ratio between two texts matters, since the samples set the level, so
// that round figures are enough. They come from counting tokens of mixed transcripts.
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

// weighText returns a figure that grows as the tokens of a text do, in one pass.
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
