package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/store/markers"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// NativeUse says where a vendor's native compaction can be used. It is stored on the marker. The artifact has the JSON
// array that the vendor returned.
type NativeUse struct {
	// Vendor and Family made the compaction. It is sent only to them, because no other can read it.
	Vendor string `json:"vendor"`
	Family string `json:"family"`
	// Model is the model that made it.
	Model string `json:"model"`
	// Format is the format of the conversation, Form the way in which the compaction was requested.
	Format string              `json:"format"`
	Form   contract.NativeForm `json:"form"`
	// Tokens is its size in a request.
	Tokens int `json:"tokens"`
	// Note has what must be sent beside it: limits that the user set and that it does not have.
	Note string `json:"note,omitempty"`
}

// JSON returns the use as it is stored.
func (u NativeUse) JSON() json.RawMessage {
	b, err := json.Marshal(u)
	if err != nil {
		panic(err) // strings and a number: it cannot fail
	}
	return b
}

// NativeUseOf returns the use of a marker's native compaction; ok is false if the marker has none.
func NativeUseOf(m markers.NewMarker) (u NativeUse, ok bool, err error) {
	if m.Native == "" {
		return u, false, nil
	}
	if err := json.Unmarshal(m.NativeUse, &u); err != nil {
		return u, false, fmt.Errorf("read what a native compaction is for: %w", err)
	}
	return u, true, nil
}

// native returns the marker's native compaction if the conversation's model is of the vendor and family that made it.
// Otherwise it returns nil, and the context has the readable summary.
func (v View) native() *pipeline.NativeSummary {
	if v.Marker == nil || len(v.Source.Native) == 0 {
		return nil
	}
	c := v.Conversation
	use, ok, err := NativeUseOf(v.Marker.NewMarker)
	if err != nil || !ok || use.Vendor != c.Vendor || use.Format != c.Format ||
		use.Family != llm.Family(c.Vendor, c.Model) {
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(v.Source.Native, &parts); err != nil {
		return nil
	}
	// The readable summary also has what is only known later: how to continue, and what the agent has used since.
	text := string(v.Summary)
	n := &pipeline.NativeSummary{
		Messages: parts, Tokens: use.Tokens,
		Note: joinNotes(use.Note, joinNotes(pipeline.LookAheadOf(text),
			joinNotes(pipeline.TranscriptHintOf(text), pipeline.Continuation(text)))),
	}
	if use.Form.Format() == contract.ProtocolAnthropic {
		// Content blocks are one assistant message.
		message := append([]byte(`{"role":"assistant","content":`), v.Source.Native...)
		n.Messages = []json.RawMessage{append(message, '}')}
	}
	return n
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// WithNative returns the view with the native compaction of its marker.
func (v View) WithNative(native []byte) View {
	v.Source.Native = native
	return v
}

// NativeForm returns the form of the native compaction in the context, "" if there is none.
func (v View) NativeForm() contract.NativeForm {
	if v.native() == nil {
		return ""
	}
	use, _, _ := NativeUseOf(v.Marker.NewMarker) // native has read it
	return use.Form
}

// CanCompactNatively returns the best form in which the vendor can compact the conversation natively with a model, or
// the reason why it cannot. The model must be of the vendor and family of the conversation's model, because no other
// can read the result.
func (v View) CanCompactNatively(vendor llm.Vendor, model string) (form contract.NativeForm, reason string) {
	c := v.Conversation
	if vendor.Name != c.Vendor || llm.Family(vendor.Name, model) != llm.Family(c.Vendor, c.Model) {
		return "", "what a vendor compacts is readable for its own models alone, and the conversation's is another one"
	}
	known, _ := v.Models.Lookup(vendor.Name, model)
	if len(known.NativeCompaction) == 0 {
		return "", "the vendor has no compaction of its own for the model"
	}
	for _, f := range known.NativeCompaction {
		if f.Format() == c.Format && llm.Speaks(vendor, f.Format()) {
			return f, ""
		}
	}
	return "", fmt.Sprintf("the vendor compacts conversations in format %q by itself, not in %q",
		known.NativeCompaction[0].Format(), c.Format)
}

// NativeMessages returns the messages for a native compaction up to message coversTo: the beginning of the context,
// as the agent sends it, without system messages, which are not compacted.
func (v View) NativeMessages(ctx context.Context, coversTo int64) ([][]byte, int, error) {
	var items []pipeline.ContextItem
	tokens := 0
	now, err := v.Context(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, it := range now.Items {
		if it.Message != nil {
			if it.Message.Seq > coversTo {
				break
			}
			if it.Message.Role == pipeline.RoleSystem {
				continue
			}
			if v.Marker != nil && v.APIType() == string(transcript.Anthropic) {
				// After a summary, the reasoning is no longer valid: it is bound to the messages before it.
				var left bool
				if it, left = withoutReasoning(it); !left {
					continue
				}
			}
		}
		items = append(items, it)
		tokens += pipeline.EstimateItem(it)
	}
	if v.APIType() == string(transcript.Anthropic) {
		items = withoutSpaceAtTheEnd(items)
	}
	messages, err := transcript.EncodeItems(v.Codec, items)
	return messages, tokens, err
}

// withoutSpaceAtTheEnd trims white space from the end of a last message of the assistant. Anthropic takes such a
// message for the beginning of the answer and refuses trailing white space.
func withoutSpaceAtTheEnd(items []pipeline.ContextItem) []pipeline.ContextItem {
	if len(items) == 0 {
		return items
	}
	last := items[len(items)-1]
	if last.Message == nil || last.Message.Role != pipeline.RoleAssistant || len(last.Message.Parts) == 0 {
		return items
	}
	at := len(last.Message.Parts) - 1
	part := last.Message.Parts[at]
	text := strings.TrimRight(part.Text, " \t\r\n")
	if part.Kind != pipeline.PartText || text == part.Text || text == "" || dropped(last.Edits, at) {
		return items
	}
	last.Edits = append(last.Edits[:len(last.Edits):len(last.Edits)],
		pipeline.Edit{Part: at, Content: -1, Op: pipeline.EditReplace, Text: text})
	return append(items[:len(items)-1:len(items)-1], last)
}

// withoutReasoning removes the reasoning of a message; left is false if nothing else was in it.
func withoutReasoning(it pipeline.ContextItem) (_ pipeline.ContextItem, left bool) {
	edits := it.Edits[:len(it.Edits):len(it.Edits)]
	gone := 0
	for i, p := range it.Message.Parts {
		switch {
		case p.Kind == pipeline.PartReasoning:
			edits = append(edits, pipeline.Edit{Part: i, Content: -1, Op: pipeline.EditDrop})
			gone++
		case dropped(it.Edits, i):
			gone++
		}
	}
	it.Edits = edits
	return it, gone < len(it.Message.Parts)
}

func dropped(edits []pipeline.Edit, part int) bool {
	for _, e := range edits {
		if e.Part == part && e.Content < 0 && e.Op == pipeline.EditDrop {
			return true
		}
	}
	return false
}
