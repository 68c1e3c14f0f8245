package convert

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/request"
	"precis/pipeline/transcript/wire/anthropic"
	"precis/pipeline/transcript/wire/openai"
)

// Loss is something that the target format has no place for.
type Loss struct {
	// Item is the index of the entry of the context that it stood in; -1 for what stands beside the messages.
	Item int
	// What was lost, or changed.
	What string
	// Why, and what became of it, in one sentence.
	Why string
}

// Converted is a conversation in another format.
type Result struct {
	// Meta has the system prompt, the tools and the envelope in the new format.
	Meta     transcript.Meta
	Messages [][]byte
	Losses   []Loss
}

// Convert writes a context in another format: roles, calls with their results, order and images stay; what has
// no place in the target is left out and reported. Blocks that are the same in both keep their bytes. Going to
// Anthropic, messages of one role that follow each other become one, results first, as the API wants it; a
// system message has no place there and is a loss: ConvertConversation moves it beside the messages. That every
// call has its result is the business of the context (pipeline.BuildContext).
//
// It goes from every format to those of the APIs. What only the vendor that made it can use is left out: signatures,
// encrypted reasoning and summaries, files that are named by an id.
func Messages(items []pipeline.ContextItem, from, to transcript.Format) ([][]byte, []Loss, error) {
	c, err := convert(transcript.Meta{Format: from}, items, to)
	if err != nil {
		return nil, nil, err
	}
	if len(c.Meta.System) > 0 && (to == transcript.Anthropic || to == transcript.Google) {
		c.Losses = append(c.Losses, Loss{
			-1, "system message",
			"it belongs beside the messages and is left out of them",
		})
	}
	return c.Messages, c.Losses, nil
}

// ConvertConversation is Convert with what stands beside the messages: the system prompt moves to where the
// target has it, tools are written anew, and the envelope is a new one.
func Conversation(m transcript.Meta, items []pipeline.ContextItem, to transcript.Format) (Result, error) {
	c, err := convert(m, items, to)
	if err != nil {
		return c, err
	}
	tools, losses := convertTools(m.Tools, m.Format, to)
	c.Meta.Tools = tools
	c.Losses = append(c.Losses, losses...)
	if c.Meta.Format == m.Format {
		c.Meta.Envelope = m.Envelope
		return c, nil
	}
	c.Meta.Vendor, c.Meta.Envelope = string(to), nil
	r := request.Input{Format: to, Model: m.Model, MaxTokens: m.MaxTokens, Tools: tools}
	switch to {
	case transcript.OpenAI: // has it among the messages
	case transcript.OpenAIResponses:
		c.Meta.Vendor = string(transcript.OpenAI)
		fallthrough
	default:
		r.System = c.Meta.System
	}
	c.Meta.Envelope, err = request.Build(r)
	return c, err
}

// converter holds what a conversion is at.
type converter struct {
	from, to transcript.Format
	// model is the one that is asked, where that matters.
	model  string
	item   int
	losses []Loss
	ids    callIDs
	// index has the places of the entries in the context, nil: their own.
	index []int
}

func (c *converter) lose(what, why string, args ...any) {
	c.losses = append(c.losses, Loss{c.item, what, fmt.Sprintf(why, args...)})
}

// A spoken is a message on its way from one format to another.
type spoken struct {
	role  pipeline.Role
	parts []pipeline.Part
	item  int
}

