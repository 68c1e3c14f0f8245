package transcript

import (
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// The chat-completions API of OpenAI, and of all servers that speak it:
// https://platform.openai.com/docs/api-reference/chat. The wrappers of agents around such messages are in
// openai_wrappers.go.

type openAICodec struct{}

func (openAICodec) Format() Format { return OpenAI }

func (openAICodec) Decode(native []byte) (pipeline.Message, error) {
	if err := rawjson.Check(native); err != nil {
		return pipeline.Message{}, parseError(OpenAI, "%v", err)
	}
	return decodeOpenAI(native)
}

// decodeOpenAI decodes a message that is known to be sound JSON.
func decodeOpenAI(native []byte) (pipeline.Message, error) {
	l, err := openAILayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	switch l.role {
	case "developer":
		m.Role = pipeline.RoleSystem
	case "function":
		m.Role = pipeline.RoleTool
	}
	return m, nil
}

func (openAICodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := rawjson.Check(m.Native); err != nil {
		return nil, parseError(OpenAI, "%v", err)
	}
	l, err := openAILayout(m.Native)
	if err != nil {
		return nil, err
	}
	// The arguments of a call are a string to this API, whatever stands in it.
	return l.edit(edits, func(_ node, text string) ([]byte, error) { return rawjson.Quote(text), nil })
}

func (openAICodec) Make(m pipeline.Made) ([]byte, error) {
	b := fmt.Appendf(nil, `{"role":%s`, rawjson.Quote(string(m.Role)))
	if m.Role == pipeline.RoleTool {
		b = fmt.Appendf(b, `,"tool_call_id":%s`, rawjson.Quote(m.CallID))
	} else if strings.TrimSpace(m.Text) == "" {
		return nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	return fmt.Appendf(b, `,"content":%s}`, rawjson.Quote(m.Text)), nil
}

// openAILayout reads {"role":…,"content":…,"tool_calls":…,"tool_call_id":…}, sound JSON.
func openAILayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	v := rawjson.Root(native)
	if !v.IsObject() {
		return nil, parseError(OpenAI, "it is no object")
	}
	var content, reasoning, refusal, calls, callID, name, function rawjson.Value
	var pairs []rawjson.Value
	var at struct{ reasoning, refusal, calls, function int }
	for key, f := range v.Fields() {
		switch string(key) {
		case "role":
			l.role = f.Value.Text()
		case "content":
			content = f.Value
		case "reasoning_content", "reasoning":
			reasoning, at.reasoning = f.Value, len(pairs)
		case "refusal":
			refusal, at.refusal = f.Value, len(pairs)
		case "tool_calls":
			calls, at.calls = f.Value, len(pairs)
		case "function_call":
			function, at.function = f.Value, len(pairs)
		case "tool_call_id":
			callID = f.Value
		case "name":
			name = f.Value
		}
		pairs = append(pairs, f.Pair)
	}
	switch l.role {
	case "system", "developer", "user", "assistant":
	case "tool", "function":
		n, err := l.openAIResult(content, callID.Text(), name.Text(), v)
		if err != nil {
			return nil, err
		}
		l.nodes = []node{n}
		return l, nil
	case "":
		return nil, parseError(OpenAI, "it has no role")
	default:
		return nil, parseError(OpenAI, "its role is not system, developer, user, assistant, tool or function")
	}
	members := l.addList(newList(pairs))
	if s := reasoning.Text(); s != "" {
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: reasoning.Raw()},
			list: members, index: at.reasoning,
		})
	}
	nodes, err := l.openAIContent(content, "null")
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, nodes...)
	if s := refusal.Text(); s != "" {
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartText, Type: "refusal", Text: s, Raw: refusal.Raw()},
			list: members, index: at.refusal, value: refusal, block: true,
		})
	}
	if calls.IsArray() {
		els := calls.Elements()
		row := l.addList(list{siblings: els, whole: calls, parent: members, parentIndex: at.calls})
		for i, el := range els {
			n, err := l.openAICall(el)
			if err != nil {
				return nil, err
			}
			n.list, n.index = row, i
			l.nodes = append(l.nodes, n)
		}
	}
	if function.IsObject() {
		n := l.openAIFunction(function, function)
		n.list, n.index = members, at.function
		l.nodes = append(l.nodes, n)
	}
	return l, nil
}

// openAIContent reads a content: a string, an array of parts, or nothing. vacant is what it turns into when all
// of it is dropped.
func (l *layout) openAIContent(v rawjson.Value, vacant string) ([]node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()},
			list: -1, value: v, vacant: vacant, block: true,
		}}, nil
	case rawjson.Array:
		els := v.Elements()
		row := l.addList(list{siblings: els, whole: v, vacant: vacant, parent: -1})
		nodes := make([]node, 0, len(els))
		for i, el := range els {
			n, err := l.openAIPart(el)
			if err != nil {
				return nil, err
			}
			n.list, n.index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	}
	return nil, parseError(OpenAI, "its content is neither a string nor an array of parts")
}

