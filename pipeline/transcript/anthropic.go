package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// The Messages API of Anthropic: https://docs.claude.com/en/api/messages. Its files are request objects, and
// arrays of recorded requests with their responses.

const sourceHTTP = "recorded-http"

type anthropicCodec struct{}

func (anthropicCodec) Format() Format { return Anthropic }

func (anthropicCodec) Decode(native []byte) (pipeline.Message, error) {
	if err := rawjson.Check(native); err != nil {
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
	if err := rawjson.Check(m.Native); err != nil {
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
		return "user", toolResultBlock(m.CallID, rawjson.Quote(m.Text), m.IsError), nil
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
	return fmt.Appendf(nil, `{"type":"text","text":%s}`, rawjson.Quote(s))
}

func toolResultBlock(id string, content []byte, isError bool) []byte {
	b := fmt.Appendf(nil, `{"type":"tool_result","tool_use_id":%s,"content":%s`, rawjson.Quote(id), content)
	if isError {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, "}"...)
}

func wrapBlocks(role string, blocks [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"content":[%s]}`, rawjson.Quote(role), rawjson.Join(blocks))
}

// anthropicInput is a new input for a tool call: an object, as the API wants it.
func anthropicInput(_ node, text string) ([]byte, error) {
	if b := []byte(text); rawjson.Check(b) == nil && rawjson.Root(b).IsObject() {
		return b, nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "the new input of a tool call must be a JSON object")
}

// anthropicLayout reads {"role":…,"content":…}, sound JSON.
func anthropicLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	if err := l.anthropicMessage(Anthropic, rawjson.Root(native), -1, 0); err != nil {
		return nil, err
	}
	return l, nil
}

// anthropicMessage appends the nodes of the message at v. parent and index name the list entry that goes when
// the message is left without content.
func (l *layout) anthropicMessage(f Format, v rawjson.Value, parent, index int) error {
	if !v.IsObject() {
		return parseError(f, "it is no object")
	}
	var content rawjson.Value
	l.role = ""
	for key, f := range v.Fields() {
		switch string(key) {
		case "role":
			l.role = f.Value.Text()
		case "content":
			content = f.Value
		}
	}
	switch l.role {
	case "user", "assistant", "system":
	case "":
		return parseError(f, "it has no role")
	default:
		return parseError(f, "its role is not user, assistant or system")
	}
	switch content.Kind() {
	case rawjson.String:
		l.nodes = append(l.nodes, node{
			part:  pipeline.Part{Kind: pipeline.PartText, Text: content.Text(), Raw: content.Raw()},
			value: content, list: parent, index: index, block: true,
		})
	case rawjson.Array:
		nodes, err := l.blocks(f, content, list{parent: parent, parentIndex: index})
		if err != nil {
			return err
		}
		l.nodes = append(l.nodes, nodes...)
	case rawjson.Missing:
		return parseError(f, "it has no content")
	default:
		return parseError(f, "its content is neither a string nor an array of blocks")
	}
	return nil
}

// blocks reads an array of content blocks, as a list of its own.
func (l *layout) blocks(f Format, v rawjson.Value, as list) ([]node, error) {
	as.siblings, as.whole = v.Elements(), v
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
func (l *layout) block(f Format, v rawjson.Value) (node, error) {
	if v.IsString() { // a bare string among blocks
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, value: v,
			block: true,
		}, nil
	}
	if !v.IsObject() {
		return node{}, parseError(f, "a content block is no object")
	}
	var typ, txt, thinking, id, useID, name, input, content, src, isError, title, mediaType rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ},
		{"text", &txt},
		{"thinking", &thinking},
		{"id", &id},
		{"tool_use_id", &useID},
		{"name", &name},
		{"input", &input},
		{"content", &content},
		{"source", &src},
		{"is_error", &isError},
		{"title", &title},
		{"media_type", &mediaType},
	})
	n := node{part: pipeline.Part{Kind: pipeline.PartOpaque, Type: typ.Text(), Raw: v.Raw()}}
	p := &n.part
	switch {
	case p.Type == "text":
		p.Kind, p.Text, n.value = pipeline.PartText, txt.Text(), txt
		if !txt.IsString() {
			p.Kind, n.value = pipeline.PartOpaque, rawjson.Value{}
		}
	case p.Type == "thinking", p.Type == "redacted_thinking":
		p.Kind, p.Text = pipeline.PartReasoning, thinking.Text()
	case p.Type == "image":
		p.Kind, p.MediaType = pipeline.PartImage, mediaType.Text()
		fromSource(p, src)
	case p.Type == "document":
		p.Kind, p.Name = pipeline.PartFile, title.Text()
		fromSource(p, src)
	case useID.IsString(): // of whatever type: it answers the call of that id
		p.Kind, p.CallID, p.Name = pipeline.PartToolResult, useID.Text(), name.Text()
		p.IsError = isError.IsTrue()
		// The results of server tools have shapes of their own: no text can stand in for them.
		n.value, n.insert, n.fixed = content, v.End()-1, p.Type != "tool_result" && p.Type != "mcp_tool_result"
		switch content.Kind() {
		case rawjson.String:
			n.content = []node{{
				part:  pipeline.Part{Kind: pipeline.PartText, Text: content.Text(), Raw: content.Raw()},
				value: content, list: -1, vacant: `""`, block: true,
			}}
		case rawjson.Array:
			nodes, err := l.blocks(f, content, list{parent: -1, vacant: `""`})
			if err != nil {
				return node{}, err
			}
			n.content = nodes
		case rawjson.Object: // an error object of a server tool
			p.IsError = true
			n.content = []node{{
				part: pipeline.Part{
					Kind: pipeline.PartOpaque, Type: content.Get("type").Text(),
					Raw: content.Raw(),
				},
				list: -1, value: content, vacant: `""`, block: true,
			}}
		}
	case strings.HasSuffix(p.Type, "tool_use") && id.IsString():
		p.Kind, p.CallID, p.Name = pipeline.PartToolCall, id.Text(), name.Text()
		p.Input, n.value = string(input.Raw()), input
	}
	n.block = p.Kind != pipeline.PartToolCall && p.Kind != pipeline.PartToolResult
	return n, nil
}

// fromSource reads the source object of an image or a document.
func fromSource(p *pipeline.Part, src rawjson.Value) {
	if !src.IsObject() {
		return
	}
	var typ, data, mediaType rawjson.Value
	src.Read(rawjson.Want{{"type", &typ}, {"data", &data}, {"media_type", &mediaType}})
	if s := mediaType.Text(); s != "" {
		p.MediaType = s
	}
	switch typ.Text() {
	case "base64":
		binaryPart(p, data.Text())
	case "text":
		p.Text = data.Text()
		p.Bytes = len(p.Text)
	}
}

func detectAnthropic(s rawjson.Outline) bool {
	if s.HasPrefix("[].uri", "https://api.anthropic.com/") || s.HasPrefix("uri", "https://api.anthropic.com/") ||
		s.Has("[].request.anthropic_version") {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		messages := at + "messages"
		if !s.Has(messages) {
			// The messages may stand behind more tools or system prompt than is seen.
			if s.Has(at+"tools[].input_schema") || s.Has(at+"system") && s.Has(at+"max_tokens") {
				return true
			}
			continue
		}
		if s.Has(messages+"[].role") && !hasMessages(s, messages) {
			continue
		}
		if s.Has(at+"system", at+"tools[].input_schema", at+"anthropic_version") ||
			s.HasPrefix(at+"model", "claude", "anthropic.claude", "us.anthropic.", "eu.anthropic.") {
			return !s.Has(messages+"[].tool_calls", messages+"[].role=tool", messages+"[].role=system")
		}
		if anthropicBlocks(s, messages) {
			return true
		}
	}
	return hasMessages(s, "") && anthropicBlocks(s, "")
}

// anthropicBlocks says whether messages hold blocks that only this API has.
func anthropicBlocks(s rawjson.Outline, at string) bool {
	at += "[].content[].type="
	return s.Has(at+"tool_use", at+"tool_result", at+"thinking", at+"redacted_thinking", at+"server_tool_use",
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
	content, ok := rawjson.Root(raw).Lookup("content")
	if said := content.Text(); !ok || strings.TrimSpace(said) == "" {
		m.Kind = pipeline.KindSummary
		return m, true // encrypted
	}
	block := fmt.Appendf(nil, `{"type":"text","text":%s}`, content.Raw())
	summary, err := decodeAnthropic(wrapBlocks("user", [][]byte{block}))
	if err != nil {
		return m, false
	}
	summary.Kind = pipeline.KindSummary
	return summary, true
}

// anthropicRequest reads the facts of a request object.
func anthropicRequest(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "anthropic"
	for key, f := range v.Fields() {
		switch string(key) {
		case "model":
			m.Model = f.Value.Text()
		case "system":
			m.System = f.Value.Present()
		case "tools":
			m.Tools = f.Value.Present()
		case "max_tokens":
			m.MaxTokens = f.Value.Count()
		}
	}
}

// anthropicAnswer makes a response object into the message that the next request would hold: its role and its
// content, the rest cut out.
func anthropicAnswer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	if role, _ := v.Lookup("role"); role.Text() != "assistant" {
		return nil, nil
	}
	if content, _ := v.Lookup("content"); !content.IsArray() ||
		content.IsEmpty() {
		return nil, nil
	}
	usage := anthropicUsage(v.Get("usage"),
		v.Get("model").Text())
	native, _ := v.KeepKeys("role", "content")
	return [][]byte{native}, usage
}

// anthropicUsage reads a usage object, nil when there is none or it says nothing. The four figures sum up to the
// context: what the cache gave is not part of input_tokens.
func anthropicUsage(at rawjson.Value, model string) *Usage {
	if !at.IsObject() {
		return nil
	}
	u := Usage{Model: model}
	for key, f := range at.Fields() {
		switch string(key) {
		case "input_tokens":
			u.Input = f.Value.Count()
		case "cache_read_input_tokens":
			u.CacheRead = f.Value.Count()
		case "cache_creation_input_tokens":
			u.CacheCreation = f.Value.Count()
		case "output_tokens":
			u.Output = f.Value.Count()
		}
	}
	if u.Used = u.Input + u.CacheRead + u.CacheCreation + u.Output; u.Used == 0 {
		return nil
	}
	return &u
}
