package transcript

import (
	"bytes"
	"encoding/json"
	"strings"

	"precis/pipeline"
)

// The Messages API of Anthropic: https://docs.claude.com/en/api/messages. Its files are request objects, and
// arrays of recorded requests with their responses.

const sourceHTTP = "recorded-http"

type anthropicCodec struct{}

func (anthropicCodec) Format() Format { return Anthropic }

func (anthropicCodec) Decode(native []byte) (pipeline.Message, error) {
	if err := whole(native); err != nil {
		return pipeline.Message{}, parseError(Anthropic, "%v", err)
	}
	return decodeAnthropic(native)
}

// decodeAnthropic decodes a message that is known to be sound JSON.
func decodeAnthropic(native []byte) (pipeline.Message, error) {
	l, err := anthropicLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	return l.message(), nil
}

func (anthropicCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := whole(m.Native); err != nil {
		return nil, parseError(Anthropic, "%v", err)
	}
	l, err := anthropicLayout(m.Native)
	if err != nil {
		return nil, err
	}
	return l.edit(edits, anthropicInput)
}

func (anthropicCodec) Make(m pipeline.Made) ([]byte, error) {
	role, blocks, err := anthropicMade(m)
	if err != nil {
		return nil, err
	}
	return wrapBlocks(role, [][]byte{blocks}), nil
}

// anthropicMade gives the role and the one block of a message of our own.
func anthropicMade(m pipeline.Made) (role string, block []byte, err error) {
	switch m.Role {
	case pipeline.RoleTool:
		return "user", toolResultBlock(m.CallID, quote(m.Text), m.IsError), nil
	case pipeline.RoleUser, pipeline.RoleAssistant:
		if strings.TrimSpace(m.Text) == "" {
			return "", nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes",
				m.Role)
		}
		return string(m.Role), textBlock(m.Text), nil
	}
	return "", nil, pipeline.Errorf(pipeline.Internal,
		"a message of role %s has no place in a Messages request: the system prompt stands beside them", m.Role)
}

func textBlock(s string) []byte {
	return append(append([]byte(`{"type":"text","text":`), quote(s)...), '}')
}

func toolResultBlock(id string, content []byte, isError bool) []byte {
	b := append([]byte(`{"type":"tool_result","tool_use_id":`), quote(id)...)
	b = append(append(b, `,"content":`...), content...)
	if isError {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, '}')
}

func wrapBlocks(role string, blocks [][]byte) []byte {
	b := append([]byte(`{"role":`), quote(role)...)
	b = append(b, `,"content":[`...)
	b = append(b, bytes.Join(blocks, []byte{','})...)
	return append(b, "]}"...)
}

// anthropicInput is a new input for a tool call: an object, as the API wants it.
func anthropicInput(_ node, text string) ([]byte, error) {
	if b := []byte(text); whole(b) == nil && kind(b, root(b)) == '{' {
		return b, nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "the new input of a tool call must be a JSON object")
}

// anthropicLayout reads {"role":…,"content":…}, sound JSON.
func anthropicLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	if err := l.anthropicMessage(Anthropic, root(native), -1, 0); err != nil {
		return nil, err
	}
	return l, nil
}

// anthropicMessage appends the nodes of the message at v. parent and index name the list entry that goes when
// the message is left without content.
func (l *layout) anthropicMessage(f Format, v span, parent, index int) error {
	b := l.native
	if kind(b, v) != '{' {
		return parseError(f, "it is no object")
	}
	var content span
	l.role = ""
	for key, f := range fields(b, v) {
		switch string(key) {
		case "role":
			l.role = text(b, f.value)
		case "content":
			content = f.value
		}
	}
	switch l.role {
	case "user", "assistant", "system":
	case "":
		return parseError(f, "it has no role")
	default:
		return parseError(f, "its role is not user, assistant or system")
	}
	switch kind(b, content) {
	case '"':
		l.nodes = append(l.nodes, node{
			part:  pipeline.Part{Kind: pipeline.PartText, Text: unquote(content.of(b)), Raw: content.of(b)},
			value: content, list: parent, index: index, block: true,
		})
	case '[':
		nodes, err := l.blocks(f, content, list{parent: parent, parentIndex: index})
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, nodes...)
	case 0:
		return parseError(f, "it has no content")
	default:
		return parseError(f, "its content is neither a string nor an array of blocks")
	}
	return nil
}

