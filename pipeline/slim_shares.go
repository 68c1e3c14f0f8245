package pipeline

// fitSummaries gives prior summaries the room that they need, up to all of it. It returns how much that was, and
// whether there was any for each.
func (s *slimmer) fitSummaries(room int) (used int, fits bool) {
	var which []int
	var sizes []int
	need, wraps := 0, 0
	for i := range s.elements {
		if e := &s.elements[i]; e.summary {
			which, sizes = append(which, i), append(sizes, e.body)
			need += e.full()
			wraps += e.wrap()
		}
	}
	room -= s.gaps() * s.runLine() // for the lines about the others
	if need <= room {
		return need, true
	}
	fits = true
	for k, share := range fairShare(sizes, room-wraps) {
		e := &s.elements[which[k]]
		e.room = share
		if share < min(e.body, 1) || room < wraps {
			e.room, fits = omitted, false
			continue
		}
		used += e.wrap() + share
	}
	return used, fits
}

// fitShares cuts everything except summaries to fair shares. It reports whether that fits; if not, the rooms that it
// set are invalid.
func (s *slimmer) fitShares(room int) bool {
	var which, rest []int
	aside := s.setAside(room)
	for i := range s.elements {
		if e := &s.elements[i]; !e.summary {
			which, rest = append(which, i), append(rest, e.full()-aside[i])
		}
	}
	remaining := room - sum(aside)
	for k, r := range ascending(rest) {
		s.spend(0)
		e := &s.elements[which[r]]
		share := max(remaining, 0) / (len(which) - k)
		got, line := aside[which[r]]+share-e.wrap(), len(omittedLine(e))+len("\n")
		switch {
		case got >= e.body || got < s.useful() && line >= e.full():
			e.room = e.body
			remaining -= e.full()
		case got >= s.useful():
			e.room = got
			remaining -= e.wrap() + got
		default:
			e.room = omitted
			remaining -= line
		}
		remaining += aside[which[r]]
	}
	return remaining >= 0
}

// setAside returns how much each element gets before the rest is shared out: first the blocks in which a user's words
// are marked, whole within nine tenths of the room; then, from a quarter of what is left, the other genuine user
// messages. What the user asked for and forbade is small, and would be lost first among tool output.
func (s *slimmer) setAside(room int) []int {
	marked, plain := make([]int, len(s.elements)), make([]int, len(s.elements))
	least := make([]int, len(s.elements))
	for i := range s.elements {
		s.spend(0)
		e := &s.elements[i]
		if !e.genuine {
			continue
		}
		if n := e.query(); n > 0 {
			marked[i] = min(e.full(), e.wrap()+n+markerRoom)
		} else {
			plain[i] = e.full()
			least[i] = min(e.full(), e.wrap()+s.useful())
		}
	}
	aside := fairShare(marked, max(room, 0)*9/10)
	for i, n := range usefulShares(plain, least, (max(room, 0)-sum(aside))/4) {
		aside[i] += n
	}
	return aside
}

// usefulShares is fairShare, except if the shares would be too small to be useful: then the newest, which are the last,
// get a useful one and the others nothing. least has for each size the smallest useful share.
func usefulShares(sizes, least []int, room int) []int {
	shares, enough := fairShare(sizes, room), true
	for i := range sizes {
		enough = enough && shares[i] >= least[i]
	}
	if enough {
		return shares
	}
	clear(shares)
	more := make([]int, len(sizes))
	for i := len(sizes) - 1; i >= 0 && least[i] <= room; i-- {
		room -= least[i]
		shares[i], more[i] = least[i], sizes[i]-least[i]
	}
	for i, n := range fairShare(more, room) {
		shares[i] += n
	}
	return shares
}

// useful returns the least that a cut message keeps, in chars.
func (s *slimmer) useful() int { return max(s.in.MinUsefulChars, 1) }
