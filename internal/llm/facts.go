package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"precis/pipeline"
)

// facts is what an error answer says, whatever it is wrapped in.
type facts struct {
	vendor string
	status int
	// json says that the body is, or holds, a JSON object.
	json bool
	// codes are the types, codes, statuses and exception names found, in lower case.
	codes []string
	// texts are the messages, as they came.
	texts []string
	// lower is all texts in lower case, one a line.
	lower string
	// innerStatus is an HTTP status that stands in the body.
	innerStatus int
	// retryDelay is what the body asks to wait.
	retryDelay time.Duration
	// counts are token figures that stand in fields of their own.
	counts map[string]int
}

// Bounds of the search in a body: an error is small, and a hostile one must not cost much.
const (
	maxErrorBytes   = 256 << 10
	maxErrorDepth   = 12
	maxErrorTexts   = 64
	maxEmbeddedTrys = 8
)

// readFacts reads a body of any shape: JSON, JSON inside of a JSON string, JSON after a sentence, server-sent
// events, HTML, plain text, nothing.
func readFacts(body []byte) *facts {
	f := &facts{counts: map[string]int{}}
	if len(body) > maxErrorBytes {
		body = body[:maxErrorBytes]
	}
	f.fromText(string(bytes.TrimSpace(body)), 0)
	f.lower = strings.ToLower(strings.Join(f.texts, "\n"))
	// Exception names that stand at the head of a sentence are codes too.
	for _, m := range reException.FindAllString(f.lower, 4) {
		f.addCode(m)
	}
	return f
}

var (
	reException = regexp.MustCompile(`\b[a-z]+(exception|_error|_exceeded|_exhausted)\b`)
	// reJSONStart finds an object or a list of objects: a bare "[1, 129024]" is part of a sentence.
	reJSONStart = regexp.MustCompile(`\{|\[\s*\{`)
	reTag       = regexp.MustCompile(`(?s)<(script|style)\b.*?</(script|style)>|<[^>]*>`)
	reHTML      = regexp.MustCompile(`(?i)^\s*<(!doctype|html|head|body|\?xml)`)
)

// fromText adds a text. JSON in it, from a first brace to the end of the value, is read as JSON.
func (f *facts) fromText(s string, depth int) {
	if s == "" || depth > maxErrorDepth || len(f.texts) >= maxErrorTexts {
		return
	}
	if reHTML.MatchString(s) {
		f.texts = append(f.texts, strings.Join(strings.Fields(html.UnescapeString(reTag.ReplaceAllString(s, " "))),
			" "))
		return
	}
	rest := s
	for range maxEmbeddedTrys {
		at := reJSONStart.FindStringIndex(rest)
		if at == nil {
			break
		}
		i := at[0]
		dec := json.NewDecoder(strings.NewReader(rest[i:]))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			rest = rest[i+1:]
			continue
		}
		if lead := strings.TrimSpace(rest[:i]); lead != "" {
			f.texts = append(f.texts, lead)
		}
		f.fromValue("", v, depth+1)
		rest = rest[i+int(dec.InputOffset()):]
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		f.texts = append(f.texts, rest)
	}
}

// fromValue adds what a JSON value says. key is the name under which it stands.
func (f *facts) fromValue(key string, v any, depth int) {
	if depth > maxErrorDepth || len(f.texts) >= maxErrorTexts {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		f.json = true
		for _, k := range sortedKeys(v) {
			f.fromValue(strings.ToLower(k), v[k], depth+1)
		}
	case []any:
		for _, e := range v {
			f.fromValue(key, e, depth+1)
		}
	case json.Number:
		f.fromNumber(key, v)
	case string:
		f.fromField(key, v, depth)
	}
}

// fromField adds a string by the name of its field. Fields that may echo the request are left alone.
func (f *facts) fromField(key, s string, depth int) {
	switch key {
	case "type", "code", "status", "error_code", "errorcode", "reason", "__type", "error_type":
		if key == "__type" {
			s = s[strings.LastIndex(s, "#")+1:] // AWS puts its namespace before it
		}
		if n, err := strconv.Atoi(s); err == nil {
			f.fromNumber(key, json.Number(strconv.Itoa(n)))
			return
		}
		if strings.ContainsAny(s, " {") {
			f.fromText(s, depth+1) // xAI has a sentence for a code
			return
		}
		f.addCode(s)
	case "message", "error", "msg", "detail", "details", "error_message", "errormessage", "raw", "description", "title",
		"error_description", "status_msg", "errors", "failed_generation", "body", "response", "":
		f.fromText(s, depth+1)
	case "retrydelay", "retry_after", "retry-after", "retryafter":
		if d, err := time.ParseDuration(s); err == nil && d > 0 {
			f.retryDelay = max(f.retryDelay, d)
		} else if n, err := strconv.ParseFloat(s, 64); err == nil {
			f.retryDelay = max(f.retryDelay, seconds(n))
		}
	}
}