func convert(m transcript.Meta, items []pipeline.ContextItem, to transcript.Format) (Result, error) {
	out := Result{Meta: m}
	codec, err := transcript.CodecFor(m.Format)
	if err != nil {
		return out, err
	}
	c := &converter{from: m.Format, to: to}
	if m.Format == to || to == transcript.GeminiCLI && m.Format == transcript.Google {
		// What Gemini CLI saves of a chat holds messages of its API.
		if out.Messages, err = transcript.EncodeItems(codec, items); err == nil {
			out.Messages, err = codec.FileEntries(out.Messages)
		}
		return out, err
	}
	out.Meta.Format = to
	if codec.HoldsAPIMessages() {
		if items, err = c.cross(codec, items); err != nil {
			return out, err
		}
		c.from = m.Format.API()
		if codec, err = transcript.CodecFor(c.from); err != nil {
			return out, err
		}
	}
	crossed := len(c.losses) // these have their places in the context already
	if c.from == to {
		out.Messages, err = transcript.EncodeItems(codec, items)
		out.Losses = c.losses
		return out, err
	}
	all, err := c.read(codec, items)
	if err != nil {
		return out, err
	}
	switch to {
	case transcript.Anthropic, transcript.Google:
		var system []string
		all, system = c.liftSystem(all)
		if s := request.PlainText(m.System); strings.TrimSpace(s) != "" && c.from.API() != to {
			system = append([]string{s}, system...)
			out.Meta.System = nil
		}
		if len(out.Meta.System) == 0 && len(system) > 0 {
			out.Meta.System = rawjson.Quote(strings.Join(system, "\n\n"))
		}
		if to == transcript.Google {
			c.model = m.Model
			out.Messages = c.google(all)
		} else {
			out.Messages = c.anthropic(all)
		}
	case transcript.OpenAI:
		if s := request.PlainText(m.System); len(m.System) > 0 && strings.TrimSpace(s) != "" {
			all = append([]spoken{{
				role:  pipeline.RoleSystem,
				parts: []pipeline.Part{{Kind: pipeline.PartText, Text: s}}, item: -1,
			}}, all...)
		}
		out.Meta.System = nil
		out.Messages = c.openAI(all)
	case transcript.OpenAIResponses:
		if s := request.PlainText(m.System); strings.TrimSpace(s) != "" {
			out.Meta.System = rawjson.Quote(s)
		}
		out.Messages = c.responses(all)
	default:
		return out, m.Format.NoWayTo(to)
	}
	for i, b := range out.Messages {
		if fixed := rawjson.WellFormed(b); fixed != nil {
			c.losses = append(c.losses, Loss{
				-1, "broken characters",
				fmt.Sprintf("message %d has halves of characters, which no API takes: U+FFFD stands for them", i),
			})
			out.Messages[i] = fixed
		}
	}
	for i := crossed; i < len(c.losses); i++ {
		if l := &c.losses[i]; c.index != nil && l.Item >= 0 {
			l.Item = c.index[l.Item]
		}
	}
	out.Losses = c.losses
	return out, nil
}

// cross gives the entries as the API's messages.
func (c *converter) cross(codec transcript.Codec, items []pipeline.ContextItem) ([]pipeline.ContextItem, error) {
	api, err := transcript.CodecFor(c.from.API())
	if err != nil {
		return nil, err
	}
	var out []pipeline.ContextItem
	for i, it := range items {
		fail := func(err error) error { return fmt.Errorf("entry %d of the context: %w", i, err) }
		if it.Made == nil {
			native, err := codec.EncodeItem(it)
			if err != nil {
				return nil, fail(err)
			}
			if native == nil {
				continue
			}
			if native, err = codec.APIMessage(native); err != nil {
				return nil, fail(err)
			}
			if native == nil {
				c.losses = append(c.losses, Loss{
					i, "message",
					"nothing in it could be sent: what the model thought is not in the file",
				})
				continue
			}
			m, err := api.Decode(native)
			if err != nil {
				return nil, fail(err)
			}
			it = pipeline.ContextItem{Message: &m}
		}
		out, c.index = append(out, it), append(c.index, i)
	}
	return out, nil
}

// read decodes the entries as they would be sent, edits done.
func (c *converter) read(codec transcript.Codec, items []pipeline.ContextItem) ([]spoken, error) {
	foreign := codec.HasOwnAddresses()
	out := make([]spoken, 0, len(items))
	for i, it := range items {
		if it.Made != nil {
			out = append(out, spoken{it.Made.Role, madeParts(*it.Made), i})
			continue
		}
		b, err := codec.EncodeItem(it)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b == nil {
			continue
		}
		m, err := codec.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if foreign {
			out = append(out, common(codec, m, i)...)
			continue
		}
		out = append(out, spoken{m.Role, m.Parts, i})
	}
	matchIDs(out)
	if foreign {
		c.pair(&out)
	}
	return out, nil
}