// blocks reads an array of content blocks, as a list of its own.
func (l *layout) blocks(f Format, v span, as list) ([]node, error) {
	as.siblings, as.whole = elements(l.native, v), v
	at := l.addList(as)
	nodes := make([]node, 0, len(as.siblings))
	for i, el := range as.siblings {
		n, err := l.block(f, el)
		if err != nil {
			return nil, err
		}
		n.list, n.index = at, i
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// block reads one content block.
func (l *layout) block(f Format, v span) (node, error) {
	b := l.native
	if kind(b, v) == '"' { // a bare string among blocks
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)}, value: v,
			block: true,
		}, nil
	}
	if kind(b, v) != '{' {
		return node{}, parseError(f, "a content block is no object")
	}
	var typ, txt, thinking, id, useID, name, input, content, src, isError, title, mediaType span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "type":
			typ = f.value
		case "text":
			txt = f.value
		case "thinking":
			thinking = f.value
		case "id":
			id = f.value
		case "tool_use_id":
			useID = f.value
		case "name":
			name = f.value
		case "input":
			input = f.value
		case "content":
			content = f.value
		case "source":
			src = f.value
		case "is_error":
			isError = f.value
		case "title":
			title = f.value
		case "media_type":
			mediaType = f.value
		}
	}
	n := node{part: pipeline.Part{Kind: pipeline.PartOpaque, Type: text(b, typ), Raw: v.of(b)}}
	p := &n.part
	switch {
	case p.Type == "text":
		p.Kind, p.Text, n.value = pipeline.PartText, text(b, txt), txt
		if kind(b, txt) != '"' {
			p.Kind, n.value = pipeline.PartOpaque, span{}
		}
	case p.Type == "thinking", p.Type == "redacted_thinking":
		p.Kind, p.Text = pipeline.PartReasoning, text(b, thinking)
	case p.Type == "image":
		p.Kind, p.MediaType = pipeline.PartImage, text(b, mediaType)
		fromSource(p, b, src)
	case p.Type == "document":
		p.Kind, p.Name = pipeline.PartFile, text(b, title)
		fromSource(p, b, src)
	case kind(b, useID) == '"': // of whatever type: it answers the call of that id
		p.Kind, p.CallID, p.Name = pipeline.PartToolResult, unquote(useID.of(b)), text(b, name)
		p.IsError = kind(b, isError) == 't'
		// The results of server tools have shapes of their own: no text can stand in for them.
		n.value, n.insert, n.fixed = content, v.end-1, p.Type != "tool_result" && p.Type != "mcp_tool_result"
		switch kind(b, content) {
		case '"':
			n.content = []node{{
				part:  pipeline.Part{Kind: pipeline.PartText, Text: unquote(content.of(b)), Raw: content.of(b)},
				value: content, list: -1, vacant: `""`, block: true,
			}}
		case '[':
			nodes, err := l.blocks(f, content, list{parent: -1, vacant: `""`})
			if err != nil {
				return node{}, err
			}
			n.content = nodes
		case '{': // an error object of a server tool
			p.IsError = true
			n.content = []node{{
				part: pipeline.Part{
					Kind: pipeline.PartOpaque, Type: text(b, first(get(b, content, "type"))),
					Raw: content.of(b),
				},
				list: -1, value: content, vacant: `""`, block: true,
			}}
		}
	case strings.HasSuffix(p.Type, "tool_use") && kind(b, id) == '"':
		p.Kind, p.CallID, p.Name = pipeline.PartToolCall, unquote(id.of(b)), text(b, name)
		p.Input, n.value = string(input.of(b)), input
	}
	n.block = p.Kind != pipeline.PartToolCall && p.Kind != pipeline.PartToolResult
	return n, nil
}

func first(v span, _ bool) span { return v }

// fromSource reads the source object of an image or a document.
func fromSource(p *pipeline.Part, b []byte, src span) {
	if kind(b, src) != '{' {
		return
	}
	var typ, data, mediaType span
	for key, f := range fields(b, src) {
		switch string(key) {
		case "type":
			typ = f.value
		case "data":
			data = f.value
		case "media_type":
			mediaType = f.value
		}
	}
	if s := text(b, mediaType); s != "" {
		p.MediaType = s
	}
	switch text(b, typ) {
	case "base64":
		binaryPart(p, text(b, data))
	case "text":
		p.Text = text(b, data)
		p.Bytes = len(p.Text)
	}
}

func detectAnthropic(s sketched) bool {
	if s.hasPrefix("[].uri", "https://api.anthropic.com/") || s.hasPrefix("uri", "https://api.anthropic.com/") ||
		s.has("[].request.anthropic_version") {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		messages := at + "messages"
		if !s.has(messages) {
			// The messages may stand behind more tools or system prompt than is seen.
			if s.has(at+"tools[].input_schema") || s.has(at+"system") && s.has(at+"max_tokens") {
				return true
			}
			continue
		}
		if s.has(messages+"[].role") && !s.hasMessages(messages) {
			continue
		}
		if s.has(at+"system", at+"tools[].input_schema", at+"anthropic_version") ||
			s.hasPrefix(at+"model", "claude", "anthropic.claude", "us.anthropic.", "eu.anthropic.") {
			return !s.has(messages+"[].tool_calls", messages+"[].role=tool", messages+"[].role=system")
		}
		if anthropicBlocks(s, messages) {
			return true
		}
	}
	return s.hasMessages("") && anthropicBlocks(s, "")
}

