package transcript

import (
	"bytes"
	"slices"

	"precis/pipeline/transcript/rawjson"
)

// A session of Claude Code is the chain of its newest record over parentUuid: who rewinds a session, or retries in it,
// continues from an earlier record, and what came behind that is no longer part of the conversation. Only the end of
// the file shows the chain. Until then the records are held back, up to a bound, beyond which all are taken in the
// order of the file.

// claudeChain holds the records of a file.
type claudeChain struct {
	held  []claudeHeld
	bytes int
	// draining is true while the held records are read, whole once the bound was exceeded.
	draining, whole bool
	next            int
	live            []bool
	// failed is the error that ended the file.
	failed error
}

type claudeHeld struct {
	b    []byte
	line int
}

// take holds a record back, or reads it if the file is too large or has no chain.
func (c *claudeSession) take(emit func(Item), b []byte, line int) error {
	b = bytes.Clone(b)
	if c.format.name() != ClaudeCode || c.chain.whole {
		return c.record(emit, b, readRecord(rawjson.Root(b)), line)
	}
	c.chain.held = append(c.chain.held, claudeHeld{b, line})
	if c.chain.bytes += len(b) + 64; c.chain.bytes <= c.hold {
		return nil
	}
	c.notes.add(Note{
		Code: NoteBranch, What: "file",
		Reason: "it is too large to follow its branches: all records are taken in the order of the file",
	}, line)
	held := c.chain.held
	c.chain = claudeChain{whole: true}
	for i, h := range held {
		held[i].b = nil
		if err := c.fault(emit, c.record(emit, h.b, readRecord(rawjson.Root(h.b)), h.line)); err != nil {
			return err
		}
	}
	return nil
}

// release begins to read the held records at the end of the file.
func (c *claudeSession) release(emit func(Item)) error {
	c.chain.draining = true
	c.chain.live = c.liveRecords()
	return c.drain(emit)
}

// drain reads the next held record, and after the last one ends the file.
func (c *claudeSession) drain(emit func(Item)) error {
	if c.chain.next == len(c.chain.held) {
		c.ended = true
		if c.chain.failed != nil {
			return c.chain.failed
		}
		return c.finish(emit)
	}
	i := c.chain.next
	c.chain.next++
	h := c.chain.held[i]
	c.chain.held[i].b = nil
	r := readRecord(rawjson.Root(h.b))
	if !c.chain.live[i] && r.forModel() {
		c.notes.add(Note{
			Code: NoteBranch, What: "record",
			Reason: "it is on a branch that the conversation left: the session was rewound, or retried",
		}, h.line)
		return nil
	}
	return c.fault(emit, c.record(emit, h.b, r, h.line))
}

// forModel reports whether a record changes what the model sees: a message, an attachment, a compaction.
func (r record) forModel() bool {
	switch r.typ {
	case "system":
		return r.subtype.Text() == "compact_boundary"
	case "attachment":
		_, queued := r.queuedPrompt()
		_, attached := r.attachedFile()
		return queued || attached
	case "assistant":
		return !r.apiError && r.message.Get("model").Text() != "<synthetic>"
	}
	return r.typ == "user"
}

// claudeLink is what the chain needs of a record.
type claudeLink struct {
	id, parent, time string
	// root is true for a record that names no parent on purpose, with null.
	root bool
	// side marks a record of a subagent, answer one of the model, attached what the client added to a request, leaf one
	// with which a conversation may end, and compacted one that follows a compaction and may have no parent.
	side, answer, attached, leaf, compacted bool
	message                                 string   // message.id of an answer
	calls, results                          []string // ids of the calls that it makes and answers
}

// liveRecords reports for each held record whether it belongs to the conversation.
func (c *claudeSession) liveRecords() []bool {
	links := make([]claudeLink, len(c.chain.held))
	at := map[string]int{} // by uuid, the first of a record that was written twice
	for i, h := range c.chain.held {
		links[i] = linkOf(readRecord(rawjson.Root(h.b)))
		if _, again := at[links[i].id]; !again && links[i].id != "" {
			at[links[i].id] = i
		}
	}
	live := make([]bool, len(links))
	if !isChain(links, at) {
		for i := range live {
			live[i] = true
		}
		return live
	}
	if c.followChain(links, at, live) {
		addSiblings(links, at, live)
	}
	for i, l := range links {
		// Records without a place in the chain are not messages; copies are left out where they are read.
		if l.id == "" || l.side || at[l.id] != i {
			live[i] = true
		}
	}
	return live
}