func (f *facts) fromNumber(key string, n json.Number) {
	x, err := n.Float64()
	if err != nil {
		return
	}
	switch key {
	case "code", "status", "status_code", "statuscode", "http_status", "error_code":
		if x >= 400 && x < 600 {
			f.innerStatus = int(x)
		}
		f.addCode(n.String())
	case "retry_after", "retry-after", "retryafter", "retry_after_seconds":
		f.retryDelay = max(f.retryDelay, seconds(x))
	case "n_prompt_tokens", "n_ctx": // llama.cpp
		if x > 0 && x < 1e12 {
			f.counts[key] = int(x)
		}
	}
}

func (f *facts) addCode(s string) {
	s = strings.ToLower(strings.TrimSpace(s))
	if s != "" && len(s) <= 80 && !slices.Contains(f.codes, s) {
		f.codes = append(f.codes, s)
	}
}

// is reports whether any of the codes was given.
func (f *facts) is(codes ...string) bool {
	return slices.ContainsFunc(f.codes, func(c string) bool { return slices.Contains(codes, c) })
}

func (f *facts) says(re *regexp.Regexp) bool { return re.MatchString(f.lower) }

// bare says that there is no answer of a server's at all, only words.
func (f *facts) bare() bool { return f.status == 0 && !f.json }

// figureRules extract the sizes from a text in lower case: the group "a" is the actual size, "l" the limit.
// Where a text gives a sum with the answer's room, or "at least", no actual size is taken: it would be wrong.
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

// figures gives the sizes that an overflow names, 0 for what it does not.
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

// message is the sentence of the error.
func (f *facts) message(e *pipeline.Error) string {
	var b strings.Builder
	if f.vendor != "" {
		b.WriteString(f.vendor + ": ")
	}
	b.WriteString(kindSentences[e.Kind])
	switch {
	case e.ActualTokens > 0 && e.LimitTokens > 0:
		fmt.Fprintf(&b, ": %d of %d tokens", e.ActualTokens, e.LimitTokens)
	case e.LimitTokens > 0:
		fmt.Fprintf(&b, " of %d tokens", e.LimitTokens)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d", e.Status)
		if len(f.codes) > 0 {
			b.WriteString(", " + safeWord(f.codes[0]))
		}
		b.WriteString(")")
	}
	switch e.Kind {
	case pipeline.BadRequest, pipeline.ModelNotFound, pipeline.MalformedHistory, pipeline.Quota:
		if x := f.excerpt(); x != "" {
			b.WriteString(": " + x)
		}
	}
	return b.String()
}

var kindSentences = map[pipeline.ErrorKind]string{
	pipeline.InputTokensExceeded: "the request is over the model's limit",
	pipeline.InputTooLarge:       "the request has more bytes than the endpoint takes",
	pipeline.Refused:             "the request was declined by a content filter",
	pipeline.RateLimited:         "too many requests or tokens for now",
	pipeline.Overloaded:          "the service is overloaded",
	pipeline.ServerError:         "the service failed",
	pipeline.Network:             "no connection",
	pipeline.Timeout:             "no answer in time",
	pipeline.Cancelled:           "the call was cancelled",
	pipeline.Auth:                "the API key was not accepted, check the key and its rights",
	pipeline.Quota:               "the account has no credit or quota left",
	pipeline.ModelNotFound:       "no such model, check its name and the base URL",
	pipeline.BadRequest:          "the request was not accepted",
	pipeline.MalformedHistory:    "the shape of the request's messages was not accepted",
}

var (
	reLongQuote  = regexp.MustCompile("(?s)'[^']{32,}'?|\"[^\"]{32,}\"?|`[^`]{32,}`?")
	reInputValue = regexp.MustCompile(`(?is)[\[(,]?\s*input(_value)?\s*[=:].*$`)
	reSecret     = regexp.MustCompile(
		`(?i)\b(sk|pk|xai|gsk|key|aiza|hf|rk|sess)[-_][\w*.-]{6,}|aiza[\w-]{20,}|bearer\s+\S+|[\w-]{40,}`)
)

// maxExcerpt is the length of the vendor's own words in an error, in chars.
const maxExcerpt = 200

// excerpt is the beginning of the vendor's message, without what may be the request's own text: values
// that a validator echoes, long quotations, anything that looks like a key.
func (f *facts) excerpt() string {
	if len(f.texts) == 0 {
		return ""
	}
	s := f.texts[0]
	for _, t := range f.texts {
		if strings.ContainsRune(t, ' ') {
			s = t // the first sentence, before bare words
			break
		}
	}
	s, _, _ = strings.Cut(s, "\n")
	s = reInputValue.ReplaceAllString(s, "")
	s = reLongQuote.ReplaceAllString(s, "…")
	s = reSecret.ReplaceAllString(s, "…")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xFFFD {
			return ' '
		}
		return r
	}, s)
	return cutChars(strings.TrimSpace(s), maxExcerpt)
}

// cutChars cuts a text to n chars, the mark of the cut included.
func cutChars(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// safeWord keeps what a code may consist of.
func safeWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return -1
	}, s)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
