package transcript

import (
	"slices"
	"strings"

	"precis/pipeline"
)

// The chat-completions API of OpenAI, and of all servers that speak it:
// https://platform.openai.com/docs/api-reference/chat. The wrappers of agents around such messages are in
// openai_wrappers.go.

type openAICodec struct{}

func (openAICodec) Format() Format { return OpenAI }

func (openAICodec) Decode(native []byte) (pipeline.Message, error) {
	if err := whole(native); err != nil {
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
	if err := whole(m.Native); err != nil {
		return nil, parseError(OpenAI, "%v", err)
	}
	l, err := openAILayout(m.Native)
	if err != nil {
		return nil, err
	}
	// The arguments of a call are a string to this API, whatever stands in it.
	return l.edit(edits, func(_ node, text string) ([]byte, error) { return quote(text), nil })
}

func (openAICodec) Make(m pipeline.Made) ([]byte, error) {
	b := append([]byte(`{"role":`), quote(string(m.Role))...)
	if m.Role == pipeline.RoleTool {
		b = append(append(b, `,"tool_call_id":`...), quote(m.CallID)...)
	} else if strings.TrimSpace(m.Text) == "" {
		return nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	b = append(append(b, `,"content":`...), quote(m.Text)...)
	return append(b, '}'), nil
}

// openAILayout reads {"role":…,"content":…,"tool_calls":…,"tool_call_id":…}, sound JSON.
func openAILayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(OpenAI, "it is no object")
	}
	var content, reasoning, refusal, calls, callID, name, function span
	var pairs []span
	var at struct{ reasoning, refusal, calls, function int }
	for key, f := range fields(b, v) {
		switch string(key) {
		case "role":
			l.role = text(b, f.value)
		case "content":
			content = f.value
		case "reasoning_content", "reasoning":
			reasoning, at.reasoning = f.value, len(pairs)
		case "refusal":
			refusal, at.refusal = f.value, len(pairs)
		case "tool_calls":
			calls, at.calls = f.value, len(pairs)
		case "function_call":
			function, at.function = f.value, len(pairs)
		case "tool_call_id":
			callID = f.value
		case "name":
			name = f.value
		}
		pairs = append(pairs, f.pair)
	}
	switch l.role {
	case "system", "developer", "user", "assistant":
	case "tool", "function":
		n, err := l.openAIResult(content, text(b, callID), text(b, name), v)
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
	if s := text(b, reasoning); s != "" {
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: reasoning.of(b)},
			list: members, index: at.reasoning,
		})
	}
	nodes, err := l.openAIContent(content, "null")
	if err != nil {
		return nil, err
	}
	l.nodes = append(l.nodes, nodes...)
	if s := text(b, refusal); s != "" {
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartText, Type: "refusal", Text: s, Raw: refusal.of(b)},
			list: members, index: at.refusal, value: refusal, block: true,
		})
	}
	if kind(b, calls) == '[' {
		els := elements(b, calls)
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
	if kind(b, function) == '{' {
		n := l.openAIFunction(function, function)
		n.list, n.index = members, at.function
		l.nodes = append(l.nodes, n)
	}
	return l, nil
}

