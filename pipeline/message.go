package pipeline

import "encoding/json"

// Role names who wrote a message, whatever the wire format calls it: Anthropic and Gemini wrap tool results in a user
// message, and such a message has RoleTool here.
type Role string

// The four roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Kind distinguishes the messages of one role. The zero value is an ordinary message.
type Kind string

// The kinds of message. Messages of role user with a kind other than KindOrdinary were not written by a person.
const (
	KindOrdinary  Kind = ""
	KindUserInfo  Kind = "user_info" // the environment message at the head of a conversation
	KindReminder  Kind = "reminder"  // injected beside the conversation by the agent's runtime
	KindSynthetic Kind = "synthetic" // any other message that no person wrote
	KindSummary   Kind = "summary"   // the summary that an earlier compaction wrote
)

// PartKind is the type of one part of a message.
type PartKind string

// The kinds of part. A wire block that fits none of them is PartOpaque: it passes through unchanged.
const (
	PartText       PartKind = "text"
	PartReasoning  PartKind = "reasoning"
	PartToolCall   PartKind = "tool_call"
	PartToolResult PartKind = "tool_result"
	PartImage      PartKind = "image"
	PartFile       PartKind = "file"
	PartOpaque     PartKind = "opaque"
)

// Part is one piece of a message, decoded for reading only: what is sent back to a vendor is Message.Native.
type Part struct {
	Kind PartKind
	// Type is the block's own name on the wire, such as "server_tool_use"; empty when the format has none.
	Type string
	// Text is the text of a text or reasoning part. A tool result's text is in its Content.
	Text string
	// CallID pairs a tool call with its result. Ids repeat in real transcripts: pair by position as well.
	CallID string
	// Name is the name of the tool (of a call, and of a result where the format has it) or of a file.
	Name string
	// Input is the argument text of a tool call as it arrived, usually a JSON object.
	Input string
	// IsError reports whether a tool result is a failure.
	IsError bool
	// Content is what a tool result contains: text, image and file parts.
	Content []Part
	// MediaType is the MIME type of an image or a file, when known.
	MediaType string
	// Bytes is the decoded size of binary content in bytes, 0 when it is referenced by an address.
	Bytes int
	// Width and Height are an image's size in pixels, 0 when unknown.
	Width, Height int
	// Raw is the block as it arrived, a slice of the message's Native; it is a JSON string for content that is plain
	// text. It is nil where the format has no separate block for the part.
	Raw json.RawMessage
}

// Message is one entry of a conversation. Messages are never edited: every stage reads them and returns which of them
// are used where.
type Message struct {
	// Seq is the position in the conversation, from 1, without gaps. A prior summary that stands for
	// covered messages has Seq 0.
	Seq int64
	// ID is the client's own id for the message, if it gave one.
	ID   string
	Role Role
	Kind Kind
	// Parts is the decoded content, in wire order.
	Parts []Part
	// Native is the message as it arrived, byte for byte, in the conversation's format. It is nil for messages that the
	// pipeline made.
	Native json.RawMessage
	// Tokens is the local estimate of what the message costs in a request. Images count by their dimensions.
	Tokens int
}

// Genuine reports whether a person or the automation wrote this message: it has the user role and is neither a summary,
// nor the environment message, nor injected, nor a message that only carries tool results.
func (m Message) Genuine() bool {
	return m.Role == RoleUser && m.Kind == KindOrdinary
}

// Calls returns the ids of the tool calls that the message makes, in order.
func (m Message) Calls() []string { return m.callIDs(PartToolCall) }

// Results returns the call ids of the tool results that the message carries, in order.
func (m Message) Results() []string { return m.callIDs(PartToolResult) }

func (m Message) callIDs(kind PartKind) []string {
	var ids []string
	for _, p := range m.Parts {
		if p.Kind == kind {
			ids = append(ids, p.CallID)
		}
	}
	return ids
}
