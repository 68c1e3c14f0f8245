package transcript

import (
	"cmp"
	"fmt"
	"slices"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// A layout is a message taken apart for reading and for surgery: its parts, and where they stand in its bytes.
type layout struct {
	native []byte
	role   string
	nodes  []node
	// lists are the arrays and objects that nodes can be taken out of.
	lists []list
	// entry writes the entry of a list that says a text in the place of what is none; nil: textBlock.
	entry func(text string) []byte
}

// A node is one part and its place.
type node struct {
	part pipeline.Part
	// list and index say which entry of which list the node is; list is -1 for one that is no entry.
	list, index int
	// value is what EditReplace puts the text in the place of: a string literal, the content of a tool result,
	// the input of a call.
	value rawjson.Value
	// insert is where a missing value goes, 0: nowhere, and key the key that it gets there; empty: "content".
	insert int
	key    string
	// as writes a text for value, nil: as a JSON string. For the input of a call it may refuse a text.
	as func(text string) ([]byte, error)
	// twins are other places of the message that say the same: what is done to the node is done there as well.
	twins []node
	// vacant is what a value turns into when the part is dropped and the node is no entry of a list.
	vacant string
	// block says that the node is nothing but content: it cannot be replaced by an empty text, only dropped.
	block bool
	// fixed says that no text can stand in for what the node holds: EditReplace leaves it as it is.
	fixed bool
	// wordless says that nothing but media may stand in the node's place: EditReplace drops it.
	wordless bool
	// content are the nodes of a tool result.
	content []node
}

// A list is a row of siblings that can be taken out together with their commas.
type list struct {
	siblings []rawjson.Value
	// whole is the value that holds them, and vacant what it turns into when none is left; empty: nothing, the
	// list may stand empty.
	whole  rawjson.Value
	vacant string
	// parent is the entry of an earlier list that goes with the last of these; -1: none does.
	parent, parentIndex int
}

// parts gives the parts of nodes.
func parts(nodes []node) []pipeline.Part {
	if len(nodes) == 0 {
		return nil
	}
	out := make([]pipeline.Part, len(nodes))
	for i, n := range nodes {
		out[i] = n.part
		out[i].Content = parts(n.content)
	}
	return out
}

func (l *layout) addList(x list) int {
	l.lists = append(l.lists, x)
	return len(l.lists) - 1
}

// newList is a list that no other goes with.
func newList(siblings []rawjson.Value) list { return list{siblings: siblings, parent: -1} }

// surgery collects what edits do to a message.
type surgery struct {
	*layout
	splices []rawjson.Splice
	dropped [][]bool       // per list
	gone    map[*node]bool // top-level nodes that are dropped
	done    map[*node]pipeline.Edit
}

// edit applies edits to a message. The result is nil when nothing is left of it. call writes a new input for a
// tool call.
func (l *layout) edit(edits []pipeline.Edit, call func(n node, text string) ([]byte, error)) ([]byte, error) {
	s := surgery{layout: l, gone: map[*node]bool{}, done: map[*node]pipeline.Edit{}}
	s.dropped = make([][]bool, len(l.lists))
	for i, x := range l.lists {
		s.dropped[i] = make([]bool, len(x.siblings))
	}
	// The last edit of a target counts, and one of a whole result makes those of its content void.
	var order []*node
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
		if err := s.one(n, e, call); err != nil {
			return nil, err
		}
	}
	return s.finish(), nil
}

func (l *layout) target(e pipeline.Edit) (*node, error) {
	if e.Part < 0 || e.Part >= len(l.nodes) {
		return nil, pipeline.Errorf(pipeline.Internal, "an edit names part %d of a message with %d", e.Part,
			len(l.nodes))
	}
	n := &l.nodes[e.Part]
	if e.Content < 0 {
		return n, nil
	}
	if e.Content >= len(n.content) {
		return nil, pipeline.Errorf(pipeline.Internal, "an edit names content %d of a part with %d", e.Content,
			len(n.content))
	}
	return &n.content[e.Content], nil
}

