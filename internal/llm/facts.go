package llm

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// facts is what an error answer says, whatever it is wrapped in.
type facts struct {
	vendor string
	status int
	// json is true when the body is, or contains, a JSON object.
	json bool
	// codes are the types, codes, statuses and exception names found, in lower case.
	codes []string
	// texts are the messages as received.
	texts []string
	// lower is all texts in lower case, one a line.
	lower string
	// innerStatus is an HTTP status in the body.
	innerStatus int
	// retryDelay is how long the body asks to wait.
	retryDelay time.Duration
	// counts are token figures in fields of their own.
	counts map[string]int
}

// Limits of the search in a body: an error is small, and a hostile one must not cost much.
const (
	maxErrorBytes    = 256 << 10
	maxErrorDepth    = 12
	maxErrorTexts    = 64
	maxEmbeddedTries = 8
)

// readFacts reads a body of any shape: JSON, JSON in a JSON string, JSON after a sentence, server-sent events, HTML,
// plain text, nothing.
func readFacts(body []byte) *facts {
	f := &facts{counts: map[string]int{}}
	if len(body) > maxErrorBytes {
		body = body[:maxErrorBytes]
	}
	f.fromText(string(bytes.TrimSpace(body)), 0)
	f.lower = strings.ToLower(strings.Join(f.texts, "\n"))
	// Exception names at the beginning of a sentence are codes too.
	for _, m := range exceptionName.FindAllString(f.lower, 4) {
		f.addCode(m)
	}
	return f
}

var (
	exceptionName = regexp.MustCompile(`\b[a-z]+(exception|_error|_exceeded|_exhausted)\b`)
	// jsonStart matches the beginning of an object or a list of objects: a bare "[1, 129024]" is part of a sentence.
	jsonStart = regexp.MustCompile(`\{|\[\s*\{`)
	htmlTag   = regexp.MustCompile(`(?s)<(script|style)\b.*?</(script|style)>|<[^>]*>`)
	htmlStart = regexp.MustCompile(`(?i)^\s*<(!doctype|html|head|body|\?xml)`)
)

// fromText adds a text. JSON in it, from a first brace to the end of the value, is read as JSON.
func (f *facts) fromText(s string, depth int) {
	if s == "" || depth > maxErrorDepth || len(f.texts) >= maxErrorTexts {
		return
	}
	if htmlStart.MatchString(s) {
		f.texts = append(f.texts, strings.Join(strings.Fields(html.UnescapeString(htmlTag.ReplaceAllString(s, " "))),
			" "))
		return
	}
	rest := s
	for range maxEmbeddedTries {
		at := jsonStart.FindStringIndex(rest)
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

// fromValue adds what a JSON value says. key is its name.
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

// fromField adds a string by the name of its field. Fields that may echo the request are skipped.
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
			f.fromText(s, depth+1) // xAI uses a sentence as a code
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

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
