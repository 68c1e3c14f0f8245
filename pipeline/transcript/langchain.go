package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/openai"
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

type langChain struct{}

func (langChain) name() Format { return LangChain }

func (f langChain) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	body := f.body(rawjson.Root(l.Native))
	m.ID = body.Get("id").Text()
	if source, _ := body.Lookup("additional_kwargs", "lc_source"); source.Text() == "summarization" {
		m.Kind = pipeline.KindSummary
	}
	return m
}

// Make writes the flat form, which LangChain takes wherever it takes messages. WriteFile puts it into the form of
// the messages beside it.
func (langChain) Make(m pipeline.Made) ([]byte, error) {
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
	if err := layout.MustSay(m); err != nil {
		return nil, err
	}
	return append(b, "}"...), nil
}

// body is the object with the fields of a message.
func (langChain) body(v rawjson.Value) rawjson.Value {
	for _, key := range []string{"kwargs", "data"} {
		if at, ok := v.Lookup(key); ok && at.IsObject() {
			return at
		}
	}
	return v
}

// role tells the role from the type, or from the name of the class.
func (langChain) role(v, body rawjson.Value) string {
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

// read reads a message of one of the three forms, sound JSON.
func (f langChain) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	body := f.body(v)
	if l.Role = f.role(v, body); l.Role == "" {
		return l.Errorf("its type is not human, ai, system, tool or one of their classes")
	}
	at := body.Members()
	nodes, err := f.content(l, at["content"])
	if err != nil {
		return err
	}
	if l.Role == "tool" {
		l.Nodes = []layout.Node{{
			Part: pipeline.Part{
				Kind: pipeline.PartToolResult, CallID: at["tool_call_id"].Text(), Name: at["name"].Text(),
				IsError: at["status"].Text() == "error",
			},
			List: -1, Value: at["content"], Insert: body.End() - 1, Content: nodes,
		}}
		return nil
	}
	if reasoning, ok := at["additional_kwargs"].Lookup("reasoning_content"); ok && reasoning.Text() != "" {
		l.Nodes = append(l.Nodes, layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Text: reasoning.Text(), Raw: reasoning.Raw()},
			List: -1, Value: reasoning, Vacant: `""`,
		})
	}
	l.Nodes = append(l.Nodes, nodes...)
	f.calls(l, at["tool_calls"], at["additional_kwargs"])
	return nil
}

// content reads a content: a string, or an array of strings and of blocks in the shape of a vendor or of
// LangChain's own standard blocks.
func (f langChain) content(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	switch v.Kind() {
	case rawjson.Missing, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if v.IsEmpty() {
			return nil, nil
		}
		return []layout.Node{layout.Text(v)}, nil
	case rawjson.Array:
		els := v.Elements()
		row := l.AddList(layout.NewList(els))
		nodes := make([]layout.Node, 0, len(els))
		for i, el := range els {
			n, err := f.block(l, el)
			if err != nil {
				return nil, err
			}
			n.List, n.Index = row, i
			nodes = append(nodes, n)
		}
		return nodes, nil
	}
	return nil, l.Errorf("its content is neither a string nor an array of blocks")
}

func (f langChain) block(l *layout.Layout, v rawjson.Value) (layout.Node, error) {
	n, err := anthropic.ReadBlock(l, v)
	if err != nil || !v.IsObject() {
		return n, err
	}
	p := &n.Part
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
		n.Value, _ = v.Lookup("args")
		p.Input, n.Block, n.Insert, n.Key = n.Value.TextOrRaw(), false, v.End()-1, "args"
	}
	if p.Kind == pipeline.PartImage || p.Kind == pipeline.PartFile {
		if s := field("mime_type", "media_type"); s != "" {
			p.MediaType = s
		}
		media.FromAddress(p, f.address(*p))
	}
	return n, nil
}

