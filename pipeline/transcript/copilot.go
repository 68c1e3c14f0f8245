package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/openai"
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

type copilot struct{}

func (copilot) name() Format { return Copilot }

func (copilot) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	v := rawjson.Root(l.Native)
	data, isEvent := v.Lookup("data")
	if !isEvent {
		return m
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
	return m
}

// input is a new input for a tool call: an object for the calls of functions whose old input is one.
func (copilot) input(n layout.Node, text string) ([]byte, error) {
	if n.Part.Type == "function" {
		return layout.InputAsBefore(n, text)
	}
	return layout.StringInput(n, text)
}

// Make writes an event with what depends on no session: WriteFile gives it an id and a place in the chain.
func (copilot) Make(m pipeline.Made) ([]byte, error) {
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
		if err := layout.MustSay(m); err != nil {
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

// read reads an event that is for the model, or a chat message, sound JSON.
func (f copilot) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	data, ok := v.Lookup("data")
	if !ok || !data.IsObject() {
		err := openai.Read(l)
		l.Input = f.input
		return err
	}
	l.Input = f.input
	at := data.Members()
	switch typ := v.Get("type").Text(); typ {
	case "user.message":
		l.Role = "user"
		f.user(l, at)
	case "assistant.message":
		l.Role = "assistant"
		f.assistant(l, data, at)
	case "tool.execution_start":
		l.Role = "assistant"
		l.Nodes = []layout.Node{f.call(data, -1, 0)}
	case "tool.execution_complete":
		l.Role = "tool"
		f.result(l, data, at)
	case "session.compaction_complete":
		l.Role = "user"
		if !at["summaryContent"].IsString() {
			return l.Errorf("a %s event has no summaryContent", typ)
		}
		l.Nodes = []layout.Node{layout.Text(at["summaryContent"])}
	default:
		return l.Errorf("an event of type %q is no message", typ)
	}
	return nil
}

func (f copilot) user(l *layout.Layout, at map[string]rawjson.Value) {
	said := at["transformedContent"]
	if !said.IsString() {
		said = at["content"]
	}
	if said.IsString() && !said.IsEmpty() {
		l.Nodes = append(l.Nodes, layout.Text(said))
	}
	files := at["attachments"]
	if !files.IsArray() {
		return
	}
	els := files.Elements()
	row := l.AddList(layout.NewList(els))
	for i, el := range els {
		// What is only named (a file, a selection) stands in the text already.
		if !el.IsObject() || el.Get("type").Text() != "blob" {
			continue
		}
		n := layout.Node{List: row, Index: i, Block: true, Fixed: true, Part: pipeline.Part{
			Kind: pipeline.PartFile, Type: "blob", MediaType: el.Get("mimeType").Text(),
			Name: el.Get("displayName").Text(), Raw: el.Raw(),
		}}
		if strings.HasPrefix(n.Part.MediaType, "image/") {
			n.Part.Kind = pipeline.PartImage
		}
		media.FromAddress(&n.Part, f.address(n.Part))
		l.Nodes = append(l.Nodes, n)
	}
}

func (f copilot) assistant(l *layout.Layout, data rawjson.Value, at map[string]rawjson.Value) {
	var pairs []rawjson.Value
	place := map[string]int{}
	for key, field := range data.Fields() {
		place[string(key)] = len(pairs)
		pairs = append(pairs, field.Pair)
	}
	members := l.AddList(layout.NewList(pairs))
	if s := at["reasoningText"].Text(); s != "" {
		n := layout.Node{
			Part: pipeline.Part{Kind: pipeline.PartReasoning, Text: s, Raw: at["reasoningText"].Raw()},
			List: members, Index: place["reasoningText"],
		}
		if _, ok := at["reasoningOpaque"]; ok { // the same, as the vendor wants it back
			n.Twins = []layout.Node{{List: members, Index: place["reasoningOpaque"]}}
		}
		l.Nodes = append(l.Nodes, n)
	}
	if said := at["content"]; said.IsString() && !said.IsEmpty() {
		l.Nodes = append(l.Nodes, layout.Text(said))
	}
	if calls := at["toolRequests"]; calls.IsArray() {
		els := calls.Elements()
		row := l.AddList(layout.NewList(els))
		for i, el := range els {
			if el.IsObject() {
				l.Nodes = append(l.Nodes, f.call(el, row, i))
			}
		}
	}
}

func (copilot) call(v rawjson.Value, row, index int) layout.Node {
	n := layout.Node{
		List: row, Index: index, Insert: v.End() - 1, Key: "arguments",
		Part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "function", Raw: v.Raw()},
	}
	for key, field := range v.Fields() {
		switch string(key) {
		case "toolCallId":
			n.Part.CallID = field.Value.Text()
		case "name", "toolName":
			n.Part.Name = field.Value.Text()
		case "type":
			n.Part.Type = cmp.Or(field.Value.Text(), n.Part.Type)
		case "arguments":
			n.Value, n.Part.Input = field.Value, field.Value.TextOrRaw()
		}
	}
	if row < 0 { // an event that is nothing but the call
		n.Vacant = "{}"
	}
	return n
}

