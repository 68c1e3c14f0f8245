package conversation

import (
	"encoding/json"
	"fmt"
	"strings"

	"precis/internal/contract"
	"precis/internal/llm"
	"precis/internal/store/markers"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// NativeUse says what a vendor's own compaction may be used for. It is kept on the marker beside the artifact, which
// holds the JSON array that the vendor gave.
type NativeUse struct {
	// Vendor and Family made it, and nothing else can read it: it goes back to no other.
	Vendor string `json:"vendor"`
	Family string `json:"family"`
	// Model is the one that was asked.
	Model string `json:"model"`
	// Format is that of the conversation, and Form how the compaction was asked for.
	Format string              `json:"format"`
	Form   contract.NativeForm `json:"form"`
	// Tokens is what it costs in a request.
	Tokens int `json:"tokens"`
	// Note is what it does not hold and has to: limits that the user set.
	Note string `json:"note,omitempty"`
}

// JSON is the use as it is kept.
func (u NativeUse) JSON() json.RawMessage {
	b, err := json.Marshal(u)
	if err != nil {
		panic(err) // strings and a number: it cannot fail
	}
	return b
}

// NativeUseOf reads what a marker's native compaction may be used for; ok is false when it has none.
func NativeUseOf(m markers.NewMarker) (u NativeUse, ok bool, err error) {
	if m.Native == "" {
		return u, false, nil
	}
	if err := json.Unmarshal(m.NativeUse, &u); err != nil {
		return u, false, fmt.Errorf("read what a native compaction is for: %w", err)
	}
	return u, true, nil
}

// native gives the marker's native compaction when the conversation's model is of the vendor and family that made it,
// nil otherwise: the model then sees the summary that anyone can read.
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
	// The summary that can be read brings what was seen later, too: how to go on, and what the agent used since.
	text := string(v.Summary)
	n := &pipeline.NativeSummary{
		Messages: parts, Tokens: use.Tokens,
		Note: joinNotes(use.Note, joinNotes(pipeline.LookAheadOf(text),
			joinNotes(pipeline.TranscriptHintOf(text), pipeline.Continuation(text)))),
	}
	if use.Form.Format() == contract.ProtocolAnthropic {
		// Content blocks: they are one message of the assistant's.
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

// WithNative is the view with what the vendor's own compaction gave for its marker.
func (v View) WithNative(native []byte) View {
	v.Source.Native = native
	return v
}

// NativeForm is the form of the native compaction that the context holds, "" when it holds none.
func (v View) NativeForm() contract.NativeForm {
	if v.native() == nil {
		return ""
	}
	use, _, _ := NativeUseOf(v.Marker.NewMarker) // native has read it
	return use.Form
}

// CanCompactNatively says in which form the vendor can compact the conversation for a model by itself, best first.
// The reason says why it cannot, "" when it can. What comes back is for the model that the conversation has, so the
// one that is asked must be of its vendor and family.
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

// NativeMessages are the messages that a native compaction up to message coversTo is asked for: the beginning of the
// context, as the agent sends it, without system messages, which stay where they are.
func (v View) NativeMessages(coversTo int64) ([][]byte, int, error) {
	var items []pipeline.ContextItem
	tokens := 0
	for _, it := range v.Context().Items {
		if it.Message != nil {
			if it.Message.Seq > coversTo {
				break
			}
			if it.Message.Role == pipeline.RoleSystem {
				continue
			}
			if v.Marker != nil && v.APIType() == string(transcript.Anthropic) {
				// What a summary stands before is no longer what this reasoning was bound to.
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

// withoutSpaceAtTheEnd takes white space from the end of the last message when the agent said it: Anthropic takes
// such a message for the beginning of its answer, and refuses one that ends so.
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

// withoutReasoning drops the reasoning of a message; left is false when there was nothing else in it.
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
