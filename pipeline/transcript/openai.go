package transcript

import (
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/openai"
)

// The chat-completions API of OpenAI, and of all servers that speak it:
// https://platform.openai.com/docs/api-reference/chat. The wrappers of agents around such messages are in
// openai_wrappers.go.

type openAIChat struct{}

func (openAIChat) name() Format { return OpenAI }

// read reads {"role":…,"content":…,"tool_calls":…,"tool_call_id":…}, valid JSON.
func (openAIChat) read(l *layout.Layout) error { return openai.Read(l) }

func (openAIChat) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	switch l.Role {
	case "developer":
		m.Role = pipeline.RoleSystem
	case "function":
		m.Role = pipeline.RoleTool
	}
	return m
}

func (openAIChat) Make(m pipeline.Made) ([]byte, error) {
	b := fmt.Appendf(nil, `{"role":%s`, rawjson.Quote(string(m.Role)))
	if m.Role == pipeline.RoleTool {
		b = fmt.Appendf(b, `,"tool_call_id":%s`, rawjson.Quote(m.CallID))
	} else if strings.TrimSpace(m.Text) == "" {
		return nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	return fmt.Appendf(b, `,"content":%s}`, rawjson.Quote(m.Text)), nil
}

func (openAIChat) detect(s rawjson.Outline) bool {
	for _, at := range messageArrays {
		if hasMessages(s, at) {
			return true
		}
	}
	// The outline may end before the messages: it may have only keys of the wrapper, or of a request.
	return s.Has("trajectory[].action", "[].traj", "tools[].function.parameters") ||
		s.Has("messages") && s.Has("model") && !s.Has("messages[].role")
}

// request reads model, tools and limits of a request object.
func (openAIChat) request(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "openai"
	for key, field := range v.Fields() {
		switch string(key) {
		case "model":
			m.Model = field.Value.Text()
		case "tools":
			m.Tools = field.Value.Present()
		case "max_tokens", "max_completion_tokens":
			m.MaxTokens = field.Value.Count()
		}
	}
}

// answer makes a completion object into the message that the next request would contain.
func (f openAIChat) answer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	usage := f.usage(v)
	choices, ok := v.Lookup("choices")
	if !ok || !choices.IsArray() {
		return nil, nil
	}
	els := choices.Elements()
	if len(els) == 0 {
		return nil, nil
	}
	message, ok := els[0].Lookup("message")
	if !ok || !message.IsObject() {
		return nil, nil
	}
	native, _ := f.tidy(message.Raw())
	if m, err := (Codec{openAIChat{}}).Decode(native); err != nil || len(m.Parts) == 0 {
		return nil, nil
	}
	return [][]byte{native}, usage
}

// usage reads the usage of a completion object, nil when it has none.
func (openAIChat) usage(v rawjson.Value) *Usage {
	at, ok := v.Lookup("usage")
	if !ok || !at.IsObject() {
		return nil
	}
	u := Usage{Model: v.Get("model").Text()}
	prompt := at.Get("prompt_tokens").Count()
	u.Output = at.Get("completion_tokens").Count()
	if details, ok := at.Lookup("prompt_tokens_details"); ok {
		u.CacheRead = details.Get("cached_tokens").Count()
	}
	u.Input = max(prompt-u.CacheRead, 0)
	if u.Used = at.Get("total_tokens").Count(); u.Used == 0 {
		u.Used = prompt + u.Output
	}
	if u.Used == 0 {
		return nil
	}
	return &u
}

// The keys that a message of a request may have. All other keys of a recorded message are from the recorder.
var (
	messageKeys = []string{
		"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio",
		"reasoning_content",
	}
	callKeys = []string{"id", "type", "function", "custom"}
)

// tidy removes from a recorded message what a request cannot have: keys of the recorder, keys that are null, the
// cache marks of LiteLLM, and the index of a call in a stream. It returns the message and the removed keys.
func (f openAIChat) tidy(native []byte) ([]byte, []string) {
	v := rawjson.Root(native)
	var all []rawjson.Splice
	var dropped []string
	inner := func(key string, short func(rawjson.Value) ([]byte, []string)) {
		list, ok := v.Lookup(key)
		if !ok || !list.IsArray() {
			return
		}
		for _, el := range list.Elements() {
			if !el.IsObject() {
				continue
			}
			if b, keys := short(el); len(keys) > 0 {
				all = append(all, el.Replace(b))
				for _, k := range keys {
					dropped = append(dropped, key+"[]."+k)
				}
			}
		}
	}
	inner("tool_calls", func(el rawjson.Value) ([]byte, []string) { return el.KeepKeys(callKeys...) })
	inner("content", func(el rawjson.Value) ([]byte, []string) {
		return el.DropKeys(func(key string, _ rawjson.Value) bool { return key == "cache_control" })
	})
	if len(all) > 0 {
		native = rawjson.Apply(native, all...)
	}
	native = f.fillContent(native)
	out, keys := rawjson.Root(native).DropKeys(func(key string, value rawjson.Value) bool {
		switch {
		case key == "content": // may be null beside calls
			return false
		case value.IsNull():
			return true
		case key == "tool_calls" && value.IsArray():
			return value.IsEmpty()
		}
		return !slices.Contains(messageKeys, key)
	})
	return out, append(dropped, keys...)
}

// fillContent replaces an empty array of parts with a content that a request may have.
func (openAIChat) fillContent(native []byte) []byte {
	v := rawjson.Root(native)
	content, ok := v.Lookup("content")
	if !ok || !content.IsArray() || !content.IsEmpty() {
		return native
	}
	vacant := `""`
	if calls, ok := v.Lookup("tool_calls"); ok && calls.IsArray() {
		vacant = "null"
	}
	return content.With([]byte(vacant))
}
