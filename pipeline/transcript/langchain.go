package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
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
	body := langChainBody(rawjson.Root(native))
	m.ID = body.Get("id").Text()
	if source, _ := body.Lookup("additional_kwargs", "lc_source"); source.Text() == "summarization" {
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
	b := fmt.Appendf(nil, `{"type":%s,"content":%s`, rawjson.Quote(typ), rawjson.Quote(m.Text))
	switch {
	case m.Role == pipeline.RoleTool:
		b = fmt.Appendf(b, `,"tool_call_id":%s,"name":%s`, rawjson.Quote(m.CallID), rawjson.Quote(m.Name))
		if m.IsError {
			b = append(b, `,"status":"error"`...)
		}
		return append(b, "}"...), nil
	case m.Kind == pipeline.KindSummary:
		b = append(b, `,"additional_kwargs":{"lc_source":"summarization"}`...)
	}
	if err := mustSay(m); err != nil {
		return nil, err
	}
	return append(b, "}"...), nil
}

// langChainBody is the object with the fields of a message.
func langChainBody(v rawjson.Value) rawjson.Value {
	for _, key := range []string{"kwargs", "data"} {
		if at, ok := v.Lookup(key); ok && at.IsObject() {
			return at
		}
	}
	return v
}

// langChainRole tells the role from the type, or from the name of the class.
func langChainRole(v, body rawjson.Value) string {
	name := v.Get("type").Text()
	if name == "constructor" {
		name = body.Get("type").Text()
		if path, ok := v.Lookup("id"); ok && path.IsArray() {
			if els := path.Elements(); len(els) > 0 {
				name = els[len(els)-1].Text()
			}
		}
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Chunk"), "Message")
	if name == "Chat" || name == "chat" {
		name = body.Get("role").Text()
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
	v := rawjson.Root(native)
	if !v.IsObject() {
		return nil, parseError(LangChain, "it is no object")
	}
	body := langChainBody(v)
	if l.role = langChainRole(v, body); l.role == "" {
		return nil, parseError(LangChain, "its type is not human, ai, system, tool or one of their classes")
	}
	at := body.Members()
	nodes, err := l.langChainContent(at["content"])
	if err != nil {
		return nil, err
	}
	if l.role == "tool" {
		l.nodes = []node{{
			part: pipeline.Part{
				Kind: pipeline.PartToolResult, CallID: at["tool_call_id"].Text(), Name: at["name"].Text(),
				IsError: at["status"].Text() == "error",
			},
			list: -1, value: at["content"], insert: body.End() - 1, content: nodes,
		}}
		return l, nil
	}
	if reasoning, ok := at["additional_kwargs"].Lookup("reasoning_content"); ok && reasoning.Text() != "" {
		l.nodes = append(l.nodes, node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Text: reasoning.Text(), Raw: reasoning.Raw()},
			list: -1, value: reasoning, vacant: `""`,
		})
	}
	l.nodes = append(l.nodes, nodes...)
	l.langChainCalls(at["tool_calls"], at["additional_kwargs"])
	return l, nil
}

