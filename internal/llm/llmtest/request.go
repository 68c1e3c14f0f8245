package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Request is one request that the server got.
type Request struct {
	// N is its number, from 1.
	N int
	// At is when it had been read.
	At     time.Time
	Method string
	Path   string
	Header http.Header
	// Body is as it came.
	Body []byte
	// Type is the protocol: "anthropic", "openai", or "" for an unknown path.
	Type string
	// Model, Stream and MaxTokens are from the body; MaxTokens 0 is none.
	Model     string
	Stream    bool
	MaxTokens int
	// UsageWanted says that a streamed OpenAI answer is to end with its usage.
	UsageWanted bool
	// System is the text of the system prompt, in OpenAI's form of all system messages.
	System string
	// Messages are the other messages, as they came.
	Messages []json.RawMessage
	// LastUser is the text of the last message with role user.
	LastUser string
	// Text is all text in the request, one piece a line; images and other data are left out of it.
	Text string
	// Tokens is the size by the server's count.
	Tokens int
}

func parseRequest(r *http.Request, body []byte) Request {
	req := Request{At: time.Now(), Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		req.Type = "anthropic"
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		req.Type = "openai"
	}
	root := gjson.ParseBytes(body)
	req.Model = root.Get("model").String()
	req.Stream = root.Get("stream").Bool()
	req.UsageWanted = root.Get("stream_options.include_usage").Bool()
	if req.MaxTokens = int(root.Get("max_completion_tokens").Int()); req.MaxTokens == 0 {
		req.MaxTokens = int(root.Get("max_tokens").Int())
	}

	var all, system []string
	if s := root.Get("system"); s.Exists() {
		system = appendText(system, s)
	}
	root.Get("messages").ForEach(func(_, m gjson.Result) bool {
		switch m.Get("role").String() {
		case "system", "developer":
			if req.Type == "openai" {
				system = appendText(system, m.Get("content"))
				return true
			}
		case "user":
			req.LastUser = strings.Join(appendText(nil, m.Get("content")), "\n")
		}
		req.Messages = append(req.Messages, json.RawMessage(m.Raw))
		all = appendText(all, m.Get("content"))
		m.Get("tool_calls").ForEach(func(_, c gjson.Result) bool {
			all = append(all, c.Get("function.name").String(), c.Get("function.arguments").String())
			return true
		})
		return true
	})
	req.System = strings.Join(system, "\n")
	all = append(system, all...)
	if tools := root.Get("tools"); tools.Exists() {
		all = append(all, tools.Raw)
	}
	req.Text = strings.Join(all, "\n")
	return req
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
		if in := b.Get("input"); in.Exists() {
			to = append(to, in.Raw)
		}
		if c := b.Get("content"); c.Exists() {
			to = appendText(to, c)
		}
		return true
	})
	return to
}
