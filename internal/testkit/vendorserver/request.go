package vendorserver

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Request is one request that the server got.
type Request struct {
	// N is the number of the request, from 1.
	N int
	// At is the time at which it was read.
	At     time.Time
	Method string
	Path   string
	Header http.Header
	// Body is unchanged. That of Bedrock is converted to Anthropic's, with the model of the path.
	Body []byte
	// Type is the protocol: "anthropic", "openai", "openai-responses", "google", or "" for an unknown path.
	Type string
	// Native is the requested compaction of the vendor: "on_demand", "edit", "compact", or "".
	Native string
	// Model, Stream and MaxTokens are from the body; MaxTokens 0 is none.
	Model     string
	Stream    bool
	MaxTokens int
	// UsageWanted says that a streamed OpenAI answer is to end with its usage.
	UsageWanted bool
	// System is the text of the system prompt, in OpenAI's forms with all system messages.
	System string
	// Messages are the other messages, unchanged.
	Messages []json.RawMessage
	// LastUser is the text of the last message with role user.
	LastUser string
	// Text is all text in the request, one piece a line; images and other data are left out of it.
	Text string
	// Tokens is the size in tokens, as the server counts it.
	Tokens int
}

func parseRequest(r *http.Request, body []byte) Request {
	req := Request{At: time.Now(), Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	root := gjson.ParseBytes(body)
	req.Model = root.Get("model").String()
	req.Stream = root.Get("stream").Bool()
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/messages"):
		req.Type = "anthropic"
	case strings.HasSuffix(path, "/chat/completions"):
		req.Type = "openai"
	case strings.HasSuffix(path, "/responses"):
		req.Type = "openai-responses"
	case strings.HasSuffix(path, "/responses/compact"):
		req.Type, req.Native = "openai-responses", "compact"
	case strings.Contains(path, "/models/") &&
		(strings.HasSuffix(path, ":streamGenerateContent") || strings.HasSuffix(path, ":generateContent")):
		req.Type = "google"
		_, model, _ := strings.Cut(path, "/models/")
		req.Model, _, _ = strings.Cut(model, ":")
		req.Stream = strings.HasSuffix(path, ":streamGenerateContent") && r.URL.Query().Get("alt") == "sse"
	}
	if req.Type == "anthropic" {
		edit := root.Get(`context_management.edits.#(type=="compact_20260112")`)
		switch {
		case root.Get("compaction").IsObject():
			req.Native = "on_demand"
		case edit.Get("pause_after_compaction").Bool():
			req.Native = "edit"
		}
	}
	req.UsageWanted = root.Get("stream_options.include_usage").Bool()
	for _, at := range []string{
		"max_completion_tokens", "max_tokens", "max_output_tokens",
		"generationConfig.maxOutputTokens",
	} {
		if req.MaxTokens == 0 {
			req.MaxTokens = int(root.Get(at).Int())
		}
	}
	req.read(root)
	return req
}

// read extracts the texts of a request.
func (req *Request) read(root gjson.Result) {
	var all, system []string
	for _, at := range []string{"system", "instructions", "systemInstruction.parts", "system_instruction.parts"} {
		if s := root.Get(at); s.Exists() {
			system = appendText(system, s)
		}
	}
	messages := root.Get("messages")
	switch req.Type {
	case "openai-responses":
		messages = root.Get("input")
		if messages.Type == gjson.String {
			req.LastUser = messages.String()
			all = append(all, req.LastUser)
		}
	case "google":
		messages = root.Get("contents")
	}
	messages.ForEach(func(_, m gjson.Result) bool {
		if !m.IsObject() {
			return false
		}
		content := m.Get("content")
		if req.Type == "google" {
			content = m.Get("parts")
		}
		switch m.Get("role").String() {
		case "system", "developer":
			if strings.HasPrefix(req.Type, "openai") {
				system = appendText(system, content)
				return true
			}
		case "user":
			req.LastUser = strings.Join(appendText(nil, content), "\n")
		}
		req.Messages = append(req.Messages, json.RawMessage(m.Raw))
		all = appendText(all, content)
		m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
			all = append(all, c.Get("function.name").String(), c.Get("function.arguments").String())
			return true
		})
		for _, at := range []string{"name", "arguments", "output", "encrypted_content"} { // items of the Responses API
			if v := m.Get(at); v.Exists() {
				all = appendText(all, v)
			}
		}
		return true
	})
	req.System = strings.Join(system, "\n")
	all = append(system, all...)
	if tools := root.Get("tools"); tools.Exists() {
		all = append(all, tools.Raw)
	}
	req.Text = strings.Join(all, "\n")
}

// appendText adds the texts of a content: a string, or blocks.
func appendText(to []string, content gjson.Result) []string {
	if content.Type == gjson.String {
		return append(to, content.String())
	}
	content.ForEach(func(_, b gjson.Result) bool {
		for _, key := range []string{"text", "thinking", "name"} {
			if t := b.Get(key); t.Type == gjson.String {
				to = append(to, t.String())
			}
		}
		for _, key := range []string{"input", "functionCall", "functionResponse"} {
			if in := b.Get(key); in.Exists() {
				to = append(to, in.Raw)
			}
		}
		if c := b.Get("content"); c.Exists() {
			to = appendText(to, c)
		}
		return true
	})
	return to
}
