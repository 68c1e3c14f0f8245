package pipeline

// An Edit is one change to a message on its way to a model. The store keeps the message as it arrived;
// the format's codec applies the edits to a copy, and leaves every byte outside of them alone.
type Edit struct {
	// Part is the index into Message.Parts.
	Part int
	// Content is the index into that part's Content, -1 for the part as a whole.
	Content int
	// Op says what is done with it.
	Op EditOp
	// Text is the new text for EditReplace.
	Text string
}

// EditOp is the kind of an edit.
type EditOp string

// The edits there are.
const (
	// EditReplace puts Text in place of what the part, or the content of the tool result, holds. Ids, names
	// and error flags stay.
	EditReplace EditOp = "replace"
	// EditDrop leaves the part out.
	EditDrop EditOp = "drop"
)

// Made is a message that the pipeline wrote, to be expressed in the conversation's format.
type Made struct {
	Role Role
	Kind Kind
	// Text is the whole content; for a tool result, the result.
	Text string
	// CallID and Name are set for RoleTool: a result for a call that was never answered.
	CallID, Name string
	// Type is the name on the wire of the block of that call, empty where the format has none: some vendors want
	// a type of result for each.
	Type    string
	IsError bool
}

// ContextItem is one entry of what the model sees: a stored message with edits, or one that was made.
type ContextItem struct {
	// Message is the stored message, nil when Made is set.
	Message *Message
	Edits   []Edit
	Made    *Made
	// Native is set beside Made, a summary: the vendor's own form of it, which is sent to that vendor instead.
	Native *NativeSummary
}
