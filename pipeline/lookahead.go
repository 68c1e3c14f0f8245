package pipeline

import "strings"

// readable returns the content of messages as text that can be quoted by line: first what was said and what tools
// returned, then the calls, one value per line with the names of its tool and its argument.
func readable(w *work, messages []Message) string {
	var said, calls strings.Builder
	for _, m := range messages {
		w.spend(bytesOf(m))
		for _, p := range m.Parts {
			if p.Kind != PartToolCall {
				for _, text := range textsOf(Message{Parts: []Part{p}}) {
					said.WriteString(text + "\n")
				}
				continue
			}
			for _, a := range argumentsOf(w, p.Input) {
				calls.WriteString(strings.TrimSpace(p.Name+" "+a.key) + ": " + a.value + "\n")
			}
		}
	}
	return said.String() + calls.String()
}

// lookAhead returns what the agent has used in tail and what is only in the source and not in the summary: each
// identifier with its line.
func lookAhead(w *work, summary string, source, tail []Message) []string {
	var ids []string
	var users []int // start of the message of the tail that uses it first
	var all strings.Builder
	seen := map[string]bool{}
	for _, m := range tail {
		begin := all.Len()
		all.WriteString(readable(w, []Message{m}))
		if m.Role != RoleAssistant {
			continue
		}
		for _, id := range usedIn(w, m) {
			if !seen[id] && len(ids) < maxIdentifiers && !strings.HasPrefix(id, "/dev/") {
				seen[id] = true
				ids, users = append(ids, id), append(users, begin)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	text := readable(w, source)
	look := newSearch(w, ids)
	inTail, inSummary, inSource := look.places(w, all.String()), look.places(w, summary), look.places(w, text)
	var used []string
	for i, id := range ids {
		if inTail[i] >= users[i] && inSummary[i] < 0 && inSource[i] >= 0 && len(used) < maxLookAhead {
			used = append(used, "`"+id+"`: "+lineAt(w, text, inSource[i]))
		}
	}
	return used
}

// lineAt returns the line of a text around position at, cut to size.
func lineAt(w *work, text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
		to = at + end
	}
	w.spend(to - from)
	line := strings.TrimSpace(text[from:to])
	if Chars(line) <= maxLookAheadLine {
		return line
	}
	// Begin near the identifier, at the start of a char.
	start := max(from, at-maxLookAheadLine/2)
	for start < at && text[start]&0xC0 == 0x80 {
		start++
	}
	return Truncate(strings.TrimSpace(text[start:to]), maxLookAheadLine)
}
