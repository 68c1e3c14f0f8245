package vendorserver

import (
	"fmt"
	"net/http"
	"strings"
)

// googleWire is generateContent on the wire, in the shapes of the official SDK.
type googleWire struct{}

func (googleWire) validate(body []byte, o ValidateOptions) error {
	return ValidateGoogleRequest(body, o)
}

func (googleWire) overflow(tokens, window int) Error {
	return Error{
		Status: http.StatusBadRequest,
		Message: fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", tokens,
			window),
	}
}

// googleErrors are the vendor's names and words by status.
var googleErrors = map[int][2]string{
	400: {"INVALID_ARGUMENT", "Request contains an invalid argument."},
	401: {"UNAUTHENTICATED", "Request had invalid authentication credentials."},
	403: {"PERMISSION_DENIED", "Method doesn't allow unregistered callers."},
	404: {"NOT_FOUND", "models/unknown is not found for API version v1beta, or is not supported for generateContent."},
	413: {"INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."},
	429: {"RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."},
	500: {"INTERNAL", "An internal error has occurred."},
	503: {"UNAVAILABLE", "The model is overloaded. Please try again later."},
	504: {"DEADLINE_EXCEEDED", "The service is unable to finish processing within the deadline."},
}

func (googleWire) errorBody(e Error) []byte {
	words := known(googleErrors, e.Status, [2]string{"INVALID_ARGUMENT", "Invalid request"},
		[2]string{"INTERNAL", "An internal error has occurred."})
	name, message := words[0], words[1]
	if e.Type != "" {
		name = e.Type
	} else if e.Code != "" {
		name = e.Code
	}
	if e.Message != "" {
		message = e.Message
	}
	o := object{{"code", e.Status}, {"message", message}, {"status", name}}
	if e.Status == http.StatusTooManyRequests && e.RetryAfter != "" {
		// The vendor gives the wait in the body.
		o = append(o, field{
			"details",
			[]any{object{{"@type", "type.googleapis.com/google.rpc.RetryInfo"}, {"retryDelay", e.RetryAfter + "s"}}},
		})
	}
	return marshal(object{{"error", o}})
}

func (p googleWire) writeError(w http.ResponseWriter, e Error) {
	body := p.errorBody(e)
	e.RetryAfter = ""
	writeErrorBody(w, e, body)
}

func (p googleWire) errorEvent(e Error) []byte {
	if e.Status == 0 {
		e.Status = http.StatusServiceUnavailable
	}
	return data(p.errorBody(e))
}

func data(b []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", b) }

// finishReason translates a script's finish into the vendor's word; "" leaves it out.
func (googleWire) finishReason(a Answer) string {
	switch a.Finish {
	case "", "stop", "end_turn", "tool_use", "tool_calls":
		return "STOP"
	case "none":
		return ""
	case "length", "max_tokens":
		return "MAX_TOKENS"
	case "content_filter", "refusal":
		return "SAFETY"
	case "error":
		return "OTHER"
	}
	return strings.ToUpper(a.Finish)
}

func (googleWire) parts(a Answer) []any {
	var out []any
	for _, b := range a.blocks() {
		switch b.Type {
		case "thinking":
			o := object{{"text", b.Thinking}, {"thought", true}}
			out = append(out, o)
		case "tool_use":
			out = append(out, object{{"functionCall", object{{"name", b.Name}, {"args", inputOf(b)}}}})
		default:
			if b.Raw != nil {
				out = append(out, b.Raw)
			} else if b.Text != "" {
				out = append(out, object{{"text", b.Text}})
			}
		}
	}
	return out
}

func (googleWire) usage(u *Usage) any {
	input := u.Input + u.CachedInput + u.CacheWrite
	return object{
		{"promptTokenCount", input},
		{"candidatesTokenCount", u.Output},
		{"totalTokenCount", input + u.Output},
		{"cachedContentTokenCount", u.CachedInput},
	}
}

// piece is a response, or a piece of a streamed one.
func (p googleWire) piece(req Request, a Answer, parts []any, finish string, last bool) []byte {
	if a.Finish == "content_filter" || a.Finish == "refusal" {
		if a.Text == "" && len(a.Content) == 0 { // the prompt itself is blocked
			return marshal(object{
				{"promptFeedback", object{{"blockReason", "PROHIBITED_CONTENT"}}},
				{"modelVersion", req.Model},
				{"responseId", fmt.Sprintf("scripted-%d", req.N)},
			})
		}
	}
	candidate := object{}
	if parts != nil {
		candidate = append(candidate, field{"content", object{{"parts", parts}, {"role", "model"}}})
	}
	if finish != "" {
		candidate = append(candidate, field{"finishReason", finish})
	}
	candidate = append(candidate, field{"index", 0})
	out := object{{"candidates", []any{candidate}}}
	if last && a.Usage != nil {
		out = append(out, field{"usageMetadata", p.usage(a.Usage)})
	}
	return marshal(append(out, field{"modelVersion", req.Model},
		field{"responseId", fmt.Sprintf("scripted-%d", req.N)}))
}

func (p googleWire) whole(req Request, a Answer) []byte {
	return p.piece(req, a, p.parts(a), p.finishReason(a), true)
}

func (p googleWire) partial(req Request, text string, chunkChars int) [][]byte {
	return p.events(req, Answer{Text: text, Finish: "none"}, chunkChars)
}

func (p googleWire) events(req Request, a Answer, chunkChars int) [][]byte {
	var out [][]byte
	for _, b := range a.blocks() {
		text, thought := b.Text, false
		if b.Type == "thinking" {
			text, thought = b.Thinking, true
		}
		if b.Type == "tool_use" || text == "" {
			if parts := p.parts(Answer{Content: []Block{b}}); parts != nil {
				out = append(out, data(p.piece(req, a, parts, "", false)))
			}
			continue
		}
		for _, c := range chunks(text, chunkChars) {
			part := object{{"text", c}}
			if thought {
				part = append(part, field{"thought", true})
			}
			out = append(out, data(p.piece(req, a, []any{part}, "", false)))
		}
	}
	if a.Finish == "none" {
		return out // the stream ends without a final event
	}
	return append(out, data(p.piece(req, a, nil, p.finishReason(a), true)))
}