func (copilot) result(l *layout.Layout, data rawjson.Value, at map[string]rawjson.Value) {
	n := layout.Node{List: -1, Part: pipeline.Part{
		Kind: pipeline.PartToolResult, CallID: at["toolCallId"].Text(),
		IsError: at["success"].IsFalse(),
	}}
	said, ok := data.Lookup("result", "content")
	if !ok || !said.IsString() {
		said, ok = data.Lookup("error", "message")
	}
	if ok && said.IsString() {
		n.Value = said
		if !said.IsEmpty() {
			n.Content = []layout.Node{layout.Text(said)}
		}
	} else {
		n.Insert, n.Key = data.End()-1, "result"
		n.As = func(text string) ([]byte, error) {
			return fmt.Appendf(nil, `{"content":%s}`, rawjson.Quote(text)), nil
		}
	}
	l.Nodes = []layout.Node{n}
}

func (copilot) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	if url := openai.Address(p); url != "" {
		return url
	}
	return media.Base64URL(p.MediaType, rawjson.Root(b).Get("data").Text())
}

// ---- files

func (copilot) detect(s rawjson.Outline) bool {
	return s.Has("chatMessages") && s.Has("sessionId", "timeline") ||
		s.Has("data") && s.Has("type=session.start", "type=user.message", "type=assistant.message",
			"type=assistant.turn_start", "type=tool.execution_start")
}

func (copilot) open(s *jsonstream.Reader, o Options) source {
	if rawjson.OutlineOf(s.Window()).Has("chatMessages", "timeline") {
		return openArrays(s, o, Meta{Format: Copilot}, copilotChat{}, "chatMessages")
	}
	return openLines(s, o, Meta{Format: Copilot}, &copilotSession{asked: map[string]bool{}})
}

// copilotChat reads the older files.
type copilotChat struct{}

func (copilotChat) record(out *scribe, b []byte, line int) error {
	m, err := decode(copilot{}, b)
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
	m, err := decode(copilot{}, b)
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
	m, err := decode(copilot{}, b)
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

func (f copilot) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	if e := out.Meta.Envelope; len(e) > 0 && e[0] == '{' {
		return f.writeChat(e, all)
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
			e.native = f.made(e.native, i, at, out.TokensBefore)
		}
		put(e.native)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// made gives an event of our own what every event has.
func (copilot) made(event []byte, n int, at []byte, tokensBefore int) []byte {
	if summary, ok := rawjson.Root(event).Lookup("data", "summaryContent"); ok && tokensBefore > 0 {
		event = rawjson.Apply(event, rawjson.Insert(summary.End(),
			fmt.Appendf(nil, `,"preCompactionTokens":%d`, tokensBefore)))
	}
	return rawjson.AddPairs(event, `,"id":"%s","timestamp":%s,"parentId":null`,
		madeUUID(string(event), strconv.Itoa(n)), at)
}

// writeChat writes the older object. Its chat messages are OpenAI's.
func (copilot) writeChat(around []byte, all []entry) ([]byte, error) {
	for i, e := range all {
		if e.made == nil {
			continue
		}
		b, err := openAIChat{}.Make(*e.made)
		if err != nil {
			return nil, err
		}
		all[i].native = b
	}
	return rawjson.PutArray(around, rawjson.ArrayOf(nativesOf(all)), "chatMessages"), nil
}
