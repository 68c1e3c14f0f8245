package pipeline

import (
	"slices"
	"strings"
)

// finder looks for many texts in one pass over another (Aho and Corasick). The names in a summary are looked up in
// everything that the summary was made from, and a search for each would cost the product of the two.
type finder struct {
	texts []string
	// class numbers the bytes that occur in the keys, from 1. 0 is for all others, or for the last one if every byte
	// occurs.
	class   [256]uint8
	classes int
	// next is the state after a byte's class, for each state; state 0 is the start.
	next []int32
	// ends lists for each state the texts whose key ends there, the longest first, chained by link.
	ends, link []int32 // of a state: the first text or -1, and the next shorter state with a text or 0
	same       []int32 // of a text: the next one with the same key, or -1
}

// finderKey is how much of a text's end is looked for, in bytes; the rest is compared where that is found. It bounds
// the table. The end is used because it is what distinguishes paths.
const finderKey = 48

// finderTexts is how many texts one finder takes, which also bounds its table.
const finderTexts = 1000

// newFinder returns a finder of at most finderTexts texts. An empty text is never found.
func newFinder(texts []string) *finder {
	f := &finder{texts: texts, same: make([]int32, len(texts))}
	keys := make([]string, len(texts))
	states := 1
	for i, t := range texts {
		keys[i] = t[max(0, len(t)-finderKey):]
		states += len(keys[i])
		for _, b := range []byte(keys[i]) {
			if f.class[b] == 0 && f.classes < 255 {
				f.classes++
				f.class[b] = uint8(f.classes)
			}
		}
	}
	f.classes++
	f.next = make([]int32, 0, states*f.classes)
	f.state()
	for i, key := range keys {
		f.add(int32(i), key)
	}
	f.complete()
	return f
}

func (f *finder) state() int32 {
	f.next = append(f.next, make([]int32, f.classes)...)
	f.ends, f.link = append(f.ends, -1), append(f.link, 0)
	return int32(len(f.ends) - 1)
}

func (f *finder) add(text int32, key string) {
	f.same[text] = -1
	if key == "" {
		return
	}
	at := int32(0)
	for _, b := range []byte(key) {
		step := int(at)*f.classes + int(f.class[b])
		if f.next[step] == 0 {
			made := f.state()
			f.next[step] = made
		}
		at = f.next[step]
	}
	f.same[text], f.ends[at] = f.ends[at], text
}

// complete fills in the state to continue in when a text breaks off: the longest end that is the beginning of another
// text.
func (f *finder) complete() {
	back := make([]int32, len(f.ends))
	queue := make([]int32, 0, len(f.ends))
	for c := range f.classes {
		if s := f.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if f.link[at] = f.link[back[at]]; f.ends[back[at]] >= 0 {
			f.link[at] = back[at]
		}
		row, other := f.next[int(at)*f.classes:], f.next[int(back[at])*f.classes:]
		for c := range f.classes {
			if s := row[c]; s != 0 {
				back[s] = other[c]
				queue = append(queue, s)
			} else {
				row[c] = other[c]
			}
		}
	}
}

// each calls found for every occurrence of every text in s, with the index of the text and the position of the
// occurrence. It stops when found returns true.
func (f *finder) each(s string, found func(text, at int) (stop bool)) {
	state := int32(0)
	for i := 0; i < len(s); i++ {
		state = f.next[int(state)*f.classes+int(f.class[s[i]])]
		at := state
		if f.ends[at] < 0 {
			at = f.link[at]
		}
		for ; at != 0; at = f.link[at] {
			for text := f.ends[at]; text >= 0; text = f.same[text] {
				t := f.texts[text]
				if begin := i + 1 - len(t); begin >= 0 && (len(t) <= finderKey || s[begin:i+1] == t) &&
					found(int(text), begin) {
					return
				}
			}
		}
	}
}

// search looks for any number of texts, in passes of finderTexts each.
type search struct {
	texts   []string
	finders []*finder // nil if a separate search for each is faster
}

func newSearch(texts []string) search {
	s := search{texts: texts}
	if few := 3; len(texts) > few {
		for part := range slices.Chunk(texts, finderTexts) {
			s.finders = append(s.finders, newFinder(part))
		}
	}
	return s
}

// places returns for each text the position of its first occurrence in a string, -1 if it does not occur or is empty.
func (s search) places(in string) []int {
	places := make([]int, len(s.texts))
	for i, t := range s.texts {
		places[i] = -1
		if s.finders == nil && t != "" {
			places[i] = strings.Index(in, t)
		}
	}
	for k, f := range s.finders {
		part := places[k*finderTexts:][:len(f.texts)]
		left := len(part)
		f.each(in, func(text, at int) bool {
			if part[text] < 0 {
				part[text] = at
				left--
			}
			return left == 0
		})
	}
	return places
}

// firstPlaces is places for a single string.
func firstPlaces(texts []string, in string) []int { return newSearch(texts).places(in) }
