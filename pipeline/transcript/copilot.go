package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Copilot is sessions of GitHub's Copilot CLI: events.jsonl, a chain of events by parentId, and the older object
// with chatMessages in OpenAI's shape. A stored message is one event: user.message, assistant.message,
// tool.execution_complete; or one entry of chatMessages. A tool.execution_start is one only where no assistant
// message asked for it. What the model saw of a user's message is transformedContent.
//
// Written is the same kind of file, with the session's first event, its system prompt, and a
// session.compaction_complete event with the summary, as Copilot CLI records its own; the events that stay hang off
// it. The older object has the summary among chatMessages.
const Copilot Format = "copilot"

type copilotCodec struct{}

func (copilotCodec) Format() Format { return Copilot }

func (copilotCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(Copilot, native, decodeCopilot)
}

func decodeCopilot(native []byte) (pipeline.Message, error) {
	l, err := copilotLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	m := l.message()
	v := rawjson.Root(native)
	data, isEvent := v.Lookup("data")
	if !isEvent {
		return m, nil
	}
	m.ID = v.Get("id").Text()
	switch v.Get("type").Text() {
	case "session.compaction_complete":
		m.Kind = pipeline.KindSummary
	case "user.message":
		// Nothing was typed: the program spoke, as it does to keep an agent going.
		content, ok := data.Lookup("content")
		source := data.Get("source").Text()
		if ok && content.Text() == "" || source != "" && source != "user" {
			m.Kind = pipeline.KindSynthetic
		}
	}
	return m, nil
}

func (copilotCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := rawjson.Check(m.Native); err != nil {
		return nil, parseError(Copilot, "%v", err)
	}
	l, err := copilotLayout(m.Native)
	if err != nil {
		return nil, err
	}
	return l.edit(edits, func(n node, text string) ([]byte, error) {
		if n.part.Type == "function" && !n.value.IsString() {
			return anthropicInput(n, text)
		}
		return rawjson.Quote(text), nil
	})
}

// Make writes an event with what depends on no session: WriteFile gives it an id and a place in the chain.
func (copilotCodec) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		b := fmt.Appendf(nil, `{"type":"tool.execution_complete","data":{"toolCallId":%s`, rawjson.Quote(m.CallID))
		if m.IsError {
			b = fmt.Appendf(b, `,"success":false,"error":{"message":%s`, rawjson.Quote(m.Text))
		} else {
			b = fmt.Appendf(b, `,"success":true,"result":{"content":%s`, rawjson.Quote(m.Text))
		}
		return append(b, "}}}"...), nil
	case pipeline.RoleUser:
		if err := mustSay(m); err != nil {
			return nil, err
		}
		switch m.Kind {
		case pipeline.KindSummary:
			return fmt.Appendf(
				nil, `{"type":"session.compaction_complete","data":{"success":true,"summaryContent":%s}}`,
				rawjson.Quote(m.Text)), nil
		case pipeline.KindOrdinary:
			return fmt.Appendf(nil, `{"type":"user.message","data":{"content":%s,"attachments":[]}}`,
				rawjson.Quote(m.Text)), nil
		}
		return fmt.Appendf(
			nil, `{"type":"user.message","data":{"content":"","transformedContent":%s,"attachments":[]}}`,
			rawjson.Quote(m.Text)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal,
		"what role %s says in an event of Copilot a model wrote: none can be made", m.Role)
}

// copilotLayout reads an event that is for the model, or a chat message, sound JSON.
func copilotLayout(native []byte) (*layout, error) {
	v := rawjson.Root(native)
	data, ok := v.Lookup("data")
	if !ok || !data.IsObject() {
		l, err := openAILayout(native)
		if err != nil {
			return nil, called(Copilot, err)
		}
		return l, nil
	}
	l := &layout{native: native}
	at := data.Members()
	switch typ := v.Get("type").Text(); typ {
	case "user.message":
		l.role = "user"
		l.copilotUser(at)
	case "assistant.message":
		l.role = "assistant"
		l.copilotAssistant(data, at)
	case "tool.execution_start":
		l.role = "assistant"
		l.nodes = []node{l.copilotCall(data, -1, 0)}
	case "tool.execution_complete":
		l.role = "tool"
		l.copilotResult(data, at)
	case "session.compaction_complete":
		l.role = "user"
		if !at["summaryContent"].IsString() {
			return nil, parseError(Copilot, "a %s event has no summaryContent", typ)
		}
		l.nodes = []node{l.literalNode(at["summaryContent"])}
	default:
		return nil, parseError(Copilot, "an event of type %q is no message", typ)
	}
	return l, nil
}