// openAIContent reads a content: a string, an array of parts, or nothing. vacant is what it turns into when all
// of it is dropped.
func (l *layout) openAIContent(v span, vacant string) ([]node, error) {
	b := l.native
	switch kind(b, v) {
	case 0, 'n':
		return nil, nil
	case '"':
		if v.end-v.start == 2 {
			return nil, nil
		}
		return []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)},
			list: -1, value: v, vacant: vacant, block: true,
		}}, nil
	case '[':
		els := elements(b, v)
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
func (l *layout) openAIPart(v span) (node, error) {
	b := l.native
	if kind(b, v) == '"' {
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)}, value: v,
			block: true,
		}, nil
	}
	if kind(b, v) != '{' {
		return node{}, parseError(OpenAI, "a part of its content is no object")
	}
	var typ, txt, refusal, image, audio, file span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "type":
			typ = f.value
		case "text":
			txt = f.value
		case "refusal":
			refusal = f.value
		case "image_url":
			image = f.value
		case "input_audio":
			audio = f.value
		case "file":
			file = f.value
		}
	}
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Type: text(b, typ), Raw: v.of(b)}}
	p := &n.part
	switch p.Type {
	case "text", "refusal":
		if p.Type == "refusal" {
			txt = refusal
		}
		if s, ok := str(b, txt); ok {
			p.Kind, p.Text, n.value = pipeline.PartText, s, txt
		}
	case "image_url":
		p.Kind = pipeline.PartImage
		url := image // older clients give the address itself
		if kind(b, image) == '{' {
			url, _ = get(b, image, "url")
		}
		fromDataURL(p, text(b, url))
	case "input_audio":
		p.Kind = pipeline.PartFile
		if kind(b, audio) == '{' {
			if format := text(b, first(get(b, audio, "format"))); format != "" {
				p.MediaType = "audio/" + format
			}
			binaryPart(p, text(b, first(get(b, audio, "data"))))
		}
	case "file":
		p.Kind = pipeline.PartFile
		if kind(b, file) == '{' {
			p.Name = text(b, first(get(b, file, "filename")))
			data := text(b, first(get(b, file, "file_data")))
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
func (l *layout) openAIResult(content span, callID, name string, v span) (node, error) {
	nodes, err := l.openAIContent(content, `""`)
	if err != nil {
		return node{}, err
	}
	return node{
		part: pipeline.Part{Kind: pipeline.PartToolResult, CallID: callID, Name: name},
		list: -1, value: content, insert: v.end - 1, content: nodes,
	}, nil
}

// openAICall reads one entry of tool_calls.
func (l *layout) openAICall(v span) (node, error) {
	b := l.native
	if kind(b, v) != '{' {
		return node{}, parseError(OpenAI, "a tool call is no object")
	}
	var inner span
	var id, typ string
	for key, f := range fields(b, v) {
		switch string(key) {
		case "id":
			id = text(b, f.value)
		case "type":
			typ = text(b, f.value)
		case "function", "custom":
			inner = f.value
		}
	}
	n := l.openAIFunction(v, inner)
	n.part.CallID, n.part.Type = id, typ
	return n, nil
}

// openAIFunction reads the name and the arguments (or the input of a custom tool) at v.
func (l *layout) openAIFunction(raw, v span) node {
	b := l.native
	n := node{part: pipeline.Part{Kind: pipeline.PartToolCall, Raw: raw.of(b)}}
	if kind(b, v) != '{' {
		return n
	}
	for key, f := range fields(b, v) {
		switch string(key) {
		case "name":
			n.part.Name = text(b, f.value)
		case "arguments", "input":
			n.value = f.value
			n.part.Input = text(b, f.value)
			if kind(b, f.value) == '{' { // some servers send the object itself
				n.part.Input = string(f.value.of(b))
			}
		}
	}
	return n
}

func detectOpenAI(s sketched) bool {
	for _, at := range []string{
		"messages", "", "[].traj", "history", "request_params.messages", "[].messages",
		"[].request.messages",
	} {
		if s.hasMessages(at) {
			return true
		}
	}
	// What comes first may be all that is seen: the wrapper's own, or a request whose messages come late.
	return s.has("trajectory[].action", "[].traj", "tools[].function.parameters") ||
		s.has("messages") && s.has("model") && !s.has("messages[].role")
}

// openAIRequest reads the facts of a request object.
func openAIRequest(b []byte, v span, m *Meta) {
	m.Vendor = "openai"
	for key, f := range fields(b, v) {
		switch string(key) {
		case "model":
			m.Model = text(b, f.value)
		case "tools":
			m.Tools = present(b, f.value)
		case "max_tokens", "max_completion_tokens":
			m.MaxTokens = number(b, f.value)
		}
	}
}

// openAIAnswer makes a completion object into the message that the next request would hold.
func openAIAnswer(response []byte) ([][]byte, *Usage) {
	v := root(response)
	usage := openAIUsage(response, v)
	choices, ok := get(response, v, "choices")
	if !ok || kind(response, choices) != '[' {
		return nil, nil
	}
	els := elements(response, choices)
	if len(els) == 0 {
		return nil, nil
	}
	message, ok := get(response, els[0], "message")
	if !ok || kind(response, message) != '{' {
		return nil, nil
	}
	native, _ := tidy(message.of(response))
	if m, err := (openAICodec{}).Decode(native); err != nil || len(m.Parts) == 0 {
		return nil, nil
	}
	return [][]byte{native}, usage
}

// openAIUsage reads the usage of a completion object, nil when it has none.
func openAIUsage(b []byte, v span) *Usage {
	at, ok := get(b, v, "usage")
	if !ok || kind(b, at) != '{' {
		return nil
	}
	u := Usage{Model: text(b, first(get(b, v, "model")))}
	prompt := number(b, first(get(b, at, "prompt_tokens")))
	u.Output = number(b, first(get(b, at, "completion_tokens")))
	if details, ok := get(b, at, "prompt_tokens_details"); ok {
		u.CacheRead = number(b, first(get(b, details, "cached_tokens")))
	}
	u.Input = max(prompt-u.CacheRead, 0)
	if u.Used = number(b, first(get(b, at, "total_tokens"))); u.Used == 0 {
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
	v := root(native)
	var all []splice
	var gone []string
	inner := func(key string, short func(span) ([]byte, []string)) {
		list, ok := get(native, v, key)
		if !ok || kind(native, list) != '[' {
			return
		}
		for _, el := range elements(native, list) {
			if kind(native, el) != '{' {
				continue
			}
			if b, keys := short(el); len(keys) > 0 {
				all = append(all, splice{el, b})
				for _, k := range keys {
					gone = append(gone, key+"[]."+k)
				}
			}
		}
	}
	inner("tool_calls", func(el span) ([]byte, []string) { return keepKeys(native, el, callKeys...) })
	inner("content", func(el span) ([]byte, []string) {
		return dropKeys(native, el, func(key string, _ span) bool { return key == "cache_control" })
	})
	if len(all) > 0 {
		native = apply(native, all)
	}
	native = fillContent(native)
	out, keys := dropKeys(native, root(native), func(key string, value span) bool {
		switch {
		case key == "content": // may be null beside calls
			return false
		case kind(native, value) == 'n':
			return true
		case key == "tool_calls" && kind(native, value) == '[':
			return len(elements(native, value)) == 0
		}
		return !slices.Contains(messageKeys, key)
	})
	return out, append(gone, keys...)
}

// fillContent puts what a request may hold in the place of an empty array of parts.
func fillContent(native []byte) []byte {
	v := root(native)
	content, ok := get(native, v, "content")
	if !ok || kind(native, content) != '[' || len(elements(native, content)) > 0 {
		return native
	}
	vacant := `""`
	if calls, ok := get(native, v, "tool_calls"); ok && kind(native, calls) == '[' {
		vacant = "null"
	}
	return apply(native, []splice{{content, []byte(vacant)}})
}