func (s *surgery) one(n *node, e pipeline.Edit, call func(node, string) ([]byte, error)) error {
	top := e.Content < 0
	// No vendor takes an empty text block.
	drop := e.Op == pipeline.EditDrop || e.Op == pipeline.EditReplace && (e.Text == "" && n.block || n.wordless)
	if n.fixed && !drop || !top && s.nodes[e.Part].fixed {
		return nil
	}
	switch {
	case drop:
	case e.Op != pipeline.EditReplace:
		return pipeline.Errorf(pipeline.Internal, "there is no edit %q", e.Op)
	case n.part.Kind == pipeline.PartReasoning:
		return pipeline.Errorf(pipeline.Internal, "reasoning is kept as it is or dropped, never edited")
	}
	for i := -1; i < len(n.twins); i++ {
		at := n
		if i >= 0 {
			at = &n.twins[i]
		}
		if drop {
			s.drop(at)
		} else if err := s.replace(at, n.part.Kind, e.Text, call); err != nil {
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
	for i := range s.nodes {
		n := &s.nodes[i]
		if !s.gone[n] && (n.list >= 0 || n.value.IsMissing() || !s.inDropped(n.value)) {
			return false
		}
	}
	return len(s.nodes) > 0
}

func (s *surgery) inDropped(v rawjson.Value) bool {
	for i, x := range s.lists {
		for j, el := range x.siblings {
			if s.dropped[i][j] && el.Start() <= v.Start() && v.End() <= el.End() {
				return true
			}
		}
	}
	return false
}

func (s *surgery) drop(n *node) {
	switch {
	case n.list >= 0:
		s.dropped[n.list][n.index] = true
	case !n.value.IsMissing():
		s.splices = append(s.splices, n.value.Replace([]byte(n.vacant)))
	}
}

// replace puts a text in the place of what a node of the kind holds.
func (s *surgery) replace(n *node, kind pipeline.PartKind, text string, call func(node, string) ([]byte, error)) error {
	b := rawjson.Quote(text)
	var err error
	switch {
	case n.as != nil:
		b, err = n.as(text)
	case kind == pipeline.PartToolCall:
		b, err = call(*n, text)
	case kind == pipeline.PartText, kind == pipeline.PartToolResult, n.list < 0:
	case s.entry != nil:
		s.splices = append(s.splices, s.lists[n.list].siblings[n.index].Replace(s.entry(text)))
		return nil
	default:
		s.splices = append(s.splices, s.lists[n.list].siblings[n.index].Replace(textBlock(text)))
		return nil
	}
	if err != nil {
		return err
	}
	if !n.value.IsMissing() {
		s.splices = append(s.splices, n.value.Replace(b))
	} else if n.insert > 0 {
		key := append(rawjson.Quote(cmp.Or(n.key, "content")), ':')
		s.splices = append(s.splices, rawjson.Insert(n.insert, fmt.Appendf(nil, ",%s%s", key, b)))
	}
	return nil
}

// finish takes the dropped entries out and does the splices.
func (s *surgery) finish() []byte {
	if s.nothingLeft() {
		return nil
	}
	// From the innermost outwards: a list that ends up empty may take an entry of an outer one with it.
	for i := len(s.lists) - 1; i >= 0; i-- {
		x, dropped := &s.lists[i], s.dropped[i]
		if empty := len(dropped) > 0 && !slices.Contains(dropped, false); empty && x.parent >= 0 {
			s.dropped[x.parent][x.parentIndex] = true
			continue
		} else if empty && x.vacant != "" {
			s.splices = append(s.splices, x.whole.Replace([]byte(x.vacant)))
			continue
		}
		s.splices = append(s.splices, rawjson.Without(x.siblings, func(j int) bool { return dropped[j] })...)
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
	return rawjson.Apply(s.native, kept...)
}

// parseError is for a message that is JSON but no message of the format.
func parseError(format Format, reason string, args ...any) error {
	return pipeline.Errorf(pipeline.BadRequest, "no message of format %s: %s", format, fmt.Sprintf(reason, args...))
}
