package transcript

import (
	"strings"

	"precis/pipeline"
)

// LangChain is the messages of LangChain and LangGraph, in the three forms that its libraries write and load:
//
//   - dumpd: {"lc":1,"type":"constructor","id":[…,"HumanMessage"],"kwargs":{…}}
//   - messages_to_dict: {"type":"human","data":{…}}
//   - a LangGraph state, flat: {"type":"human","content":…}
//
// Files: an array of them, or a state with them under "messages" (or "values.messages"). Written is what came: the
// array for load or messages_from_dict, or the state with the new list in it. Two compactions are known: the
// summary of SummarizationMiddleware, and the _summarization_event of Deep Agents.
const LangChain Format = "langchain"

type langChainCodec struct{}

func (langChainCodec) Format() Format { return LangChain }

func (langChainCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(LangChain, native, decodeLangChain)
}

func decodeLangChain(native []byte) (pipeline.Message, error) {
	l, err := langChainLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	body := langChainBody(native, root(native))
	m.ID = text(native, first(get(native, body, "id")))
	if source, _ := dig(native, body, "additional_kwargs", "lc_source"); text(native, source) == "summarization" {
		m.Kind = pipeline.KindSummary
	}
	return m, nil
}

func (langChainCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(LangChain, m, edits, langChainLayout)
}

// Make writes the flat form, which LangChain takes wherever it takes messages. WriteFile puts it into the form of
// the messages beside it.
func (langChainCodec) Make(m pipeline.Made) ([]byte, error) {
	typ := map[pipeline.Role]string{
		pipeline.RoleSystem: "system", pipeline.RoleUser: "human", pipeline.RoleAssistant: "ai",
		pipeline.RoleTool: "tool",
	}[m.Role]
	b := append([]byte(`{"type":`), quote(typ)...)
	b = append(append(b, `,"content":`...), quote(m.Text)...)
	switch {
	case m.Role == pipeline.RoleTool:
		b = append(append(b, `,"tool_call_id":`...), quote(m.CallID)...)
		b = append(append(b, `,"name":`...), quote(m.Name)...)
		if m.IsError {
			b = append(b, `,"status":"error"`...)
		}
		return append(b, '}'), nil
	case m.Kind == pipeline.KindSummary:
		b = append(b, `,"additional_kwargs":{"lc_source":"summarization"}`...)
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// langChainBody is the object with the fields of a message.
func langChainBody(b []byte, v span) span {
	for _, key := range []string{"kwargs", "data"} {
		if at, ok := get(b, v, key); ok && kind(b, at) == '{' {
			return at
		}
	}
	return v
}

// langChainRole tells the role from the type, or from the name of the class.
func langChainRole(b []byte, v, body span) string {
	name := text(b, first(get(b, v, "type")))
	if name == "constructor" {
		name = text(b, first(get(b, body, "type")))
		if path, ok := get(b, v, "id"); ok && kind(b, path) == '[' {
			if els := elements(b, path); len(els) > 0 {
				name = text(b, els[len(els)-1])
			}
		}
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Chunk"), "Message")
	if name == "Chat" || name == "chat" {
		name = text(b, first(get(b, body, "role")))
	}
	switch strings.ToLower(name) {
	case "human", "user":
		return "user"
	case "ai", "assistant":
		return "assistant"
	case "system", "developer":
		return "system"
	case "tool", "function":
		return "tool"
	}
	return ""
}

// langChainLayout reads a message of one of the three forms, sound JSON.
func langChainLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(LangChain, "it is no object")
	}
	body := langChainBody(b, v)
	if l.role = langChainRole(b, v, body); l.role == "" {
		return nil, parseError(LangChain, "its type is not human, ai, system, tool or one of their classes")
	}
	at := map[string]span{}
	for key, f := range fields(b, body) {
		at[string(key)] = f.value
	}
	nodes, err := l.langChainContent(at["content"])
	if err != nil {
		return nil, err
	}
	if l.role == "tool" {
		l.nodes = []node{{
			part: pipeline.Part{
				Kind: pipeline.PartToolResult, CallID: text(b, at["tool_call_id"]), Name: text(b, at["name"]),
				IsError: text(b, at["status"]) == "error",
			},
			list: -1, value: at["content"], insert: body.end - 1, content: nodes,
		}}
		return l, nil
	}
	if reasoning, ok := get(b, at["additional_kwargs"], "reasoning_content"); ok && text(b, reasoning) != "" {
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Text: text(b, reasoning), Raw: reasoning.of(b)},
			list: -1, value: reasoning, vacant: `""`,
		})
	}
	l.nodes = append(l.nodes, nodes...)
	l.langChainCalls(at["tool_calls"], at["additional_kwargs"])
	return l, nil
}

