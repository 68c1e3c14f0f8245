package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/responses"
)

// Rollout files of Codex have one record per line, {"timestamp","type","payload"}. The model sees the payloads of
// response_item records, which are items of the Responses API; the native bytes of a message are such a line. Of the
// other records, event_msg has what the user typed and the token counts of the server, and session_meta and
// turn_context have the metadata.
//
// A compacted record has the whole new context. Most of its messages are in the file already; its summary is one that
// only OpenAI can read, or in older files a text. A new message in it becomes a message of the conversation, in the
// form of a response_item.
//
// Output.File writes a session that Codex can resume: the records at its head, a compacted record with the context up
// to the summary, then the unchanged lines of the messages.

type codex struct{}

func (codex) name() Format { return Codex }

func (codex) read(l *layout.Layout) error {
	payload, ok := rawjson.Root(l.Native).Lookup("payload")
	if !ok {
		return l.Errorf("the record has no payload")
	}
	return responses.Read(l, payload)
}

func (codex) message(l *layout.Layout) pipeline.Message { return responses.Message(l) }

// Make writes a record without a time: Output.File adds the time of the record beside it.
func (f codex) Make(m pipeline.Made) ([]byte, error) {
	b, err := responses.Made(m)
	if err != nil {
		return nil, err
	}
	return f.item(nil, b), nil
}

func (codex) address(p pipeline.Part) string { return responses.Address(p) }

// item writes a response_item record; time is JSON, nil for none.
func (f codex) item(time, payload []byte) []byte { return f.record(time, "response_item", payload) }

func (codex) record(time []byte, typ string, payload []byte) []byte {
	b := []byte(`{`)
	if time != nil {
		b = fmt.Appendf(b, `"timestamp":%s,`, time)
	}
	return fmt.Appendf(b, `"type":%s,"payload":%s}`, rawjson.Quote(typ), payload)
}

// apiMessage returns the item of a record as Codex sends it: without its id, because the vendor does not store it,
// without the fields of Codex itself, and without values that are null. It returns nil for an item that then has no
// content.
func (f codex) apiMessage(native []byte) ([]byte, error) {
	v, ok := rawjson.Root(native).Lookup("payload")
	if !ok || !v.IsObject() {
		return nil, layout.Errorf(string(Codex), "the record has no payload")
	}
	b, _ := v.DropKeys(func(key string, value rawjson.Value) bool {
		return key == "id" || value.IsNull() || strings.HasPrefix(key, "internal_")
	})
	at := rawjson.Root(b)
	switch at.Get("type").Text() {
	case "reasoning":
		if at.Get("encrypted_content").IsMissing() {
			return nil, nil
		}
	case "agent_message":
		return f.agentMessage(at), nil
	}
	return b, nil
}

// agentMessage makes the message of another agent into a message of role user, as the model sees it.
func (codex) agentMessage(v rawjson.Value) []byte {
	content := v.Get("content")
	var parts [][]byte
	switch content.Kind() {
	case rawjson.Array:
		for _, el := range content.Elements() {
			if el.Get("type").Text() == "input_text" {
				parts = append(parts, el.Raw())
			}
		}
	case rawjson.String:
		parts = [][]byte{responses.TextPart("input_text", content.Raw())}
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Appendf(nil, `{"type":"message","role":"user","content":[%s]}`, rawjson.Join(parts))
}
