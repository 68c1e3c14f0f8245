package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
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
	v := root(native)
	data, isEvent := get(native, v, "data")
	if !isEvent {
		return m, nil
	}
	m.ID = text(native, first(get(native, v, "id")))
	switch text(native, first(get(native, v, "type"))) {
	case "session.compaction_complete":
		m.Kind = pipeline.KindSummary
	case "user.message":
		// Nothing was typed: the program spoke, as it does to keep an agent going.
		content, ok := get(native, data, "content")
		source := text(native, first(get(native, data, "source")))
		if ok && text(native, content) == "" || source != "" && source != "user" {
			m.Kind = pipeline.KindSynthetic
		}
	}
	return m, nil
}

func (copilotCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := whole(m.Native); err != nil {
		return nil, parseError(Copilot, "%v", err)
	}
	l, err := copilotLayout(m.Native)
	if err != nil {
		return nil, err
	}
	return l.edit(edits, func(n node, text string) ([]byte, error) {
		if n.part.Type == "function" && kind(l.native, n.value) != '"' {
			return anthropicInput(n, text)
		}
		return quote(text), nil
	})
}

// Make writes an event with what depends on no session: WriteFile gives it an id and a place in the chain.
func (copilotCodec) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		b := append([]byte(`{"type":"tool.execution_complete","data":{"toolCallId":`), quote(m.CallID)...)
		if m.IsError {
			b = append(append(b, `,"success":false,"error":{"message":`...), quote(m.Text)...)
		} else {
			b = append(append(b, `,"success":true,"result":{"content":`...), quote(m.Text)...)
		}
		return append(b, "}}}"...), nil
	case pipeline.RoleUser:
		if err := mustSay(m); err != nil {
			return nil, err
		}
		switch m.Kind {
		case pipeline.KindSummary:
			return append(
				append([]byte(`{"type":"session.compaction_complete","data":{"success":true,"summaryContent":`),
					quote(m.Text)...), "}}"...), nil
		case pipeline.KindOrdinary:
			return append(append([]byte(`{"type":"user.message","data":{"content":`), quote(m.Text)...),
				`,"attachments":[]}}`...), nil
		}
		return append(append([]byte(`{"type":"user.message","data":{"content":"","transformedContent":`),
			quote(m.Text)...), `,"attachments":[]}}`...), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal,
		"what role %s says in an event of Copilot a model wrote: none can be made", m.Role)
}

// copilotLayout reads an event that is for the model, or a chat message, sound JSON.
func copilotLayout(native []byte) (*layout, error) {
	b, v := native, root(native)
	data, ok := get(b, v, "data")
	if !ok || kind(b, data) != '{' {
		l, err := openAILayout(native)
		if err != nil {
			return nil, called(Copilot, err)
		}
		return l, nil
	}
	l := &layout{native: native}
	at := map[string]span{}
	for key, f := range fields(b, data) {
		at[string(key)] = f.value
	}
	switch typ := text(b, first(get(b, v, "type"))); typ {
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
		if kind(b, at["summaryContent"]) != '"' {
			return nil, parseError(Copilot, "a %s event has no summaryContent", typ)
		}
		l.nodes = []node{l.literalNode(at["summaryContent"])}
	default:
		return nil, parseError(Copilot, "an event of type %q is no message", typ)
	}
	return l, nil
}

func (l *layout) copilotUser(at map[string]span) {
	b := l.native
	said := at["transformedContent"]
	if kind(b, said) != '"' {
		said = at["content"]
	}
	if kind(b, said) == '"' && said.end-said.start > 2 {
		l.nodes = append(l.nodes, l.literalNode(said))
	}
	files := at["attachments"]
	if kind(b, files) != '[' {
		return
	}
	els := elements(b, files)
	row := l.addList(newList(els))
	for i, el := range els {
		// What is only named (a file, a selection) stands in the text already.
		if kind(b, el) != '{' || text(b, first(get(b, el, "type"))) != "blob" {
			continue
		}
		n := node{list: row, index: i, block: true, fixed: true, part: pipeline.Part{
			Kind: pipeline.PartFile, Type: "blob", MediaType: text(b, first(get(b, el, "mimeType"))),
			Name: text(b, first(get(b, el, "displayName"))), Raw: el.of(b),
		}}
		if strings.HasPrefix(n.part.MediaType, "image/") {
			n.part.Kind = pipeline.PartImage
		}
		fromAddress(&n.part, copilotCodec{}.address(n.part))
		l.nodes = append(l.nodes, n)
	}
}

func (l *layout) copilotAssistant(data span, at map[string]span) {
	b := l.native
	var pairs []span
	place := map[string]int{}
	for key, f := range fields(b, data) {
		place[string(key)] = len(pairs)
		pairs = append(pairs, f.pair)
	}
	members := l.addList(newList(pairs))
	if s := text(b, at["reasoningText"]); s != "" {
		n := node{
			part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: at["reasoningText"].of(b)},
			list: members, index: place["reasoningText"],
		}
		if _, ok := at["reasoningOpaque"]; ok { // the same, as the vendor wants it back
			n.twins = []node{{list: members, index: place["reasoningOpaque"]}}
		}
		l.nodes = append(l.nodes, n)
	}
	if said := at["content"]; kind(b, said) == '"' && said.end-said.start > 2 {
		l.nodes = append(l.nodes, l.literalNode(said))
	}
	if calls := at["toolRequests"]; kind(b, calls) == '[' {
		els := elements(b, calls)
		row := l.addList(newList(els))
		for i, el := range els {
			if kind(b, el) == '{' {
				l.nodes = append(l.nodes, l.copilotCall(el, row, i))
			}
		}
	}
}

