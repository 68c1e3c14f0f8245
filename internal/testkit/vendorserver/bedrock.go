package vendorserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// fromBedrock converts a request of InvokeModel or InvokeModelWithResponseStream to one of the Anthropic API, with the
// values of the path and the body in the body and the headers. The returned writer converts the answer back. Any other
// request is returned unchanged.
func fromBedrock(w http.ResponseWriter, r *http.Request, body []byte) (http.ResponseWriter, *http.Request, []byte) {
	path, ok := strings.CutPrefix(r.URL.Path, "/model/")
	model, method, found := cutLast(path, "/")
	if !ok || !found || (method != "invoke" && method != "invoke-with-response-stream") || !gjson.ValidBytes(body) {
		return w, r, body
	}
	if name, err := url.PathUnescape(model); err == nil {
		model = name
	}
	r = r.Clone(r.Context())
	r.URL.Path = "/v1/messages"
	r.Header.Set("Anthropic-Version", gjson.GetBytes(body, "anthropic_version").String())
	for _, beta := range gjson.GetBytes(body, "anthropic_beta").Array() {
		r.Header.Add("Anthropic-Beta", beta.String())
	}
	r.Header.Set("Anthropic-Beta", strings.Join(r.Header.Values("Anthropic-Beta"), ","))
	for _, key := range []string{"anthropic_version", "anthropic_beta"} {
		body, _ = sjson.DeleteBytes(body, key) // it is valid JSON
	}
	body, _ = sjson.SetBytes(body, "model", model)
	if method != "invoke" {
		body, _ = sjson.SetBytes(body, "stream", true)
	}
	return &bedrockWriter{ResponseWriter: w}, r, body
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// bedrockErrors are Bedrock's names and statuses for those of Anthropic, from its API reference.
var bedrockErrors = map[int]struct {
	status int
	name   string
}{
	400: {400, "ValidationException"},
	401: {403, "UnrecognizedClientException"},
	402: {403, "AccessDeniedException"},
	403: {403, "AccessDeniedException"},
	404: {404, "ResourceNotFoundException"},
	413: {413, "RequestEntityTooLargeException"},
	429: {429, "ThrottlingException"},
	500: {500, "InternalServerException"},
	504: {408, "ModelTimeoutException"},
	529: {503, "ServiceUnavailableException"},
}

// bedrockWriter converts an answer of the Anthropic API to Bedrock's: an error has its name in a header, and a stream
// consists of binary frames, each with one event in base64.
type bedrockWriter struct {
	http.ResponseWriter
	begun, stream, failed bool
	rest                  []byte
}

// WriteHeader adds the name of an error.
func (w *bedrockWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun = true
	h := w.Header()
	switch e, known := bedrockErrors[status]; {
	case status >= 400 && known:
		status, w.failed = e.status, true
		h.Set("X-Amzn-Errortype", e.name+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	case status >= 400:
		w.failed = true
	case strings.HasPrefix(h.Get("Content-Type"), "text/event-stream"):
		w.stream = true
		h.Set("Content-Type", "application/vnd.amazon.eventstream")
	}
	h.Set("X-Amzn-Requestid", "req_scripted")
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a frame for each complete event and keeps the rest for the next call.
func (w *bedrockWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.failed:
		_, err := w.ResponseWriter.Write(bedrockError(p))
		return len(p), err
	case !w.stream:
		return w.ResponseWriter.Write(p)
	}
	w.rest = append(w.rest, p...)
	for {
		event, rest, whole := bytes.Cut(w.rest, []byte("\n\n"))
		if !whole {
			return len(p), nil
		}
		w.rest = rest
		for line := range bytes.Lines(event) {
			data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("data: "))
			if !ok {
				continue
			}
			if err := eventstream.NewEncoder().Encode(w.ResponseWriter, frame(data)); err != nil {
				return 0, fmt.Errorf("writing a frame: %w", err)
			}
		}
	}
}

// Flush sends what was written.
func (w *bedrockWriter) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the next write reports an error
}

// bedrockError is the body of an error, its message alone.
func bedrockError(body []byte) []byte {
	return marshal(object{{"message", gjson.GetBytes(body, "error.message").String()}})
}

// frame is one event of the stream; an error becomes an exception.
func frame(data []byte) eventstream.Message {
	header := func(kind, nameKey, name string) (h eventstream.Headers) {
		h.Set(eventstreamapi.MessageTypeHeader, eventstream.StringValue(kind))
		h.Set(nameKey, eventstream.StringValue(name))
		h.Set(":content-type", eventstream.StringValue("application/json"))
		return h
	}
	if gjson.GetBytes(data, "type").String() == "error" {
		names := map[string]string{
			"overloaded_error": "serviceUnavailableException",
			"rate_limit_error": "throttlingException", "invalid_request_error": "validationException",
		}
		name, known := names[gjson.GetBytes(data, "error.type").String()]
		if !known {
			name = "internalServerException"
		}
		return eventstream.Message{Headers: header(eventstreamapi.ExceptionMessageType,
			eventstreamapi.ExceptionTypeHeader, name), Payload: bedrockError(data)}
	}
	payload, _ := json.Marshal(struct {
		Bytes []byte `json:"bytes"` // base64, as JSON has bytes
		P     string `json:"p"`
	}{data, "abcdefgh"})
	return eventstream.Message{Headers: header(eventstreamapi.EventMessageType, eventstreamapi.EventTypeHeader,
		"chunk"), Payload: payload}
}
