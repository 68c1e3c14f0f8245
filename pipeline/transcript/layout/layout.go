package layout

import (
	"cmp"
	"fmt"
	"slices"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// A layout is a message taken apart for reading and for surgery: its parts, and where they stand in its bytes.
type Layout struct {
	Format string
	Native []byte
	Role   string
	Nodes  []Node
	// lists are the arrays and objects that nodes can be taken out of.
	Lists []List
	// entry writes the entry of a list that says a text in the place of what is none; nil: textBlock.
	Entry func(text string) []byte
	// input writes a new input for a tool call; nil: objectInput.
	Input func(n Node, text string) ([]byte, error)
	// fixed says that the message is of speaker and kind whatever its texts are.
	fixed   bool
	speaker pipeline.Role
	kind    pipeline.Kind
}

// A node is one part and its place.
type Node struct {
	Part pipeline.Part
	// list and index say which entry of which list the node is; list is -1 for one that is no entry.
	List, Index int
	// value is what EditReplace puts the text in the place of: a string literal, the content of a tool result,
	// the input of a call.
	Value rawjson.Value
	// insert is where a missing value goes, 0: nowhere, and key the key that it gets there; empty: "content".
	Insert int
	Key    string
	// as writes a text for value, nil: as a JSON string. For the input of a call it may refuse a text.
	As func(text string) ([]byte, error)
	// twins are other places of the message that say the same: what is done to the node is done there as well.
	Twins []Node
	// vacant is what a value turns into when the part is dropped and the node is no entry of a list.
	Vacant string
	// block says that the node is nothing but content: it cannot be replaced by an empty text, only dropped.
	Block bool
	// fixed says that no text can stand in for what the node holds: EditReplace leaves it as it is.
	Fixed bool
	// wordless says that nothing but media may stand in the node's place: EditReplace drops it.
	MediaOnly bool
	// content are the nodes of a tool result.
	Content []Node
}

// A list is a row of siblings that can be taken out together with their commas.
type List struct {
	Siblings []rawjson.Value
	// whole is the value that holds them, and vacant what it turns into when none is left; empty: nothing, the
	// list may stand empty.
	Whole  rawjson.Value
	Vacant string
	// parent is the entry of an earlier list that goes with the last of these; -1: none does.
	Parent, ParentIndex int
}

// newLayout returns the layout of a message of the format, which errors name, that is still to be read.
func New(format string, native []byte) *Layout { return &Layout{Format: format, Native: native} }

// parts gives the parts of nodes.
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

func (l *Layout) AddList(x List) int {
	l.Lists = append(l.Lists, x)
	return len(l.Lists) - 1
}

// newList is a list that no other goes with.
func NewList(siblings []rawjson.Value) List { return List{Siblings: siblings, Parent: -1} }

// surgery collects what edits do to a message.
type surgery struct {
	*Layout
	splices []rawjson.Splice
	dropped [][]bool       // per list
	gone    map[*Node]bool // top-level nodes that are dropped
	done    map[*Node]pipeline.Edit
}

// edit applies edits to a message. The result is nil when nothing is left of it.
func (l *Layout) Edit(edits []pipeline.Edit) ([]byte, error) {
	s := surgery{Layout: l, gone: map[*Node]bool{}, done: map[*Node]pipeline.Edit{}}
	s.dropped = make([][]bool, len(l.Lists))
	for i, x := range l.Lists {
		s.dropped[i] = make([]bool, len(x.Siblings))
	}
	// The last edit of a target counts, and one of a whole result makes those of its content void.
	var order []*Node
	wholeResult := map[int]bool{}
	for _, e := range edits {
		n, err := l.target(e)
		if err != nil {
			return nil, err
		}
		if e.Content < 0 {
			wholeResult[e.Part] = true
		}
		if _, ok := s.done[n]; !ok {
			order = append(order, n)
		}
		s.done[n] = e
	}
	for _, n := range order {
		e := s.done[n]
		if e.Content >= 0 && wholeResult[e.Part] {
			continue
		}
		if err := s.one(n, e); err != nil {
			return nil, err
		}
	}
	return s.finish(), nil
}

func (l *Layout) target(e pipeline.Edit) (*Node, error) {
	if e.Part < 0 || e.Part >= len(l.Nodes) {
		return nil, pipeline.Errorf(pipeline.Internal, "an edit names part %d of a message with %d", e.Part,
			len(l.Nodes))
	}
	n := &l.Nodes[e.Part]
	if e.Content < 0 {
		return n, nil
	}
	if e.Content >= len(n.Content) {
		return nil, pipeline.Errorf(pipeline.Internal, "an edit names content %d of a part with %d", e.Content,
			len(n.Content))
	}
	return &n.Content[e.Content], nil
}

func (s *surgery) one(n *Node, e pipeline.Edit) error {
	top := e.Content < 0
	// No vendor takes an empty text block.
	drop := e.Op == pipeline.EditDrop || e.Op == pipeline.EditReplace && (e.Text == "" && n.Block || n.MediaOnly)
	if n.Fixed && !drop || !top && s.Nodes[e.Part].Fixed {
		return nil
	}
	switch {
	case drop:
	case e.Op != pipeline.EditReplace:
		return pipeline.Errorf(pipeline.Internal, "there is no edit %q", e.Op)
	case n.Part.Kind == pipeline.PartReasoning:
		return pipeline.Errorf(pipeline.Internal, "reasoning is kept as it is or dropped, never edited")
	}
	for i := -1; i < len(n.Twins); i++ {
		at := n
		if i >= 0 {
			at = &n.Twins[i]
		}
		if drop {
			s.drop(at)
		} else if err := s.replace(at, n.Part.Kind, e.Text); err != nil {
			return err
		}
	}
	if drop && top {
		s.gone[n] = true
	}
	return nil
}

// nothingLeft says whether all parts are dropped, on their own or with the entry of a list that they stand in.
func (s *surgery) nothingLeft() bool {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !s.gone[n] && (n.List >= 0 || n.Value.IsMissing() || !s.inDropped(n.Value)) {
			return false
		}
	}
	return len(s.Nodes) > 0
}