func (l *layout) copilotCall(v span, row, index int) node {
	b := l.native
	n := node{
		list: row, index: index, insert: v.end - 1, key: "arguments",
		part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "function", Raw: v.of(b)},
	}
	for key, f := range fields(b, v) {
		switch string(key) {
		case "toolCallId":
			n.part.CallID = text(b, f.value)
		case "name", "toolName":
			n.part.Name = text(b, f.value)
		case "type":
			n.part.Type = cmp.Or(text(b, f.value), n.part.Type)
		case "arguments":
			n.value, n.part.Input = f.value, inputText(b, f.value)
		}
	}
	if row < 0 { // an event that is nothing but the call
		n.vacant = "{}"
	}
	return n
}

func (l *layout) copilotResult(data span, at map[string]span) {
	b := l.native
	n := node{list: -1, part: pipeline.Part{
		Kind: pipeline.PartToolResult, CallID: text(b, at["toolCallId"]),
		IsError: kind(b, at["success"]) == 'f',
	}}
	said, ok := dig(b, data, "result", "content")
	if !ok || kind(b, said) != '"' {
		said, ok = dig(b, data, "error", "message")
	}
	if ok && kind(b, said) == '"' {
		n.value = said
		if said.end-said.start > 2 {
			n.content = []node{l.literalNode(said)}
		}
	} else {
		n.insert, n.key = data.end-1, "result"
		n.as = func(text string) ([]byte, error) {
			return append(append([]byte(`{"content":`), quote(text)...), '}'), nil
		}
	}
	l.nodes = []node{n}
}

func (copilotCodec) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if url := openAIURL(p); url != "" {
		return url
	}
	return base64URL(p.MediaType, text(b, first(get(b, root(b), "data"))))
}

// ---- files

func detectCopilot(s sketched) bool {
	return s.has("chatMessages") && s.has("sessionId", "timeline") ||
		s.has("data") && s.has("type=session.start", "type=user.message", "type=assistant.message",
			"type=assistant.turn_start", "type=tool.execution_start")
}

func openCopilot(s *stream, o Options) source {
	if sketch(s.window()).has("chatMessages", "timeline") {
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
		out.meta.Envelope, out.meta.ID = around, text(around, first(get(around, root(around), "sessionId")))
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
	v := root(b)
	typ := text(b, first(get(b, v, "type")))
	data, _ := get(b, v, "data")
	if typ == "" || kind(b, data) != '{' {
		return errors.New("an event without a type or without data")
	}
	field := func(key string) string { return text(b, first(get(b, data, key))) }
	if parent, ok := get(b, data, "parentToolCallId"); ok && kind(b, parent) == '"' {
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
		if prompt, _ := get(b, data, "content"); kind(b, prompt) == '"' {
			out.meta.System, c.system = prompt.of(b), b
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
			out.usage(line, &Usage{Used: number(b, first(get(b, data, "currentTokens"))), Model: model})
		}
	}
	out.note(line, NoteRecord, typ, "an event of the client, no message")
	return nil
}

func (c *copilotSession) message(out *scribe, b []byte, data span, line int) error {
	m, err := decodeCopilot(b)
	if err != nil {
		return err
	}
	if m.Role == pipeline.RoleAssistant && text(b, first(get(b, root(b), "type"))) == "assistant.message" {
		clear(c.asked)
		for _, id := range m.Calls() {
			c.asked[id] = true
		}
	}
	if model := text(b, first(get(b, data, "model"))); model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	return nil
}

func (c *copilotSession) compaction(out *scribe, b []byte, data span, line int) error {
	ok, _ := get(b, data, "success")
	summary, _ := get(b, data, "summaryContent")
	if kind(b, ok) == 'f' || kind(b, summary) != '"' || summary.end-summary.start == 2 {
		out.note(line, NoteBoundary, "session.compaction_complete", "it has no summary, so it covers nothing")
		return nil
	}
	m, err := decodeCopilot(b)
	if err != nil {
		return err
	}
	x := Compaction{
		Summary: m, TokensBefore: number(b, first(get(b, data, "preCompactionTokens"))),
		TokensAfter: number(b, first(get(b, data, "postCompactionTokens"))),
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
		if t, ok := get(event, root(event), "timestamp"); ok {
			at = t.of(event)
		}
	}
	if t := firstStored(all, "timestamp"); t != nil {
		at = t
	}
	var b bytes.Buffer
	var prev []byte // JSON of the id of the event before, nil for none
	put := func(event []byte) {
		event = oneLine(event)
		if parent, ok := get(event, root(event), "parentId"); ok && !bytes.Equal(parent.of(event), orNull(prev)) {
			// The chain has lost the events between: the only value that changes.
			event = apply(event, []splice{{parent, orNull(prev)}})
		}
		if id, ok := get(event, root(event), "id"); ok {
			prev = id.of(event)
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
	if summary, ok := dig(event, root(event), "data", "summaryContent"); ok && tokensBefore > 0 {
		event = apply(event, []splice{{
			span{summary.end, summary.end},
			fmt.Appendf(nil, `,"preCompactionTokens":%d`, tokensBefore),
		}})
	}
	return addPairs(event, `,"id":"%s","timestamp":%s,"parentId":null`, madeUUID(string(event), strconv.Itoa(n)), at)
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
	return putArray(around, arrayOf(nativesOf(all)), "chatMessages"), nil
}