// matchIDs gives a call and its result one id where either has none, and the result the name of the tool.
func matchIDs(all []spoken) {
	messages := make([]pipeline.Message, len(all))
	for i, m := range all {
		messages[i] = pipeline.Message{Role: m.role, Parts: m.parts}
	}
	used := map[string]bool{}
	for _, m := range all {
		for _, p := range m.parts {
			used[p.CallID] = true
		}
	}
	n := 0
	for _, pair := range pipeline.Pair(messages).Pairs {
		call := &all[pair.Call.Message].parts[pair.Call.Part]
		result := &all[pair.Result.Message].parts[pair.Result.Part]
		id := cmp.Or(call.CallID, result.CallID)
		for id == "" || call.CallID == "" && used[id] && id != result.CallID {
			n++
			if id = fmt.Sprintf("call_%d", n); used[id] {
				id = ""
			}
		}
		used[id] = true
		call.CallID, result.CallID = id, id
		result.Name = cmp.Or(result.Name, call.Name)
	}
}

func madeParts(m pipeline.Made) []pipeline.Part {
	body := pipeline.Part{Kind: pipeline.PartText, Text: m.Text}
	if m.Role != pipeline.RoleTool {
		return []pipeline.Part{body}
	}
	return []pipeline.Part{{
		Kind: pipeline.PartToolResult, Type: "tool_result", CallID: m.CallID, Name: m.Name, IsError: m.IsError,
		Content: []pipeline.Part{body},
	}}
}

// liftSystem takes the system messages at the head out. Later ones become user messages, in their place.
func (c *converter) liftSystem(all []spoken) ([]spoken, []string) {
	var system []string
	n := 0
	for ; n < len(all) && all[n].role == pipeline.RoleSystem; n++ {
		for _, p := range all[n].parts {
			if p.Kind == pipeline.PartText {
				system = append(system, p.Text)
			}
		}
	}
	rest := all[n:]
	for i := range rest {
		if rest[i].role == pipeline.RoleSystem {
			c.item = rest[i].item
			c.lose("role", "a system message in the middle is a user message here")
			rest[i].role = pipeline.RoleUser
		}
	}
	return rest, system
}

// anthropic writes messages whose roles alternate.
func (c *converter) anthropic(all []spoken) [][]byte {
	var out [][]byte
	var role string
	var results, blocks [][]byte
	flush := func() {
		// A result has to stand before anything else that its message says.
		if all := append(results, blocks...); len(all) > 0 {
			out = append(out, anthropic.Wrap(role, all))
		}
		results, blocks = nil, nil
	}
	for _, m := range all {
		c.item = m.item
		next := "user"
		if m.role == pipeline.RoleAssistant {
			next = "assistant"
		}
		var mine, said [][]byte
		for _, p := range m.parts {
			b := c.anthropicBlock(p)
			switch {
			case b == nil:
			case p.Kind == pipeline.PartToolResult && next == "user":
				mine = append(mine, b)
			default:
				said = append(said, b)
			}
		}
		if len(mine)+len(said) == 0 {
			continue
		}
		if next != role {
			flush()
			role = next
		}
		results, blocks = append(results, mine...), append(blocks, said...)
	}
	flush()
	return out
}