// openAIPart reads one part of a content array.
func (l *layout) openAIPart(v rawjson.Value) (node, error) {
	if v.IsString() {
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, value: v,
			block: true,
		}, nil
	}
	if !v.IsObject() {
		return node{}, parseError(OpenAI, "a part of its content is no object")
	}
	var typ, txt, refusal, image, audio, file rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ},
		{"text", &txt},
		{"refusal", &refusal},
		{"image_url", &image},
		{"input_audio", &audio},
		{"file", &file},
	})
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Type: typ.Text(), Raw: v.Raw()}}
	p := &n.part
	switch p.Type {
	case "text", "refusal":
		if p.Type == "refusal" {
			txt = refusal
		}
		if s, ok := txt.Str(); ok {
			p.Kind, p.Text, n.value = pipeline.PartText, s, txt
		}
	case "image_url":
		p.Kind = pipeline.PartImage
		url := image // older clients give the address itself
		if image.IsObject() {
			url, _ = image.Lookup("url")
		}
		fromDataURL(p, url.Text())
	case "input_audio":
		p.Kind = pipeline.PartFile
		if audio.IsObject() {
			if format := audio.Get("format").Text(); format != "" {
				p.MediaType = "audio/" + format
			}
			binaryPart(p, audio.Get("data").Text())
		}
	case "file":
		p.Kind = pipeline.PartFile
		if file.IsObject() {
			p.Name = file.Get("filename").Text()
			data := file.Get("file_data").Text()
			if strings.HasPrefix(data, "data:") {
				fromDataURL(p, data)
			} else {
				binaryPart(p, data)
			}
		}
	}
	return n, nil
}

func fromDataURL(p *pipeline.Part, url string) {
	mediaType, data, ok := dataURL(url)
	if !ok {
		return
	}
	p.MediaType = mediaType
	binaryPart(p, data)
}

// openAIResult reads a message of role tool, which is one result as a whole.
func (l *layout) openAIResult(content rawjson.Value, callID, name string, v rawjson.Value) (node, error) {
	nodes, err := l.openAIContent(content, `""`)
	if err != nil {
		return node{}, err
	}
	return node{
		part: pipeline.Part{Kind: pipeline.PartToolResult, CallID: callID, Name: name},
		list: -1, value: content, insert: v.End() - 1, content: nodes,
	}, nil
}

// openAICall reads one entry of tool_calls.
func (l *layout) openAICall(v rawjson.Value) (node, error) {
	if !v.IsObject() {
		return node{}, parseError(OpenAI, "a tool call is no object")
	}
	var inner rawjson.Value
	var id, typ string
	for key, f := range v.Fields() {
		switch string(key) {
		case "id":
			id = f.Value.Text()
		case "type":
			typ = f.Value.Text()
		case "function", "custom":
			inner = f.Value
		}
	}
	n := l.openAIFunction(v, inner)
	n.part.CallID, n.part.Type = id, typ
	return n, nil
}

// openAIFunction reads the name and the arguments (or the input of a custom tool) at v.
func (l *layout) openAIFunction(raw, v rawjson.Value) node {
	n := node{part: pipeline.Part{Kind: pipeline.PartToolCall, Raw: raw.Raw()}}
	if !v.IsObject() {
		return n
	}
	for key, f := range v.Fields() {
		switch string(key) {
		case "name":
			n.part.Name = f.Value.Text()
		case "arguments", "input":
			n.value = f.Value
			n.part.Input = f.Value.Text()
			if f.Value.IsObject() { // some servers send the object itself
				n.part.Input = string(f.Value.Raw())
			}
		}
	}
	return n
}

func detectOpenAI(s rawjson.Outline) bool {
	for _, at := range []string{
		"messages", "", "[].traj", "history", "request_params.messages", "[].messages",
		"[].request.messages",
	} {
		if hasMessages(s, at) {
			return true
		}
	}
	// What comes first may be all that is seen: the wrapper's own, or a request whose messages come late.
	return s.Has("trajectory[].action", "[].traj", "tools[].function.parameters") ||
		s.Has("messages") && s.Has("model") && !s.Has("messages[].role")
}

// openAIRequest reads the facts of a request object.
func openAIRequest(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "openai"
	for key, f := range v.Fields() {
		switch string(key) {
		case "model":
			m.Model = f.Value.Text()
		case "tools":
			m.Tools = f.Value.Present()
		case "max_tokens", "max_completion_tokens":
			m.MaxTokens = f.Value.Count()
		}
	}
}

// openAIAnswer makes a completion object into the message that the next request would hold.
func openAIAnswer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	usage := openAIUsage(v)
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
	native, _ := tidy(message.Raw())
	if m, err := (openAICodec{}).Decode(native); err != nil || len(m.Parts) == 0 {
		return nil, nil
	}
	return [][]byte{native}, usage
}

// openAIUsage reads the usage of a completion object, nil when it has none.
func openAIUsage(v rawjson.Value) *Usage {
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

// What a message of a request may hold. Everything else in a recorded message is the recorder's.
var (
	messageKeys = []string{
		"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio",
		"reasoning_content",
	}
	callKeys = []string{"id", "type", "function", "custom"}
)

// tidy cuts out of a recorded message what no request holds: keys of the recorder, keys that are null, the cache
// marks of LiteLLM, and the place of a call in a stream. It gives the message and the keys that went.
func tidy(native []byte) ([]byte, []string) {
	v := rawjson.Root(native)
	var all []rawjson.Splice
	var gone []string
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
					gone = append(gone, key+"[]."+k)
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
	native = fillContent(native)
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
	return out, append(gone, keys...)
}

// fillContent puts what a request may hold in the place of an empty array of parts.
func fillContent(native []byte) []byte {
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