// anthropicBlocks says whether messages hold blocks that only this API has.
func anthropicBlocks(s sketched, at string) bool {
	at += "[].content[].type="
	return s.has(at+"tool_use", at+"tool_result", at+"thinking", at+"redacted_thinking", at+"server_tool_use",
		at+"document", at+"image")
}

func openAnthropic(s *stream, o Options) source {
	return openDocuments(s, o, dialect{
		format:   Anthropic,
		decode:   decodeAnthropic,
		wrapper:  httpWrapper,
		clean:    untouched,
		envelope: recorded(anthropicRequest),
		request:  anthropicRequest,
		answer:   anthropicAnswer,
		summary:  compactionBlock,
	})
}

// compactionBlock gives the summary that a message of the assistant's begins with when the vendor compacted: what
// stands before the block is ignored from then on. The block itself stays in its message, unchanged.
func compactionBlock(m pipeline.Message, _ bool) (pipeline.Message, bool) {
	if m.Role != pipeline.RoleAssistant || len(m.Parts) == 0 || m.Parts[0].Type != "compaction" {
		return m, false
	}
	raw := m.Parts[0].Raw
	content, ok := get(raw, root(raw), "content")
	if said := text(raw, content); !ok || strings.TrimSpace(said) == "" {
		m.Kind = pipeline.KindSummary
		return m, true // encrypted
	}
	block := append(append([]byte(`{"type":"text","text":`), content.of(raw)...), '}')
	summary, err := decodeAnthropic(wrapBlocks("user", [][]byte{block}))
	if err != nil {
		return m, false
	}
	summary.Kind = pipeline.KindSummary
	return summary, true
}

// anthropicRequest reads the facts of a request object.
func anthropicRequest(b []byte, v span, m *Meta) {
	m.Vendor = "anthropic"
	for key, f := range fields(b, v) {
		switch string(key) {
		case "model":
			m.Model = text(b, f.value)
		case "system":
			m.System = present(b, f.value)
		case "tools":
			m.Tools = present(b, f.value)
		case "max_tokens":
			m.MaxTokens = number(b, f.value)
		}
	}
}

// present is the JSON of a value, nil for null.
func present(b []byte, v span) json.RawMessage {
	if kind(b, v) == 'n' {
		return nil
	}
	return v.of(b)
}

// number is a count that JSON holds, 0 when it is none.
func number(b []byte, v span) int {
	n := 0
	if json.Unmarshal(v.of(b), &n) != nil || n < 0 {
		return 0
	}
	return n
}

// anthropicAnswer makes a response object into the message that the next request would hold: its role and its
// content, the rest cut out.
func anthropicAnswer(response []byte) ([][]byte, *Usage) {
	v := root(response)
	if role, _ := get(response, v, "role"); text(response, role) != "assistant" {
		return nil, nil
	}
	if content, _ := get(response, v, "content"); kind(response, content) != '[' ||
		len(elements(response, content)) == 0 {
		return nil, nil
	}
	usage := anthropicUsage(response, first(get(response, v, "usage")),
		text(response, first(get(response, v, "model"))))
	native, _ := keepKeys(response, v, "role", "content")
	return [][]byte{native}, usage
}

// keepKeys cuts every pair out of the object at v but those of the keys, and gives the object and the keys
// that went.
func keepKeys(b []byte, v span, keys ...string) ([]byte, []string) {
	keep := map[string]bool{}
	for _, k := range keys {
		keep[k] = true
	}
	return dropKeys(b, v, func(key string, _ span) bool { return !keep[key] })
}

// dropKeys cuts the pairs out of the object at v for which drop says so, and gives the object and the keys that
// went.
func dropKeys(b []byte, v span, drop func(key string, value span) bool) ([]byte, []string) {
	var pairs []span
	var gone []string
	var out []bool
	for key, f := range fields(b, v) {
		pairs = append(pairs, f.pair)
		d := drop(string(key), f.value)
		out = append(out, d)
		if d {
			gone = append(gone, string(key))
		}
	}
	if len(gone) == 0 {
		return v.of(b), nil
	}
	all := without(pairs, func(i int) bool { return out[i] })
	for i := range all {
		all[i].start -= v.start
		all[i].end -= v.start
	}
	return apply(v.of(b), all), gone
}

// anthropicUsage reads a usage object, nil when there is none or it says nothing. The four figures sum up to the
// context: what the cache gave is not part of input_tokens.
func anthropicUsage(b []byte, at span, model string) *Usage {
	if kind(b, at) != '{' {
		return nil
	}
	u := Usage{Model: model}
	for key, f := range fields(b, at) {
		switch string(key) {
		case "input_tokens":
			u.Input = number(b, f.value)
		case "cache_read_input_tokens":
			u.CacheRead = number(b, f.value)
		case "cache_creation_input_tokens":
			u.CacheCreation = number(b, f.value)
		case "output_tokens":
			u.Output = number(b, f.value)
		}
	}
	if u.Used = u.Input + u.CacheRead + u.CacheCreation + u.Output; u.Used == 0 {
		return nil
	}
	return &u
}
