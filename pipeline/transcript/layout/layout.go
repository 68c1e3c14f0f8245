// Package layout describes a message as its parts and the place of each in the message's bytes. A reader of a format
// fills a Layout, which then provides the decoded message and the bytes with edits applied.
package layout

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// A Layout has the parts of a message and their places in its bytes.
type Layout struct {
	Format string
	Native []byte
	Role   string
	Nodes  []Node
	// Lists are the arrays and objects that nodes can be removed from.
	Lists []List
	// Entry writes the list entry that replaces one that is not text, such as an image, by a text. Nil is TextBlock.
	Entry func(text string) []byte
	// Input writes the new input of a tool call. Nil is ObjectInput.
	Input func(n Node, text string) ([]byte, error)
	// fixed is true when role and kind do not depend on the texts of the message: see Decide.
	fixed   bool
	speaker pipeline.Role
	kind    pipeline.Kind
}

// A Node is one part and its place.
type Node struct {
	Part pipeline.Part
	// List is the index of the list that has the node as its entry Index, -1 for a node that is not an entry.
	List, Index int
	// Value is what EditReplace replaces: a string literal, the content of a tool result, the input of a call.
	Value rawjson.Value
	// Insert is the offset at which a missing Value is inserted, 0 if it cannot be, and Key its key there, "" for
	// "content".
	Insert int
	Key    string
	// As writes a text for Value; nil writes a JSON string. For the input of a call it may refuse a text.
	As func(text string) ([]byte, error)
	// Twins are other places of the message with the same content: they are edited with the node.
	Twins []Node
	// Vacant replaces Value when the part is dropped and the node is not an entry of a list.
	Vacant string
	// Block is true for a node that consists only of content: an empty text drops it.
	Block bool
	// Fixed is true when no text can replace the content of the node: EditReplace leaves it as it is.
	Fixed bool
	// MediaOnly is true where the format allows only media: EditReplace drops the node.
	MediaOnly bool
	// Content are the nodes of a tool result.
	Content []Node
}

// A List is a sequence of siblings that can be removed together with their commas.
type List struct {
	Siblings []rawjson.Value
	// Whole is the value that holds them. Vacant replaces it when none is left; "" leaves the empty list.
	Whole  rawjson.Value
	Vacant string
	// Parent and ParentIndex are the entry of an earlier list that is removed with the last sibling; -1 for none.
	Parent, ParentIndex int
}

// New returns an empty layout for a message. Errors name the format.
func New(format string, native []byte) *Layout { return &Layout{Format: format, Native: native} }

// parts returns the parts of nodes.
func parts(nodes []Node) []pipeline.Part {
	if len(nodes) == 0 {
		return nil
	}
	out := make([]pipeline.Part, len(nodes))
	for i, n := range nodes {
		out[i] = n.Part
		out[i].Content = parts(n.Content)
	}
	return out
}

// AddList adds a list and returns its index.
func (l *Layout) AddList(x List) int {
	l.Lists = append(l.Lists, x)
	return len(l.Lists) - 1
}

// NewList returns a list whose removal removes nothing else.
func NewList(siblings []rawjson.Value) List { return List{Siblings: siblings, Parent: -1} }

// Errorf returns an error for a message that is JSON but not a message of the format.
func Errorf(format string, reason string, args ...any) error {
	return pipeline.Errorf(pipeline.BadRequest, "not a message of format %s: %s", format, fmt.Sprintf(reason, args...))
}

// Decide sets the role and the kind of the message independently of its texts.
func (l *Layout) Decide(role pipeline.Role, kind pipeline.Kind) {
	l.fixed, l.speaker, l.kind = true, role, kind
}

// Errorf calls the function Errorf with the layout's format.
func (l *Layout) Errorf(reason string, args ...any) error {
	return Errorf(l.Format, reason, args...)
}