// isChain reports whether any record names another one of the file as its parent.
func isChain(links []claudeLink, at map[string]int) bool {
	return slices.ContainsFunc(links, func(l claudeLink) bool {
		_, known := at[l.parent]
		return known && l.parent != ""
	})
}

func linkOf(r record) claudeLink {
	boundary := r.typ == "system" && r.subtype.Text() == "compact_boundary"
	l := claudeLink{
		id: r.uuid.Text(), parent: r.parent.Text(), root: r.parent.IsNull(),
		time: r.at.Get("timestamp").Text(), side: r.sidechain,
		answer: r.typ == "assistant", attached: r.typ == "attachment",
		compacted: boundary || r.summary,
		leaf:      boundary || r.typ == "user" || r.typ == "assistant" || r.typ == "attachment",
	}
	if l.parent == "" {
		l.parent = r.at.Get("logicalParentUuid").Text()
	}
	if !r.message.IsObject() {
		return l
	}
	l.message = r.message.Get("id").Text()
	content := r.message.Get("content")
	if !content.IsArray() {
		return l
	}
	for _, el := range content.Elements() {
		switch el.Get("type").Text() {
		case "tool_result":
			l.results = append(l.results, el.Get("tool_use_id").Text())
		case "tool_use":
			l.calls = append(l.calls, el.Get("id").Text())
		}
	}
	return l
}

// followChain marks the records of the chain of the newest leaf, and reports whether the file has others. Where the
// parent of a record is missing, the chain continues with the line before.
func (c *claudeSession) followChain(links []claudeLink, at map[string]int, live []bool) (branched bool) {
	before := func(i int) int {
		for i--; i >= 0 && (links[i].id == "" || links[i].side || at[links[i].id] != i); i-- {
		}
		return i
	}
	i := newestLeaf(links, at)
	for i >= 0 && !live[i] {
		live[i] = true
		l := links[i]
		parent, known := at[l.parent]
		switch {
		case known && !live[parent]:
			i = parent
			continue
		case l.root && l.parent == "" && !l.compacted:
			i = -1 // the beginning of the conversation
			continue
		}
		if i = before(i); i >= 0 && l.parent != "" && !known && !l.compacted {
			c.notes.add(Note{
				Code: NoteBranch, What: "parentUuid",
				Reason: "a record names a parent that is not in the file: the order of the lines is taken there",
			}, c.chain.held[i].line)
		}
	}
	for i, l := range links {
		if !live[i] && l.id != "" && !l.side && at[l.id] == i {
			return true
		}
	}
	return false
}

// newestLeaf returns the newest leaf, -1 if there is none: of the records with which a conversation may end, and behind
// which there is no other of them, that with the latest time, and of several the last of the file.
func newestLeaf(links []claudeLink, at map[string]int) int {
	followed := make([]bool, len(links))
	for i := len(links) - 1; i >= 0; i-- {
		l := links[i]
		if l.id == "" || at[l.id] != i || l.side || !l.leaf && !followed[i] {
			continue
		}
		// The client's own records may be between the two.
		if parent, known := at[l.parent]; known {
			followed[parent] = true
		}
	}
	newest, time := -1, ""
	for i, l := range links {
		if !l.leaf || l.id == "" || l.side || at[l.id] != i || followed[i] {
			continue
		}
		if newest < 0 || l.time >= time || l.time == "" {
			newest, time = i, l.time
		}
	}
	return newest
}

// addSiblings marks what belongs to the chain beside it: the other records of an answer, the results of its parallel
// calls, each of which has its own call as its parent, and what the client attached to one of these.
func addSiblings(links []claudeLink, at map[string]int, live []bool) {
	answers, called, answered := map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(l claudeLink) {
		if l.message != "" {
			answers[l.message] = true
		}
		for _, id := range l.calls {
			called[id] = true
		}
		for _, id := range l.results {
			answered[id] = true
		}
	}
	for i, l := range links {
		if live[i] {
			note(l)
		}
	}
	for changed := true; changed; {
		changed = false
		for i, l := range links {
			if live[i] || l.id == "" || l.side || at[l.id] != i {
				continue
			}
			parent, known := at[l.parent]
			belongs := l.answer && answers[l.message] || l.attached
			for j, id := range l.results {
				belongs = (j == 0 || belongs) && called[id] && !answered[id]
			}
			if known && live[parent] && belongs {
				live[i], changed = true, true
				note(l)
			}
		}
	}
}
