package pipeline

import "strings"

// maxSkillName is the longest name of an element that is taken for a skill, in bytes.
const maxSkillName = 100

// skillBlocks returns the elements in messages whose name begins with "skill", each once, in order. An earlier summary
// has none: its skills are live state.
func skillBlocks(w *work, messages []Message) []string {
	var blocks []string
	seen := map[string]bool{}
	scan := func(text string) {
		for _, block := range skillsIn(w, text) {
			if !seen[block] {
				seen[block] = true
				blocks = append(blocks, block)
			}
		}
	}
	for _, m := range messages {
		w.spend(0)
		if m.Kind == KindSummary {
			continue
		}
		for _, p := range m.Parts {
			if p.Kind == PartText {
				scan(p.Text)
			}
			for _, c := range p.Content {
				scan(c.Text)
			}
		}
	}
	return blocks
}

// skillsIn returns the skill elements of a text. Their ends are found first, so that none is looked for twice.
func skillsIn(w *work, text string) []string {
	const open, end = "<skill", "</skill"
	w.spend(len(text))
	ends := map[string][]int{} // by name, of its closing tags
	eachIndex(w, text, end, func(at int) {
		name := skillName(text[at+len("</"):])
		if behind := at + len("</") + len(name); behind < len(text) && text[behind] == '>' {
			ends[name] = append(ends[name], at)
		}
	})
	if len(ends) == 0 {
		return nil
	}
	var blocks []string
	from := 0
	eachIndex(w, text, open, func(at int) {
		if at < from {
			return // inside a block
		}
		name := skillName(text[at+len("<"):])
		for len(ends[name]) > 0 && ends[name][0] < at {
			ends[name] = ends[name][1:]
		}
		if len(ends[name]) > 0 {
			from = ends[name][0] + len("</") + len(name) + len(">")
			blocks = append(blocks, text[at:from])
		}
	})
	return blocks
}

// skillName returns the name of an element at the start of a text, "" for none and for one over maxSkillName.
func skillName(text string) string {
	if end := strings.IndexAny(text[:min(len(text), maxSkillName+1)], " \t\r\n/>"); end >= 0 {
		return text[:end]
	}
	return ""
}

// eachIndex calls found with the position of each occurrence of a word in a text.
func eachIndex(w *work, text, word string, found func(at int)) {
	for at := 0; ; at += len(word) {
		next := strings.Index(text[at:], word)
		if next < 0 {
			return
		}
		at += next
		w.spend(next)
		found(at)
	}
}
