package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/responses"
)

// Rollout files of Codex: a record a line, {"timestamp","type","payload"}. What goes to the model are the payloads of
// response_item records, which are items of the Responses API; the native of a message is such a line. Of the rest,
// event_msg records say what the person typed and what the server counted, and session_meta and turn_context hold
// what stands beside the messages.
//
// A compacted record has the whole new context. Its messages are mostly ones that were there before, and its summary
// is one that OpenAI alone can read, or in older files a text. What is new in it becomes a message of the
// conversation, as the response_item that it would be.
//
// Written as a file it is a session that Codex can resume: the records at its head, a compacted record with the
// summary and what stands before and beside it, then the lines of the messages as they were.

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

// Make writes a record without its time: WriteFile gives it the one of the record that it stands beside.
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

// apiMessage returns the item of a record as Codex sends it: without its id, since the vendor does not store it,
// without what Codex keeps for itself, and without values that are null. An item that has nothing left for the vendor
// to read gives nil.
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

// agentMessage makes what another agent said into a message of role user, which is what the model is given.
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