func (s *surgery) inDropped(v rawjson.Value) bool {
	for i, x := range s.Lists {
		for j, el := range x.Siblings {
			if s.dropped[i][j] && el.Start() <= v.Start() && v.End() <= el.End() {
				return true
			}
		}
	}
	return false
}

func (s *surgery) drop(n *Node) {
	switch {
	case n.List >= 0:
		s.dropped[n.List][n.Index] = true
	case !n.Value.IsMissing():
		s.splices = append(s.splices, n.Value.Replace([]byte(n.Vacant)))
	}
}

// replace puts a text in the place of what a node of the kind holds.
func (s *surgery) replace(n *Node, kind pipeline.PartKind, text string) error {
	b := rawjson.Quote(text)
	var err error
	switch {
	case n.As != nil:
		b, err = n.As(text)
	case kind == pipeline.PartToolCall:
		b, err = s.newInput(*n, text)
	case kind == pipeline.PartText, kind == pipeline.PartToolResult, n.List < 0:
	case s.Entry != nil:
		s.splices = append(s.splices, s.Lists[n.List].Siblings[n.Index].Replace(s.Entry(text)))
		return nil
	default:
		s.splices = append(s.splices, s.Lists[n.List].Siblings[n.Index].Replace(TextBlock(text)))
		return nil
	}
	if err != nil {
		return err
	}
	if !n.Value.IsMissing() {
		s.splices = append(s.splices, n.Value.Replace(b))
	} else if n.Insert > 0 {
		key := append(rawjson.Quote(cmp.Or(n.Key, "content")), ':')
		s.splices = append(s.splices, rawjson.Insert(n.Insert, fmt.Appendf(nil, ",%s%s", key, b)))
	}
	return nil
}

func (l *Layout) newInput(n Node, text string) ([]byte, error) {
	if l.Input != nil {
		return l.Input(n, text)
	}
	return ObjectInput(n, text)
}

// objectInput is a new input for a tool call that must be an object, as most APIs want it.
func ObjectInput(_ Node, text string) ([]byte, error) {
	if b := []byte(text); rawjson.Check(b) == nil && rawjson.Root(b).IsObject() {
		return b, nil
	}
	return nil, pipeline.Errorf(pipeline.Internal, "the new input of a tool call must be a JSON object")
}

// stringInput is a new input for a tool call that is a string, whatever stands in it.
func StringInput(_ Node, text string) ([]byte, error) { return rawjson.Quote(text), nil }

// inputAsBefore is a new input of the type that the old one has: a string, else an object.
func InputAsBefore(n Node, text string) ([]byte, error) {
	if n.Value.IsString() {
		return StringInput(n, text)
	}
	return ObjectInput(n, text)
}

// finish takes the dropped entries out and does the splices.
func (s *surgery) finish() []byte {
	if s.nothingLeft() {
		return nil
	}
	// From the innermost outwards: a list that ends up empty may take an entry of an outer one with it.
	for i := len(s.Lists) - 1; i >= 0; i-- {
		x, dropped := &s.Lists[i], s.dropped[i]
		if empty := len(dropped) > 0 && !slices.Contains(dropped, false); empty && x.Parent >= 0 {
			s.dropped[x.Parent][x.ParentIndex] = true
			continue
		} else if empty && x.Vacant != "" {
			s.splices = append(s.splices, x.Whole.Replace([]byte(x.Vacant)))
			continue
		}
		s.splices = append(s.splices, rawjson.Without(x.Siblings, func(j int) bool { return dropped[j] })...)
	}
	// What stands inside of something that goes, goes with it.
	slices.SortStableFunc(s.splices, func(a, b rawjson.Splice) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	kept, end := s.splices[:0], 0
	for _, x := range s.splices {
		if x.End <= end && x.Start < end {
			continue
		}
		kept, end = append(kept, x), max(end, x.End)
	}
	return rawjson.Apply(s.Native, kept...)
}

// parseError is for a message that is JSON but no message of the format.
func Errorf(format string, reason string, args ...any) error {
	return pipeline.Errorf(pipeline.BadRequest, "no message of format %s: %s", format, fmt.Sprintf(reason, args...))
}

// decide makes the message one of role and kind, whatever its texts are.
func (l *Layout) Decide(role pipeline.Role, kind pipeline.Kind) {
	l.fixed, l.speaker, l.kind = true, role, kind
}

func (l *Layout) Errorf(reason string, args ...any) error {
	return Errorf(l.Format, reason, args...)
}
