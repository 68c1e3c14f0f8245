package llm

import (
	"fmt"
	"regexp"
	"strings"

	"precis/pipeline"
)

// message returns the sentence of the error.
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
	longQuote  = regexp.MustCompile("(?s)'[^']{32,}'?|\"[^\"]{32,}\"?|`[^`]{32,}`?")
	inputValue = regexp.MustCompile(`(?is)[\[(,]?\s*input(_value)?\s*[=:].*$`)
	secretLike = regexp.MustCompile(
		`(?i)\b(sk|pk|xai|gsk|key|aiza|hf|rk|sess)[-_][\w*.-]{6,}|aiza[\w-]{20,}|bearer\s+\S+|[\w-]{40,}`)
)

// maxExcerpt limits the vendor's own words in an error, in chars.
const maxExcerpt = 200

// excerpt returns the beginning of the vendor's message without anything that may be text of the request: values that a
// validator echoes, long quotations, anything that looks like a key.
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
	s = inputValue.ReplaceAllString(s, "")
	s = longQuote.ReplaceAllString(s, "…")
	s = secretLike.ReplaceAllString(s, "…")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xFFFD {
			return ' '
		}
		return r
	}, s)
	return cutChars(strings.TrimSpace(s), maxExcerpt)
}

// cutChars cuts a text to n chars, including the mark of the cut.
func cutChars(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// safeWord keeps the characters that a code may have.
func safeWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return -1
	}, s)
}