func (l *layout) copilotUser(at map[string]rawjson.Value) {
	said := at["transformedContent"]
	if !said.IsString() {
		said = at["content"]
	}
	if said.IsString() && !said.IsEmpty() {
		l.nodes = append(l.nodes, l.literalNode(said))
	}
	files := at["attachments"]
	if !files.IsArray() {
		return
	}
	els := files.Elements()
	row := l.addList(newList(els))
	for i, el := range els {
		// What is only named (a file, a selection) stands in the text already.
		if !el.IsObject() || el.Get("type").Text() != "blob" {
			continue
		}
		n := node{list: row, index: i, block: true, fixed: true, part: pipeline.Part{
			Kind: pipeline.PartFile, Type: "blob", MediaType: el.Get("mimeType").Text(),
			Name: el.Get("displayName").Text(), Raw: el.Raw(),
		}}
		if strings.HasPrefix(n.part.MediaType, "image/") {
			n.part.Kind = pipeline.PartImage
		}
		fromAddress(&n.part, copilotCodec{}.address(n.part))
		l.nodes = append(l.nodes, n)
	}
}

func (l *layout) copilotAssistant(data rawjson.Value, at map[string]rawjson.Value) {
	var pairs []rawjson.Value
	place := map[string]int{}
	for key, f := range data.Fields() {
		place[string(key)] = len(pairs)
		pairs = append(pairs, f.Pair)
	}
	members := l.addList(newList(pairs))
	if s := at["reasoningText"].Text(); s != "" {
		n := node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: at["reasoningText"].Raw()},
			list: members, index: place["reasoningText"],
		}
		if _, ok := at["reasoningOpaque"]; ok { // the same, as the vendor wants it back
			n.twins = []node{{list: members, index: place["reasoningOpaque"]}}
		}
		l.nodes = append(l.nodes, n)
	}
	if said := at["content"]; said.IsString() && !said.IsEmpty() {
		l.nodes = append(l.nodes, l.literalNode(said))
	}
	if calls := at["toolRequests"]; calls.IsArray() {
		els := calls.Elements()
		row := l.addList(newList(els))
		for i, el := range els {
			if el.IsObject() {
				l.nodes = append(l.nodes, l.copilotCall(el, row, i))
			}
		}
	}
}

func (l *layout) copilotCall(v rawjson.Value, row, index int) node {
	n := node{
		list: row, index: index, insert: v.End() - 1, key: "arguments",
		part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "function", Raw: v.Raw()},
	}
	for key, f := range v.Fields() {
		switch string(key) {
		case "toolCallId":
			n.part.CallID = f.Value.Text()
		case "name", "toolName":
			n.part.Name = f.Value.Text()
		case "type":
			n.part.Type = cmp.Or(f.Value.Text(), n.part.Type)
		case "arguments":
			n.value, n.part.Input = f.Value, f.Value.TextOrRaw()
		}
	}
	if row < 0 { // an event that is nothing but the call
		n.vacant = "{}"
	}
	return n
}

func (l *layout) copilotResult(data rawjson.Value, at map[string]rawjson.Value) {
	n := node{list: -1, part: pipeline.Part{
		Kind: pipeline.PartToolResult, CallID: at["toolCallId"].Text(),
		IsError: at["success"].IsFalse(),
	}}
	said, ok := data.Lookup("result", "content")
	if !ok || !said.IsString() {
		said, ok = data.Lookup("error", "message")
	}
	if ok && said.IsString() {
		n.value = said
		if !said.IsEmpty() {
			n.content = []node{l.literalNode(said)}
		}
	} else {
		n.insert, n.key = data.End()-1, "result"
		n.as = func(text string) ([]byte, error) {
			return fmt.Appendf(nil, `{"content":%s}`, rawjson.Quote(text)), nil
		}
	}
	l.nodes = []node{n}
}

