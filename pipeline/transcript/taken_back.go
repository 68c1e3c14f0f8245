package transcript

// Agents let the user take turns back: a rollback, a rewind, a revert. Where a file records that only behind the
// messages that it takes back, the items of the conversation are held back, up to a bound.

// takenBack holds the items of a conversation that may still be taken back.
type takenBack struct {
	// hold bounds the items in bytes; 0 holds nothing back.
	hold  int
	items []Item
	bytes int
	// emitted is the number of items that were emitted already.
	emitted int
}

// mark returns the place of the next item, for takeBack.
func (s *emitter) mark() int { return s.back.emitted + len(s.back.items) }

// put emits an item, or holds it back.
func (s *emitter) put(it Item, size int) {
	if s.back.hold == 0 {
		s.emit(it)
		return
	}
	s.back.items = append(s.back.items, it)
	if s.back.bytes += size + 64; s.back.bytes > s.back.hold {
		s.release()
	}
}

// release emits the held items.
func (s *emitter) release() {
	for _, it := range s.back.items {
		s.emit(it)
	}
	s.back.emitted += len(s.back.items)
	s.back.items, s.back.bytes = nil, 0
}

// takeBack removes all items from a mark on, and notes each message among them with the reason. Items that are no
// longer held stay; a note says so.
func (s *emitter) takeBack(mark, line int, what, reason string) {
	from := mark - s.back.emitted
	if from < 0 {
		s.note(line, NoteBranch, what, "it goes further back than the held messages: the earlier ones are kept")
		from = 0
	}
	if from >= len(s.back.items) {
		return
	}
	for _, it := range s.back.items[from:] {
		if it.Message != nil {
			s.count--
			s.notes.add(Note{Code: NoteBranch, What: what + " message", Reason: reason}, it.Line)
		}
	}
	s.back.items = s.back.items[:from:from]
}

// at returns the held item at a mark, nil if there is none.
func (s *emitter) at(mark int) *Item {
	if i := mark - s.back.emitted; i >= 0 && i < len(s.back.items) {
		return &s.back.items[i]
	}
	return nil
}
