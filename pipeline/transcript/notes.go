package transcript

import (
	"precis/pipeline/transcript/jsonstream"
)

// notes counts what was left out, so that a file with thousands of the client's own records yields only a few notes.
type notes struct {
	list []Item
	at   map[noteKey]int
}

type noteKey struct {
	code NoteCode
	what string
}

func (n *notes) add(note Note, line int) {
	k := noteKey{note.Code, note.What}
	if i, ok := n.at[k]; ok {
		n.list[i].Note.Count++
		return
	}
	if n.at == nil {
		n.at = map[noteKey]int{}
	}
	if len(n.list) >= maxNoteKinds {
		// The bound limits memory for a file with arbitrary names.
		k.what, note.What = "", ""
		if i, ok := n.at[k]; ok {
			n.list[i].Note.Count++
			return
		}
	}
	note.Count = 1
	n.at[k] = len(n.list)
	n.list = append(n.list, Item{Line: line, Note: &note})
}

// maxNoteKinds bounds how many different things are counted by name.
const maxNoteKinds = 200

// flush emits the notes in the order of their first lines, and reports whether there were any.
func (n *notes) flush(emit func(Item)) bool {
	for _, it := range n.list {
		emit(it)
	}
	some := len(n.list) > 0
	n.list, n.at = nil, nil
	return some
}

func damagedNote(d *jsonstream.Damage) Item {
	return Item{Line: d.Line, Note: &Note{Code: NoteDamaged, Reason: d.Reason.Error(), Count: 1}}
}