// calls reads tool_calls. A call that stands in the content as well, as a block of its vendor's, or in
// additional_kwargs, is one call in several places.
func (f langChain) calls(l *layout.Layout, calls, extra rawjson.Value) {
	if !calls.IsArray() {
		return
	}
	els := calls.Elements()
	row := l.AddList(layout.NewList(els))
	var raw []rawjson.Value
	rawRow := -1
	if list, ok := extra.Lookup("tool_calls"); ok && list.IsArray() {
		raw = list.Elements()
		rawRow = l.AddList(layout.NewList(raw))
	}
	for i, el := range els {
		if !el.IsObject() {
			continue
		}
		args, _ := el.Lookup("args")
		n := layout.Node{
			Part: pipeline.Part{
				Kind: pipeline.PartToolCall, CallID: el.Get("id").Text(),
				Name: el.Get("name").Text(), Type: el.Get("type").Text(),
				Input: args.TextOrRaw(), Raw: el.Raw(),
			},
			List: row, Index: i, Value: args, Insert: el.End() - 1, Key: "args",
		}
		for j, r := range raw {
			if id := r.Get("id").Text(); id == n.Part.CallID && id != "" {
				arguments, _ := r.Lookup("function", "arguments")
				n.Twins = append(n.Twins, layout.Node{List: rawRow, Index: j, Value: arguments, As: quoted1})
			}
		}
		if at := f.callNode(l, n.Part.CallID); at >= 0 {
			// The block comes first: it shows where among the texts the call was made.
			l.Nodes[at].Twins = append(n.Twins, n)
			continue
		}
		l.Nodes = append(l.Nodes, n)
	}
}

func quoted1(text string) ([]byte, error) { return rawjson.Quote(text), nil }

// callNode finds the call of an id that has no twin yet, -1 for none.
func (langChain) callNode(l *layout.Layout, id string) int {
	for i, n := range l.Nodes {
		if n.Part.Kind == pipeline.PartToolCall && n.Part.CallID == id && id != "" && n.Twins == nil {
			return i
		}
	}
	return -1
}

// address reads the shapes of OpenAI, of Anthropic and of the standard blocks.
func (langChain) address(p pipeline.Part) string {
	if url := openai.Address(p); url != "" {
		return url
	}
	if url := anthropic.Address(p); url != "" {
		return url
	}
	b := []byte(p.Raw)
	for _, key := range []string{"base64", "data", "url"} {
		if s := rawjson.Root(b).Get(key).Text(); s != "" {
			return media.Base64URL(p.MediaType, s)
		}
	}
	return ""
}

// ---- files

var langChainPaths = []string{"messages", "values.messages", ""}

func (langChain) detect(s rawjson.Outline) bool {
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

func (langChain) open(s *jsonstream.Reader, o Options) source {
	return openArrays(s, o, Meta{Format: LangChain}, langChainMessages{}, langChainPaths...)
}

type langChainMessages struct{}

func (langChainMessages) record(out *scribe, b []byte, line int) error {
	v := rawjson.Root(b)
	body := langChain{}.body(v)
	if typ := v.Get("type").Text(); typ == "remove" || typ == "RemoveMessage" {
		out.note(line, NoteRecord, typ, "it takes a message out of a state, and says nothing")
		return nil
	}
	m, err := decode(langChain{}, b)
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
		out.usage(line, langChain{}.usage(at, model))
	}
	return nil
}

// usage reads usage_metadata, whose input_tokens count what came from the cache too.
func (langChain) usage(at rawjson.Value, model string) *Usage {
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
		m, err := decode(langChain{}, summary.Raw())
		if err != nil {
			return out.fault(1, err)
		}
		out.compaction(1, Compaction{Summary: m, Kept: out.count - cut})
	}
	return nil
}

func (f langChain) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	form := f.form(all)
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

// form gives what puts a flat message into the form that the stored messages have.
func (f langChain) form(all []entry) func([]byte) []byte {
	for _, e := range all {
		v := rawjson.Root(e.native)
		switch {
		case e.made != nil:
			continue
		case v.Get("type").Text() == "constructor":
			return f.constructor
		case f.body(v).Start() != v.Start():
			return f.dict
		}
		break
	}
	return func(flat []byte) []byte { return flat }
}

// dict puts a flat message into {"type":…,"data":…}.
func (langChain) dict(flat []byte) []byte {
	typ, _ := rawjson.Root(flat).Lookup("type")
	return fmt.Appendf(nil, `{"type":%s,"data":%s}`, typ.Raw(), flat)
}

// constructor puts a flat message into a constructor.
func (langChain) constructor(flat []byte) []byte {
	v := rawjson.Root(flat)
	class := map[string]string{
		"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage",
		"tool": "ToolMessage",
	}[v.Get("type").Text()]
	return fmt.Appendf(nil, `{"lc":1,"type":"constructor","id":["langchain","schema","messages",%s],"kwargs":%s}`,
		rawjson.Quote(class), flat)
}
