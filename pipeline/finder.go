package pipeline

import "strings"

// finder looks for many texts in one pass over another (Aho and Corasick). The names in a summary are looked up in
// everything that the summary was made from, and a search for each would cost the product of the two. The size of the
// finder and the cost of making it are linear in the texts, whatever their number.
type finder struct {
	// root is the state behind each first byte of a text and pairs behind its first two, 0 for none; state 0 is the
	// start. Searches are in these most of the time.
	root   [256]int32
	pairs  [256 * 256]int32
	states []finderState
	// of is for each text the distinct text that it is equal to, -1 for an empty one; ends are their last states.
	of   []int32
	ends []int32
}

type finderState struct {
	// child is the first state behind this one and sibling the next one with the same parent, 0 for none.
	child, sibling int32
	// back is the state to continue in when a text breaks off: the longest end that is the beginning of a text.
	back int32
	// link is the nearest state on the way back where a text ends, 0 for none.
	link int32
	// text is the distinct text that ends here, -1 for none.
	text int32
	// b is the byte that leads here.
	b byte
}

// finderFew is up to how many texts a separate search for each is faster.
const finderFew = 3

// search looks for any number of texts.
type search struct {
	texts  []string
	finder *finder // nil if a separate search for each is faster
}

func newSearch(w *work, texts []string) search {
	s := search{texts: texts}
	if len(texts) > finderFew {
		s.finder = newFinder(w, texts)
	}
	return s
}

// newFinder returns a finder of texts. An empty text is never found.
func newFinder(w *work, texts []string) *finder {
	f := &finder{states: make([]finderState, 1), of: make([]int32, len(texts))}
	f.states[0].text = -1
	for i, t := range texts {
		f.of[i] = -1
		if t == "" {
			continue
		}
		end := f.add(w, t)
		if f.states[end].text < 0 {
			f.states[end].text = int32(len(f.ends))
			f.ends = append(f.ends, end)
		}
		f.of[i] = f.states[end].text
	}
	f.complete(w)
	return f
}

// add adds the states of a text and returns its last one.
func (f *finder) add(w *work, text string) int32 {
	at := int32(0)
	for i := 0; i < len(text); i++ {
		if i%workItem == 0 {
			w.spend(workItem)
		}
		next := f.next(at, text[i])
		if next == 0 {
			next = int32(len(f.states))
			f.states = append(f.states, finderState{text: -1, b: text[i], sibling: f.states[at].child})
			f.states[at].child = next
			switch i {
			case 0:
				f.root[text[0]] = next
			case 1:
				f.pairs[int(text[0])<<8+int(text[1])] = next
			}
		}
		at = next
	}
	return at
}

// next returns the state behind another one, 0 for none.
func (f *finder) next(at int32, b byte) int32 {
	first := f.states[at].b
	switch {
	case at == 0:
		return f.root[b]
	case f.root[first] == at:
		return f.pairs[int(first)<<8+int(b)]
	}
	for s := f.states[at].child; s != 0; s = f.states[s].sibling {
		if f.states[s].b == b {
			return s
		}
	}
	return 0
}

// step returns the state in which a search continues behind a byte.
func (f *finder) step(at int32, b byte) int32 {
	for {
		if next := f.next(at, b); next != 0 || at == 0 {
			return next
		}
		at = f.states[at].back
	}
}

// complete fills in where a search continues, by the length of the beginnings.
func (f *finder) complete(w *work) {
	queue := make([]int32, 0, len(f.states))
	queue = append(queue, 0)
	for i := 0; i < len(queue); i++ {
		w.spend(0)
		at := queue[i]
		for s := f.states[at].child; s != 0; s = f.states[s].sibling {
			if at != 0 {
				f.states[s].back = f.step(f.states[at].back, f.states[s].b)
			}
			back := f.states[s].back
			if f.states[s].link = f.states[back].link; f.states[back].text >= 0 {
				f.states[s].link = back
			}
			queue = append(queue, s)
		}
	}
}

// first calls found for the first occurrence of every distinct text in s, with the position behind it. It stops when
// all are found. seen has for each state the last search in which it was visited, and run is the number of this one:
// a state on the way back that was visited has no news, so that the cost does not grow with texts inside texts.
func (f *finder) first(w *work, s string, seen []int32, run int32, found func(text int32, end int)) {
	state, left := int32(0), len(f.ends)
	for i := 0; i < len(s) && left > 0; i++ {
		if i%workBytes == 0 {
			w.spend(min(workBytes, len(s)-i))
		}
		state = f.step(state, s[i])
		for at := state; at != 0 && seen[at] != run; at = f.states[at].link {
			seen[at] = run
			if text := f.states[at].text; text >= 0 {
				found(text, i+1)
				left--
			}
		}
	}
}

// places returns for each text the position of its first occurrence in a string, -1 if it does not occur or is empty.
func (s search) places(w *work, in string) []int {
	places := make([]int, len(s.texts))
	if s.finder == nil {
		for i, t := range s.texts {
			w.spend(len(in))
			if places[i] = strings.Index(in, t); t == "" {
				places[i] = -1
			}
		}
		return places
	}
	ends := make([]int, len(s.finder.ends)) // 0: not found
	s.finder.first(w, in, make([]int32, len(s.finder.states)), 1, func(text int32, end int) { ends[text] = end })
	for i, t := range s.texts {
		places[i] = -1
		if of := s.finder.of[i]; of >= 0 && ends[of] > 0 {
			places[i] = ends[of] - len(t)
		}
	}
	return places
}

// firstPlaces is places for a single string.
func firstPlaces(w *work, texts []string, in string) []int { return newSearch(w, texts).places(w, in) }