func (copilotCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if url := openAIURL(p); url != "" {
		return url
	}
	return base64URL(p.MediaType, rawjson.Root(b).Get("data").Text())
}

// ---- files

func detectCopilot(s rawjson.Outline) bool {
	return s.Has("chatMessages") && s.Has("sessionId", "timeline") ||
		s.Has("data") && s.Has("type=session.start", "type=user.message", "type=assistant.message",
			"type=assistant.turn_start", "type=tool.execution_start")
}

func openCopilot(s *stream, o Options) source {
	if rawjson.OutlineOf(s.window()).Has("chatMessages", "timeline") {
		return openArrays(s, o, Meta{Format: Copilot}, copilotChat{}, "chatMessages")
	}
	return openLines(s, o, Meta{Format: Copilot}, &copilotSession{asked: map[string]bool{}})
}

// copilotChat reads the older files.
type copilotChat struct{}

func (copilotChat) record(out *scribe, b []byte, line int) error {
	m, err := decodeCopilot(b)
	if err == nil {
		out.message(line, m)
	}
	return err
}

func (copilotChat) end(out *scribe, around []byte) error {
	if around != nil {
		out.meta.Envelope, out.meta.ID = around, rawjson.Root(around).Get("sessionId").Text()
	}
	return nil
}

// copilotSession reads events.
type copilotSession struct {
	// asked are the calls of the assistant's last messages that did not start yet.
	asked  map[string]bool
	start  []byte // the first event
	system []byte // the event with the system prompt, the last of them
	// sinceStart counts the messages since a compaction began, which goes on beside the session; -1: none runs.
	running bool
	since   int
}

func (c *copilotSession) record(out *scribe, b []byte, line int) error {
	v := rawjson.Root(b)
	typ := v.Get("type").Text()
	data, _ := v.Lookup("data")
	if typ == "" || !data.IsObject() {
		return errors.New("an event without a type or without data")
	}
	field := func(key string) string { return data.Get(key).Text() }
	if parent, ok := data.Lookup("parentToolCallId"); ok && parent.IsString() {
		out.note(line, NoteSidechain, typ, "a subagent's, no part of the main conversation")
		return nil
	}
	switch typ {
	case "user.message", "assistant.message":
		return c.message(out, b, data, line)
	case "tool.execution_start":
		if id := field("toolCallId"); c.asked[id] || id == "" {
			delete(c.asked, id)
			break
		}
		return c.message(out, b, data, line)
	case "tool.execution_complete":
		return c.message(out, b, data, line)
	case "session.start", "session.resume":
		if c.start == nil {
			c.start = b
			out.meta.ID = field("sessionId")
		}
		out.meta.Model = cmp.Or(field("selectedModel"), out.meta.Model)
	case "session.model_change":
		out.meta.Model = cmp.Or(field("newModel"), out.meta.Model)
	case "system.message":
		if prompt, _ := data.Lookup("content"); prompt.IsString() {
			out.meta.System, c.system = prompt.Raw(), b
			return nil
		}
	case "session.compaction_start":
		c.running, c.since = true, out.count
	case "session.compaction_complete":
		return c.compaction(out, b, data, line)
	case "session.truncation":
		out.note(line, NoteBoundary, typ, "messages were dropped without a summary; they are kept here")
		return nil
	case "session.shutdown":
		if model := field("currentModel"); out.begun {
			out.usage(line, &Usage{Used: data.Get("currentTokens").Count(), Model: model})
		}
	}
	out.note(line, NoteRecord, typ, "an event of the client, no message")
	return nil
}

