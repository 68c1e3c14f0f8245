package pipeline

import "slices"

// Edit is one change to a message on its way to a model. The store keeps the message as it arrived; the format's codec
// applies the edits to a copy, and leaves every byte outside of them unchanged.
type Edit struct {
	// Part is the index into Message.Parts.
	Part int
	// Content is the index into the Content of that part, -1 for the whole part.
	Content int
	// Op is the kind of the edit.
	Op EditOp
	// Text is the new text for EditReplace.
	Text string
}

// EditOp is the kind of an edit.
type EditOp string

// The kinds of edits.
const (
	// EditReplace puts Text in place of the content of the part, or of one content of a tool result. Ids, names and
	// error flags stay.
	EditReplace EditOp = "replace"
	// EditDrop leaves the part out.
	EditDrop EditOp = "drop"
)

// Made is a message that the pipeline wrote, to be encoded in the conversation's format.
type Made struct {
	Role Role
	Kind Kind
	// Text is the whole content; for a tool result, the result.
	Text string
	// CallID and Name are set for RoleTool: a result for a call that was never answered.
	CallID, Name string
	// Type is the name on the wire of the block of that call, empty if the format has none: some vendors require a type
	// of result for each.
	Type    string
	IsError bool
}

// ContextItem is one entry of a context: a stored message with edits, or a message that the pipeline made.
type ContextItem struct {
	// Message is the stored message, nil if Made is set.
	Message *Message
	Edits   []Edit
	Made    *Made
	// Native is set beside Made for a summary: the vendor's own form of it, which is sent to that vendor instead.
	Native *NativeSummary
}

// editIndex has the edits of a message by part, in order, so that no part searches all of them.
type editIndex map[int][]Edit

func newEditIndex(edits []Edit) editIndex {
	if len(edits) == 0 {
		return nil
	}
	index := editIndex{}
	for _, e := range edits {
		index[e.Part] = append(index[e.Part], e)
	}
	return index
}

// whole reports whether an edit replaces or drops the whole part.
func (x editIndex) whole(part int) bool {
	return slices.ContainsFunc(x[part], func(e Edit) bool { return e.Content < 0 })
}

// withEdits returns the edits with more of them, which come instead of those of the same content, and
// of the same part if
// either is for the whole part. Those that stay are in front, in order.
func withEdits(edits, more []Edit) []Edit {
	if len(more) == 0 {
		return edits
	}
	type place struct{ part, content int }
	parts, whole, contents := map[int]bool{}, map[int]bool{}, map[place]bool{}
	for _, e := range more {
		parts[e.Part] = true
		whole[e.Part] = whole[e.Part] || e.Content < 0
		contents[place{e.Part, e.Content}] = true
	}
	kept := make([]Edit, 0, len(edits)+len(more))
	for _, e := range edits {
		if !whole[e.Part] && !contents[place{e.Part, e.Content}] && !(e.Content < 0 && parts[e.Part]) {
			kept = append(kept, e)
		}
	}
	return append(kept, more...)
}

// itemBytes returns how many bytes of text an entry of a context has, as an amount of work.
func itemBytes(item ContextItem) int {
	switch {
	case item.Made != nil:
		return len(item.Made.Text)
	case len(item.Edits) == 0 && item.Message.Tokens > 0:
		return 0 // its size is known
	}
	return bytesOf(*item.Message)
}