// langChainContent reads a content: a string, or an array of strings and of blocks in the shape of a vendor or of
// LangChain's own standard blocks.
func (l *layout) langChainContent(v span) ([]node, error) {
	b := l.native
	switch kind(b, v) {
	case 0, 'n':
		return nil, nil
	case '"':
		if v.end-v.start == 2 {
			return nil, nil
		}
		return []node{l.literalNode(v)}, nil
	case '[':
		els := elements(b, v)
		row := l.addList(newList(els))
		nodes := make([]node, 0, len(els))
		for i, el := range els {
			n, err := l.langChainBlock(el)
			if err != nil {
				return nil, err
			}
			n.list, n.index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	}
	return nil, parseError(LangChain, "its content is neither a string nor an array of blocks")
}

func (l *layout) langChainBlock(v span) (node, error) {
	b := l.native
	n, err := l.block(LangChain, v)
	if err != nil || kind(b, v) != '{' {
		return n, err
	}
	p := &n.part
	field := func(keys ...string) string {
		for _, key := range keys {
			if s := text(b, first(get(b, v, key))); s != "" {
				return s
			}
		}
		return ""
	}
	switch p.Type {
	case "reasoning":
		p.Kind, p.Text = pipeline.PartReasoning, field("reasoning", "text")
	case "reasoning_content": // Bedrock's
		p.Kind = pipeline.PartReasoning
		if at, ok := dig(b, v, "reasoning_content", "text"); ok {
			p.Text = text(b, at)
		}
	case "image", "image_url":
		p.Kind = pipeline.PartImage
	case "file", "audio", "video", "text-plain", "input_audio", "document":
		p.Kind, p.Name = pipeline.PartFile, field("filename", "title")
	case "tool_call":
		p.Kind, p.CallID, p.Name = pipeline.PartToolCall, field("id"), field("name")
		n.value, _ = get(b, v, "args")
		p.Input, n.block, n.insert, n.key = inputText(b, n.value), false, v.end-1, "args"
	}
	if p.Kind == pipeline.PartImage || p.Kind == pipeline.PartFile {
		if s := field("mime_type", "media_type"); s != "" {
			p.MediaType = s
		}
		fromAddress(p, langChainCodec{}.address(*p))
	}
	return n, nil
}

// langChainCalls reads tool_calls. A call that stands in the content as well, as a block of its vendor's, or in
// additional_kwargs, is one call in several places.
func (l *layout) langChainCalls(calls, extra span) {
	b := l.native
	if kind(b, calls) != '[' {
		return
	}
	els := elements(b, calls)
	row := l.addList(newList(els))
	var raw []span
	rawRow := -1
	if list, ok := get(b, extra, "tool_calls"); ok && kind(b, list) == '[' {
		raw = elements(b, list)
		rawRow = l.addList(newList(raw))
	}
	for i, el := range els {
		if kind(b, el) != '{' {
			continue
		}
		args, _ := get(b, el, "args")
		n := node{
			part: pipeline.Part{
				Kind: pipeline.PartToolCall, CallID: text(b, first(get(b, el, "id"))),
				Name: text(b, first(get(b, el, "name"))), Type: text(b, first(get(b, el, "type"))),
				Input: inputText(b, args), Raw: el.of(b),
			},
			list: row, index: i, value: args, insert: el.end - 1, key: "args",
		}
		for j, r := range raw {
			if id := text(b, first(get(b, r, "id"))); id == n.part.CallID && id != "" {
				arguments, _ := dig(b, r, "function", "arguments")
				n.twins = append(n.twins, node{list: rawRow, index: j, value: arguments, as: quoted1})
			}
		}
		if at := l.callNode(n.part.CallID); at >= 0 {
			// The block comes first: it shows where among the texts the call was made.
			l.nodes[at].twins = append(n.twins, n)
			continue
		}
		l.nodes = append(l.nodes, n)
	}
}

func quoted1(text string) ([]byte, error) { return quote(text), nil }

// callNode finds the call of an id that has no twin yet, -1 for none.
func (l *layout) callNode(id string) int {
	for i, n := range l.nodes {
		if n.part.Kind == pipeline.PartToolCall && n.part.CallID == id && id != "" && n.twins == nil {
			return i
		}
	}
	return -1
}

// address reads the shapes of OpenAI, of Anthropic and of the standard blocks.
func (langChainCodec) address(p pipeline.Part) string {
	if url := openAIURL(p); url != "" {
		return url
	}
	if url := anthropicURL(p); url != "" {
		return url
	}
	b := []byte(p.Raw)
	for _, key := range []string{"base64", "data", "url"} {
		if s := text(b, first(get(b, root(b), key))); s != "" {
			return base64URL(p.MediaType, s)
		}
	}
	return ""
}

// ---- files

var langChainPaths = []string{"messages", "values.messages", ""}

func detectLangChain(s sketched) bool {
	for _, at := range []string{"[]", "messages[]", "values.messages[]"} {
		if s.has(at+".lc") && s.has(at+".kwargs") {
			return true
		}
		if s.has(at+".role") || s.has(at+".ts") {
			continue
		}
		if s.has(at+".type=human", at+".type=ai") && s.has(at+".content", at+".data.content") {
			return true
		}
	}
	return false
}

func openLangChain(s *stream, o Options) source {
	return openArrays(s, o, Meta{Format: LangChain}, langChainMessages{}, langChainPaths...)
}

type langChainMessages struct{}

func (langChainMessages) record(out *scribe, b []byte, line int) error {
	v := root(b)
	body := langChainBody(b, v)
	if typ := text(b, first(get(b, v, "type"))); typ == "remove" || typ == "RemoveMessage" {
		out.note(line, NoteRecord, typ, "it takes a message out of a state, and says nothing")
		return nil
	}
	m, err := decodeLangChain(b)
	if err != nil {
		return err
	}
	if m.Kind == pipeline.KindSummary && out.count == 0 {
		out.compaction(line, Compaction{Summary: m})
		return nil
	}
	model := ""
	if data, ok := get(b, body, "response_metadata"); ok {
		for _, key := range []string{"model", "model_name"} {
			if s := text(b, first(get(b, data, key))); s != "" {
				model = s
			}
		}
		if vendor := protocolOf(text(b, first(get(b, data, "model_provider")))); vendor != "" {
			out.meta.Vendor = vendor
		}
	}
	if model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	if at, ok := get(b, body, "usage_metadata"); ok && kind(b, at) == '{' {
		out.usage(line, langChainUsage(b, at, model))
	}
	return nil
}

// langChainUsage reads usage_metadata, whose input_tokens count what came from the cache too.
func langChainUsage(b []byte, at span, model string) *Usage {
	u := &Usage{Model: model, Output: number(b, first(get(b, at, "output_tokens")))}
	all := number(b, first(get(b, at, "input_tokens")))
	if d, ok := get(b, at, "input_token_details"); ok {
		u.CacheRead, u.CacheCreation = number(b, first(get(b, d, "cache_read"))),
			number(b, first(get(b, d, "cache_creation")))
	}
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	if u.Used = number(b, first(get(b, at, "total_tokens"))); u.Used == 0 {
		u.Used = all + u.Output
	}
	return u
}

func (langChainMessages) end(out *scribe, around []byte) error {
	if around == nil {
		return nil
	}
	out.meta.Envelope = around
	// Deep Agents leave the messages of a state as they are, and say how many the summary stands for.
	for _, path := range [][]string{{"_summarization_event"}, {"values", "_summarization_event"}} {
		event, ok := dig(around, root(around), path...)
		if !ok || kind(around, event) != '{' {
			continue
		}
		cut := number(around, first(get(around, event, "cutoff_index")))
		summary, _ := get(around, event, "summary_message")
		if kind(around, summary) != '{' || cut < 1 || cut > out.count {
			continue
		}
		m, err := decodeLangChain(summary.of(around))
		if err != nil {
			return out.fault(1, err)
		}
		out.compaction(1, Compaction{Summary: m, Kept: out.count - cut})
	}
	return nil
}

func writeLangChain(out Output) ([]byte, error) {
	all, err := entriesOf(langChainCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	form := langChainForm(all)
	for i, e := range all {
		if e.made != nil {
			all[i].native = form(e.native)
		}
	}
	list := arrayOf(nativesOf(all))
	if out.Meta.Envelope == nil {
		return list, nil
	}
	// The new summary stands among the messages: what says that the old one covers some of them is void.
	around, _ := dropKeys(out.Meta.Envelope, root(out.Meta.Envelope),
		func(key string, _ span) bool { return key == "_summarization_event" })
	return putArray(around, list, langChainPaths[:2]...), nil
}

// langChainForm gives what puts a flat message into the form that the stored messages have.
func langChainForm(all []entry) func([]byte) []byte {
	for _, e := range all {
		v := root(e.native)
		switch {
		case e.made != nil:
			continue
		case text(e.native, first(get(e.native, v, "type"))) == "constructor":
			return constructed
		case langChainBody(e.native, v) != v:
			return wrapped
		}
		break
	}
	return func(flat []byte) []byte { return flat }
}

// wrapped puts a flat message into {"type":…,"data":…}.
func wrapped(flat []byte) []byte {
	typ, _ := get(flat, root(flat), "type")
	b := append([]byte(`{"type":`), typ.of(flat)...)
	return append(append(append(b, `,"data":`...), flat...), '}')
}

// constructed puts a flat message into a constructor.
func constructed(flat []byte) []byte {
	v := root(flat)
	class := map[string]string{
		"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage",
		"tool": "ToolMessage",
	}[text(flat, first(get(flat, v, "type")))]
	b := append([]byte(`{"lc":1,"type":"constructor","id":["langchain","schema","messages",`), quote(class)...)
	return append(append(append(b, `],"kwargs":`...), flat...), '}')
}