func (c *copilotSession) message(out *scribe, b []byte, data rawjson.Value, line int) error {
	m, err := decodeCopilot(b)
	if err != nil {
		return err
	}
	if m.Role == pipeline.RoleAssistant && rawjson.Root(b).Get("type").Text() == "assistant.message" {
		clear(c.asked)
		for _, id := range m.Calls() {
			c.asked[id] = true
		}
	}
	if model := data.Get("model").Text(); model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	return nil
}

func (c *copilotSession) compaction(out *scribe, b []byte, data rawjson.Value, line int) error {
	ok, _ := data.Lookup("success")
	summary, _ := data.Lookup("summaryContent")
	if ok.IsFalse() || !summary.IsString() || summary.IsEmpty() {
		out.note(line, NoteBoundary, "session.compaction_complete", "it has no summary, so it covers nothing")
		return nil
	}
	m, err := decodeCopilot(b)
	if err != nil {
		return err
	}
	x := Compaction{
		Summary: m, TokensBefore: data.Get("preCompactionTokens").Count(),
		TokensAfter: data.Get("postCompactionTokens").Count(),
	}
	// It runs beside the session: what came since it began is not in the summary.
	if c.running {
		x.Kept = out.count - c.since
	}
	c.running = false
	out.compaction(line, x)
	return nil
}

func (c *copilotSession) end(out *scribe, _ []byte) error {
	var head [][]byte
	for _, b := range [][]byte{c.start, c.system} {
		if b != nil {
			head = append(head, b)
		}
	}
	if head != nil {
		out.meta.Envelope = lineArray(head...)
	}
	return nil
}

// ---- writing

func writeCopilot(out Output) ([]byte, error) {
	all, err := entriesOf(copilotCodec{}, out.Items)
	if err != nil {
		return nil, err
	}
	if e := out.Meta.Envelope; len(e) > 0 && e[0] == '{' {
		return writeCopilotChat(e, all)
	}
	head := envelopeLines(out.Meta.Envelope)
	// What is made has the time of the first event that is kept, else of the session's: no clock is read.
	at := []byte(`""`)
	for _, event := range head {
		if t, ok := rawjson.Root(event).Lookup("timestamp"); ok {
			at = t.Raw()
		}
	}
	if t := firstStored(all, "timestamp"); t != nil {
		at = t
	}
	var b bytes.Buffer
	var prev []byte // JSON of the id of the event before, nil for none
	put := func(event []byte) {
		event = rawjson.OneLine(event)
		if parent, ok := rawjson.Root(event).Lookup("parentId"); ok && !bytes.Equal(parent.Raw(), orNull(prev)) {
			// The chain has lost the events between: the only value that changes.
			event = parent.With(orNull(prev))
		}
		if id, ok := rawjson.Root(event).Lookup("id"); ok {
			prev = id.Raw()
		}
		b.Write(event)
		b.WriteByte('\n')
	}
	for _, event := range head {
		put(event)
	}
	for i, e := range all {
		if e.made != nil {
			e.native = copilotMade(e.native, i, at, out.TokensBefore)
		}
		put(e.native)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// copilotMade gives an event of our own what every event has.
func copilotMade(event []byte, n int, at []byte, tokensBefore int) []byte {
	if summary, ok := rawjson.Root(event).Lookup("data", "summaryContent"); ok && tokensBefore > 0 {
		event = rawjson.Apply(event, rawjson.Insert(summary.End(),
			fmt.Appendf(nil, `,"preCompactionTokens":%d`, tokensBefore)))
	}
	return rawjson.AddPairs(event, `,"id":"%s","timestamp":%s,"parentId":null`,
		madeUUID(string(event), strconv.Itoa(n)), at)
}

// writeCopilotChat writes the older object. Its chat messages are OpenAI's.
func writeCopilotChat(around []byte, all []entry) ([]byte, error) {
	for i, e := range all {
		if e.made == nil {
			continue
		}
		b, err := openAICodec{}.Make(*e.made)
		if err != nil {
			return nil, err
		}
		all[i].native = b
	}
	return rawjson.PutArray(around, rawjson.ArrayOf(nativesOf(all)), "chatMessages"), nil
}
