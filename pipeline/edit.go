package pipeline

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
