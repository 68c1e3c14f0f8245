package faults

import (
	"encoding/json"
	"strings"

	"precis/pipeline/transcript"
)

// chatMessage is a message of a case, in the form of either API.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// block is one part of a message's content.
type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func messageOf(native json.RawMessage) chatMessage {
	var m chatMessage
	if err := json.Unmarshal(native, &m); err != nil {
		panic(err) // a case is checked before it is played
	}
	return m
}

// blocks returns the blocks of the content, nil if the content is text or null.
func (m chatMessage) blocks() []block {
	var list []block
	if json.Unmarshal(m.Content, &list) != nil {
		return nil
	}
	return list
}

// text returns the texts of the content.
func (m chatMessage) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var b strings.Builder
	for _, part := range m.blocks() {
		b.WriteString(part.Text)
	}
	return b.String()
}

// only reports whether the content has blocks and all are of one type.
func (m chatMessage) only(kind string) bool {
	list := m.blocks()
	for _, b := range list {
		if b.Type != kind {
			return false
		}
	}
	return len(list) > 0
}

// formsOf returns the formats that a case can be played in, the one of its messages first.
func formsOf(f fault) []transcript.Format {
	for _, m := range allMessages(f.Messages) {
		if list := m.blocks(); list != nil && !m.only("text") {
			return []transcript.Format{transcript.Anthropic}
		}
	}
	return []transcript.Format{transcript.OpenAI, transcript.Anthropic}
}

// allMessages returns the messages of a list, including those inside of operations.
func allMessages(list []json.RawMessage) []chatMessage {
	steps, err := stepsOf(list)
	if err != nil {
		panic(err) // a case is checked before it is played
	}
	var out []chatMessage
	for _, s := range steps {
		switch {
		case s.Op == "":
			out = append(out, messageOf(s.native))
		case s.Message != nil:
			out = append(out, messageOf(s.Message))
		}
		out = append(append(out, allMessages(s.Messages)...), allMessages(s.Ops)...)
	}
	return out
}

// inForm converts a message to a format. A message that is in that format is returned unchanged.
func inForm(native json.RawMessage, format transcript.Format) json.RawMessage {
	m := messageOf(native)
	if format != transcript.Anthropic {
		return native
	}
	type object = map[string]any
	var out object
	switch {
	case m.Role == "tool":
		out = object{"role": "user", "content": []object{{
			"type": "tool_result", "tool_use_id": m.ToolCallID,
			"content": m.Content,
		}}}
	case m.ToolCalls != nil:
		blocks := []object{}
		if text := m.text(); text != "" {
			blocks = append(blocks, object{"type": "text", "text": text})
		}
		for _, c := range m.ToolCalls {
			blocks = append(blocks, object{
				"type": "tool_use", "id": c.ID, "name": c.Function.Name,
				"input": json.RawMessage(orText(c.Function.Arguments, "{}")),
			})
		}
		out = object{"role": m.Role, "content": blocks}
	default:
		return native
	}
	return encode(out)
}

func encode(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a value of a test
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

// genuine reports whether a person wrote the message. A tool's result is not genuine.
func (m chatMessage) genuine() bool { return m.Role == "user" && !m.only("tool_result") }
