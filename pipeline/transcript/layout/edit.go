package layout

import (
	"cmp"
	"fmt"
	"slices"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// surgery collects the splices and removals of the edits of one message.
type surgery struct {
	*Layout
	splices []rawjson.Splice
	dropped [][]bool       // per list
	removed map[*Node]bool // top-level nodes that are dropped
	done    map[*Node]pipeline.Edit
}

// Edit applies edits to a message. It returns nil if they leave no content.
func (l *Layout) Edit(edits []pipeline.Edit) ([]byte, error) {
	s := surgery{Layout: l, removed: map[*Node]bool{}, done: map[*Node]pipeline.Edit{}}
	s.dropped = make([][]bool, len(l.Lists))
	for i, x := range l.Lists {
		s.dropped[i] = make([]bool, len(x.Siblings))
	}
	// The last edit of a target applies, and an edit of a whole result cancels those of its content.
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
	// Vendors do not take an empty text block.
	drop := e.Op == pipeline.EditDrop || e.Op == pipeline.EditReplace && (e.Text == "" && n.Block || n.MediaOnly)
	if n.Fixed && !drop || !top && s.Nodes[e.Part].Fixed {
		return nil
	}
	switch {
	case drop:
	case e.Op != pipeline.EditReplace:
		return pipeline.Errorf(pipeline.Internal, "unknown edit %q", e.Op)
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
		s.removed[n] = true
	}
	return nil
}

// nothingLeft reports whether all parts are dropped, on their own or with the list entry around them.
func (s *surgery) nothingLeft() bool {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !s.removed[n] && (n.List >= 0 || n.Value.IsMissing() || !s.inDropped(n.Value)) {
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

// replace replaces the content of a node of the kind with a text.
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

// finish removes the dropped entries and applies the splices.
func (s *surgery) finish() []byte {
	if s.nothingLeft() {
		return nil
	}
	// From the innermost outwards: a list that becomes empty may remove an entry of an outer one.
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
	// Splices inside of a removed value do not apply.
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