// anthropicBlock writes one block, nil for what is left out.
func (c *converter) anthropicBlock(p pipeline.Part) []byte {
	if p.Kind == pipeline.PartText && strings.TrimSpace(p.Text) == "" {
		return nil // the API takes no blank text
	}
	if c.from.API() == transcript.Anthropic && len(p.Raw) > 0 {
		if p.Raw[0] == '"' {
			return literalBlock(p)
		}
		return p.Raw
	}
	switch p.Kind {
	case pipeline.PartText:
		return literalBlock(p)
	case pipeline.PartToolCall:
		input := []byte(p.Input)
		switch {
		case len(bytes.TrimSpace(input)) == 0:
			input = []byte(`{}`)
		case rawjson.Check(input) != nil || !rawjson.Root(input).IsObject():
			c.lose("tool call arguments", "they are no JSON object and stand in one under the key \"arguments\"")
			input = fmt.Appendf(nil, `{"arguments":%s}`, rawjson.Quote(p.Input))
		}
		return fmt.Appendf(nil, `{"type":"tool_use","id":%s,"name":%s,"input":%s}`,
			rawjson.Quote(c.ids.call(p.CallID, c.item)), rawjson.Quote(p.Name), bytes.TrimSpace(input))
	case pipeline.PartToolResult:
		return anthropic.ToolResult(c.ids.result(p.CallID), c.anthropicContent(p.Content), p.IsError)
	case pipeline.PartImage:
		if b := c.anthropicSource("image", p); b != nil {
			return b
		}
	case pipeline.PartFile:
		if p.MediaType == "application/pdf" {
			if b := c.anthropicSource("document", p); b != nil {
				return b
			}
		}
	case pipeline.PartReasoning:
		c.lose("reasoning", "only the vendor that made it can use it")
		return nil
	}
	if s, ok := c.leaveOut(p); ok {
		return layout.TextBlock(s)
	}
	return nil
}

// leaveOut says of a part that it has no place in the target, and gives the text that stands in for it. Of what only
// the vendor that made it can use nothing is left, but for a summary that can be read.
func (c *converter) leaveOut(p pipeline.Part) (text string, ok bool) {
	what := cmp.Or(p.Type, string(p.Kind))
	if p.Kind == pipeline.PartOpaque {
		if s := compactionText(p); s != "" {
			c.lose(what, "only the vendor that wrote it takes it as a summary: its text stands there")
			return s, true
		}
		c.lose(what, "only the vendor that made it can use it")
		return "", false
	}
	c.lose(string(p.Kind), "%s has no place for it, or it is not in the transcript", c.to)
	return fmt.Sprintf("[%s omitted]", cmp.Or(p.MediaType, what)), true
}

// compactionText is the text of a compaction block of Anthropic's, empty for one that cannot be read.
func compactionText(p pipeline.Part) string {
	if p.Type != "compaction" || len(p.Raw) == 0 {
		return ""
	}
	return rawjson.Root(p.Raw).Get("content").Text()
}

// literal is a text part's string as it was written, escapes and all, where it was written as one.
func literal(p pipeline.Part) []byte {
	if len(p.Raw) > 0 {
		v := rawjson.Root(p.Raw)
		if v.IsString() {
			return v.Raw()
		}
		if lit, ok := v.Lookup(cmp.Or(p.Type, "text")); ok && lit.IsString() {
			return lit.Raw()
		}
	}
	return rawjson.Quote(p.Text)
}

func literalBlock(p pipeline.Part) []byte {
	return fmt.Appendf(nil, `{"type":"text","text":%s}`, literal(p))
}