// langChainContent reads a content: a string, or an array of strings and of blocks in the shape of a vendor or of
// LangChain's own standard blocks.
func (l *layout) langChainContent(v rawjson.Value) ([]node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []node{l.literalNode(v)}, nil
	case rawjson.Array:
		els := v.Elements()
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

func (l *layout) langChainBlock(v rawjson.Value) (node, error) {
	n, err := l.block(LangChain, v)
	if err != nil || !v.IsObject() {
		return n, err
	}
	p := &n.part
	field := func(keys ...string) string {
		for _, key := range keys {
			if s := v.Get(key).Text(); s != "" {
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
		if at, ok := v.Lookup("reasoning_content", "text"); ok {
			p.Text = at.Text()
		}
	case "image", "image_url":
		p.Kind = pipeline.PartImage
	case "file", "audio", "video", "text-plain", "input_audio", "document":
		p.Kind, p.Name = pipeline.PartFile, field("filename", "title")
	case "tool_call":
		p.Kind, p.CallID, p.Name = pipeline.PartToolCall, field("id"), field("name")
		n.value, _ = v.Lookup("args")
		p.Input, n.block, n.insert, n.key = n.value.TextOrRaw(), false, v.End()-1, "args"
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
func (l *layout) langChainCalls(calls, extra rawjson.Value) {
	if !calls.IsArray() {
		return
	}
	els := calls.Elements()
	row := l.addList(newList(els))
	var raw []rawjson.Value
	rawRow := -1
	if list, ok := extra.Lookup("tool_calls"); ok && list.IsArray() {
		raw = list.Elements()
		rawRow = l.addList(newList(raw))
	}
	for i, el := range els {
		if !el.IsObject() {
			continue
		}
		args, _ := el.Lookup("args")
		n := node{
			part: pipeline.Part{
				Kind: pipeline.PartToolCall, CallID: el.Get("id").Text(),
				Name: el.Get("name").Text(), Type: el.Get("type").Text(),
				Input: args.TextOrRaw(), Raw: el.Raw(),
			},
			list: row, index: i, value: args, insert: el.End() - 1, key: "args",
		}
		for j, r := range raw {
			if id := r.Get("id").Text(); id == n.part.CallID && id != "" {
				arguments, _ := r.Lookup("function", "arguments")
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

func quoted1(text string) ([]byte, error) { return rawjson.Quote(text), nil }

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
		if s := rawjson.Root(b).Get(key).Text(); s != "" {
			return base64URL(p.MediaType, s)
		}
	}
	return ""
}

// ---- files

var langChainPaths = []string{"messages", "values.messages", ""}

func detectLangChain(s rawjson.Outline) bool {
	for _, at := range []string{"[]", "messages[]", "values.messages[]"} {
		if s.Has(at+".lc") && s.Has(at+".kwargs") {
			return true
		}
		if s.Has(at+".role") || s.Has(at+".ts") {
			continue
		}
		if s.Has(at+".type=human", at+".type=ai") && s.Has(at+".content", at+".data.content") {
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
	v := rawjson.Root(b)
	body := langChainBody(v)
	if typ := v.Get("type").Text(); typ == "remove" || typ == "RemoveMessage" {
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
	if data, ok := body.Lookup("response_metadata"); ok {
		for _, key := range []string{"model", "model_name"} {
			if s := data.Get(key).Text(); s != "" {
				model = s
			}
		}
		if vendor := protocolOf(data.Get("model_provider").Text()); vendor != "" {
			out.meta.Vendor = vendor
		}
	}
	if model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	if at, ok := body.Lookup("usage_metadata"); ok && at.IsObject() {
		out.usage(line, langChainUsage(at, model))
	}
	return nil
}

// langChainUsage reads usage_metadata, whose input_tokens count what came from the cache too.
func langChainUsage(at rawjson.Value, model string) *Usage {
	u := &Usage{Model: model, Output: at.Get("output_tokens").Count()}
	all := at.Get("input_tokens").Count()
	if d, ok := at.Lookup("input_token_details"); ok {
		u.CacheRead, u.CacheCreation = d.Get("cache_read").Count(),
			d.Get("cache_creation").Count()
	}
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	if u.Used = at.Get("total_tokens").Count(); u.Used == 0 {
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
		event, ok := rawjson.Root(around).Lookup(path...)
		if !ok || !event.IsObject() {
			continue
		}
		cut := event.Get("cutoff_index").Count()
		summary, _ := event.Lookup("summary_message")
		if !summary.IsObject() || cut < 1 || cut > out.count {
			continue
		}
		m, err := decodeLangChain(summary.Raw())
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
	list := rawjson.ArrayOf(nativesOf(all))
	if out.Meta.Envelope == nil {
		return list, nil
	}
	// The new summary stands among the messages: what says that the old one covers some of them is void.
	around, _ := rawjson.Root(out.Meta.Envelope).DropKeys(func(key string,
		_ rawjson.Value,
	) bool {
		return key == "_summarization_event"
	})
	return rawjson.PutArray(around, list, langChainPaths[:2]...), nil
}

// langChainForm gives what puts a flat message into the form that the stored messages have.
func langChainForm(all []entry) func([]byte) []byte {
	for _, e := range all {
		v := rawjson.Root(e.native)
		switch {
		case e.made != nil:
			continue
		case v.Get("type").Text() == "constructor":
			return constructed
		case langChainBody(v).Start() != v.Start():
			return wrapped
		}
		break
	}
	return func(flat []byte) []byte { return flat }
}

// wrapped puts a flat message into {"type":…,"data":…}.
func wrapped(flat []byte) []byte {
	typ, _ := rawjson.Root(flat).Lookup("type")
	return fmt.Appendf(nil, `{"type":%s,"data":%s}`, typ.Raw(), flat)
}

// constructed puts a flat message into a constructor.
func constructed(flat []byte) []byte {
	v := rawjson.Root(flat)
	class := map[string]string{
		"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage",
		"tool": "ToolMessage",
	}[v.Get("type").Text()]
	return fmt.Appendf(nil, `{"lc":1,"type":"constructor","id":["langchain","schema","messages",%s],"kwargs":%s}`,
		rawjson.Quote(class), flat)
}
