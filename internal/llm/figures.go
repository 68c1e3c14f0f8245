package llm

import (
	"regexp"
	"strconv"
	"strings"
)

// figureRules find the sizes in a text in lower case: group "a" is the actual size, "l" the limit. There is no actual
// size in a text that includes the room for the answer, or says "at least": it would be wrong.
var figureRules = []*regexp.Regexp{
	regexp.MustCompile(`(?P<a>\d[\d,_]*) tokens? > (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`exceed context limit: \d[\d,_]* \+ \d[\d,_]* > (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`maximum context length (?:is|of)(?: only)? (?P<l>\d[\d,_]*)(?: tokens)?.{0,` +
		`60}?(?:resulted in|requested about|you requested|contains) (?P<a>\d[\d,_]*)(?: tokens| \()`),
	regexp.MustCompile(`maximum prompt length is (?P<l>\d[\d,_]*).{0,40}?contains (?P<a>\d[\d,_]*) tokens`),
	regexp.MustCompile(
		`input token count \(?(?P<a>\d[\d,_]*)\)? exceeds the maximum number of tokens allowed \(?(?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`token limit:? (?P<l>\d[\d,_]*) \(requested:? (?P<a>\d[\d,_]*)`),
	regexp.MustCompile(`(?:prompt )?token count of (?P<a>\d[\d,_]*) exceeds the limit of (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`prompt contains (?P<a>\d[\d,_]*) tokens.{0,60}?with (?P<l>\d[\d,_]*) maximum context`),
	regexp.MustCompile(`current length is (?P<a>\d[\d,_]*) while limit is (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`cannot exceed (?P<l>\d[\d,_]*) - received (?P<a>\d[\d,_]*)`),
	regexp.MustCompile(`too long: (?P<a>\d[\d,_]*),.{0,20}maximum context length:? (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`limit (?P<l>\d[\d,_]*), requested (?P<a>\d[\d,_]*)`),
	regexp.MustCompile(`request \((?P<a>\d[\d,_]*) tokens\) exceeds.{0,40}?context size \((?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`\(length (?P<a>\d[\d,_]*)\) is longer than the maximum model length of (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`range of input length should be \[\d+, (?P<l>\d[\d,_]*)\]`),
	regexp.MustCompile(`(?:maximum|max|model's) (?:context|prompt|input)[ -]?(?:window|length|size) (?:is|of)(?: ` +
		`only)? (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`context (?:window|length|size|limit) (?:is|of)(?: only)? (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`must be <= (?P<l>\d[\d,_]*)`),
	regexp.MustCompile(`(?P<l>\d[\d,_]*) (?:token )?(?:maximum|max) (?:context|input|prompt)`),
}

// figures returns the sizes that an overflow names, 0 for one that it does not name.
func (f *facts) figures() (actual, limit int) {
	if n := f.counts["n_ctx"]; n > 0 {
		return f.counts["n_prompt_tokens"], n
	}
	for _, re := range figureRules {
		m := re.FindStringSubmatch(f.lower)
		if m == nil {
			continue
		}
		if i := re.SubexpIndex("a"); i > 0 {
			actual = number(m[i])
		}
		if i := re.SubexpIndex("l"); i > 0 {
			limit = number(m[i])
		}
		return actual, limit
	}
	return 0, 0
}

func number(s string) int {
	n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(s))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