// anthropicContent writes the content of a result.
func (c *converter) anthropicContent(content []pipeline.Part) []byte {
	if len(content) == 0 {
		return []byte(`""`)
	}
	if len(content) == 1 && content[0].Kind == pipeline.PartText {
		return literal(content[0])
	}
	var blocks [][]byte
	for _, p := range content {
		if b := c.anthropicBlock(p); b != nil {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return []byte(`""`)
	}
	return fmt.Appendf(nil, "[%s]", rawjson.Join(blocks))
}

// anthropicSource writes an image or a document.
func (c *converter) anthropicSource(typ string, p pipeline.Part) []byte {
	return anthropic.Source(typ, p, addressOf(p))
}

// addressOf is where an image or a file is that came from an API: a data URL for what stands in the message itself.
func addressOf(p pipeline.Part) string { return cmp.Or(anthropic.Address(p), openai.Address(p)) }

// maxCallID is how long the id of a call may be: OpenAI's Responses take 64 bytes, which leaves room for a number.
const maxCallID = 58

// callIDs makes the ids of calls fit for any API: of letters, digits, '_' and '-', and each for one call only.
// A result goes with the nearest message before it that has an unanswered call of its id, and there with the
// first such call.
type callIDs struct {
	used map[string]bool
	open map[string][]openCall // by id as it came, unanswered, in order
}

type openCall struct {
	name string // as it is written
	item int    // of which entry
}

func (c *callIDs) call(id string, item int) string {
	name := c.fresh(id)
	c.open[id] = append(c.open[id], openCall{name, item})
	return name
}

func (c *callIDs) fresh(id string) string {
	if c.used == nil {
		c.used, c.open = map[string]bool{}, map[string][]openCall{}
	}
	base := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
	if base = shortID(base, maxCallID); base == "" {
		base = "call"
	}
	name := base
	for n := 2; c.used[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	c.used[name] = true
	return name
}

func (c *callIDs) result(id string) string {
	open := c.open[id]
	if len(open) == 0 {
		return c.fresh(id)
	}
	i := len(open) - 1
	for i > 0 && open[i-1].item == open[i].item {
		i--
	}
	name := open[i].name
	c.open[id] = slices.Delete(open, i, i+1)
	return name
}

func (c *converter) openAI(all []spoken) [][]byte {
	all = joinAssistant(all)
	var out [][]byte
	// Images of results cannot stand in a tool message; they follow behind the last of a row of them.
	var images [][]byte
	flush := func() {
		if len(images) > 0 {
			out = append(out, openAIMessage("user", images))
			images = nil
		}
	}
	for _, m := range all {
		c.item = m.item
		if m.role == pipeline.RoleAssistant {
			flush()
			if b := c.openAIAssistant(m.parts); b != nil {
				out = append(out, b)
			}
			continue
		}
		var said [][]byte
		for _, p := range m.parts {
			if p.Kind != pipeline.PartToolResult {
				if b := c.openAIPart(p); b != nil {
					said = append(said, b)
				}
				continue
			}
			b, pictures := c.openAIResult(p)
			out = append(out, b)
			images = append(images, pictures...)
		}
		if m.role != pipeline.RoleTool {
			flush()
		}
		if len(said) > 0 {
			role := "user"
			if m.role == pipeline.RoleSystem {
				role = "system"
			}
			out = append(out, openAIMessage(role, said))
		}
	}
	flush()
	return out
}

// joinAssistant makes one message of assistant messages that follow each other: to Anthropic they are one turn,
// whose results may stand behind the last of them.
func joinAssistant(all []spoken) []spoken {
	var out []spoken
	for _, m := range all {
		if last := len(out) - 1; last >= 0 && m.role == pipeline.RoleAssistant && out[last].role == m.role {
			out[last].parts = slices.Concat(out[last].parts, m.parts)
			continue
		}
		out = append(out, m)
	}
	return out
}

// openAIMessage writes a message of content parts; a single text is a plain string.
func openAIMessage(role string, content [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"content":%s}`, rawjson.Quote(role), openAIContentOf(content))
}

func openAIContentOf(content [][]byte) []byte {
	if len(content) == 1 {
		v := rawjson.Root(content[0])
		if typ, _ := v.Lookup("type"); typ.Text() == "text" {
			if lit, ok := v.Lookup("text"); ok {
				return lit.Raw()
			}
		}
	}
	return fmt.Appendf(nil, "[%s]", rawjson.Join(content))
}

func (c *converter) openAIAssistant(all []pipeline.Part) []byte {
	var said, calls [][]byte
	for _, p := range all {
		switch {
		case p.Kind == pipeline.PartReasoning:
			c.lose("reasoning", "only the vendor that made it can use it")
		case p.Kind == pipeline.PartToolCall && p.Type != "tool_use",
			p.Kind == pipeline.PartToolResult:
			c.lose(p.Type, "what the vendor's own tools did has no place in a chat message")
		case p.Kind == pipeline.PartToolCall:
			b := fmt.Appendf(nil, `{"id":%s,"type":"function","function":{"name":%s,"arguments":%s`,
				rawjson.Quote(chatID(p.CallID)), rawjson.Quote(toolName(p.Name)), rawjson.Quote(cmp.Or(p.Input, "{}")))
			calls = append(calls, append(b, "}}"...))
		default:
			if b := c.openAIPart(p); b != nil {
				said = append(said, b)
			}
		}
	}
	if len(said)+len(calls) == 0 {
		return nil
	}
	b := []byte(`{"role":"assistant","content":`)
	if len(said) == 0 {
		b = append(b, "null"...)
	} else {
		b = append(b, openAIContentOf(said)...)
	}
	if len(calls) > 0 {
		b = fmt.Appendf(b, `,"tool_calls":[%s]`, rawjson.Join(calls))
	}
	return append(b, "}"...)
}

// openAIResult writes a tool message, and the images that go behind it.
func (c *converter) openAIResult(p pipeline.Part) (message []byte, images [][]byte) {
	if p.IsError {
		c.lose("error flag", "a tool message has none; its text says what failed")
	}
	var texts [][]byte
	for _, part := range p.Content {
		b := c.openAIPart(part)
		if b == nil {
			continue
		}
		if part.Kind != pipeline.PartText && kindOf(b) != "text" {
			c.lose(string(part.Kind), "a tool message holds text only: it follows in a user message")
			images = append(images, b)
			b = layout.TextBlock(fmt.Sprintf("[%s: in the user message behind the results]", part.Kind))
		}
		texts = append(texts, b)
	}
	content := []byte(`""`)
	if len(texts) > 0 {
		content = openAIContentOf(texts)
	}
	return fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":%s}`, rawjson.Quote(chatID(p.CallID)), content),
		images
}

// maxChatID is how long the id of a call may be in a chat message, in bytes: the vendor refuses longer ones.
const maxChatID = 40

// chatID is a call's id as a chat message may have it. The same id always gives the same one.
func chatID(id string) string { return shortID(id, maxChatID) }

// shortID cuts an id that is too long, and tells it from others that begin like it.
func shortID(id string, limit int) string {
	if len(id) <= limit {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:limit-9], "") + "_" + hex.EncodeToString(sum[:4])
}

// maxToolName is how long the name of a tool may be for OpenAI, in bytes.
const maxToolName = 64

// toolName is a name as OpenAI takes it: letters, digits, '_' and '-'.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return cmp.Or(shortID(name, maxToolName), "tool")
}

func kindOf(block []byte) string { return rawjson.Root(block).Get("type").Text() }

// openAIPart writes one content part, nil for what is left out.
func (c *converter) openAIPart(p pipeline.Part) []byte {
	switch p.Kind {
	case pipeline.PartText:
		if strings.TrimSpace(p.Text) == "" {
			return nil
		}
		return literalBlock(p)
	case pipeline.PartImage:
		if url := addressOf(p); url != "" {
			return fmt.Appendf(nil, `{"type":"image_url","image_url":{"url":%s}}`, rawjson.Quote(url))
		}
	case pipeline.PartFile:
		if p.Text != "" {
			return layout.TextBlock(p.Text)
		}
		if url := addressOf(p); strings.HasPrefix(url, "data:") {
			return fmt.Appendf(nil, `{"type":"file","file":{"filename":%s,"file_data":%s}}`,
				rawjson.Quote(cmp.Or(p.Name, "document")), rawjson.Quote(url))
		}
	case pipeline.PartReasoning:
		c.lose("reasoning", "only the vendor that made it can use it")
		return nil
	}
	if s, ok := c.leaveOut(p); ok {
		return layout.TextBlock(s)
	}
	return nil
}
