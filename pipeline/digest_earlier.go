package pipeline

import "strings"

// fold adds an earlier summary: whole, or element by element if it is a digest. The earlier summaries
// are to be measured
// when all are added.
func (d *digest) fold(summary string) {
	d.spend(len(summary))
	text := summaryBody(summary)
	if len(text) < len(strings.TrimSpace(summary)) { // lines of the wrapper may come before the head
		if at := strings.Index(text, "\n"+digestHead); at >= 0 {
			text = text[at+len("\n"):]
		}
	}
	if !strings.HasPrefix(text, digestHead) {
		d.addEarlier(text)
		return
	}
	section, open := "", ""
	var body, todo []string
	for line := range strings.SplitSeq(text, "\n") {
		d.spend(len(line))
		switch {
		case open != "" && (line == "</"+quoteTag+">" || line == "</"+earlierTag+">"):
			d.foldElement(section, open, strings.Join(body, "\n"))
			open, body = "", nil
		case open != "":
			body = append(body, line)
		case strings.HasPrefix(line, "<"+quoteTag+" ") || line == "<"+earlierTag+">":
			open = line
		case strings.HasPrefix(line, "## "):
			section = line
		case section == sectionTodo && strings.TrimSpace(line) != "":
			todo = append(todo, line)
		case section == sectionFiles && strings.HasPrefix(line, "- "):
			path, changed := strings.CutSuffix(line[len("- "):], changedNote)
			d.touch(path, changed)
		case section == sectionCommands && strings.HasPrefix(line, "- "):
			command, failed := strings.CutSuffix(line[len("- "):], failedNote)
			d.run(command, failed)
		}
	}
	d.todo = strings.Join(todo, "\n")
}

func (d *digest) foldElement(section, open, text string) {
	e := element{open: open, close: "</" + quoteTag + ">", segments: splitQuery(text)}
	switch section {
	case sectionEarlier:
		d.addEarlier(text)
	case sectionUser:
		d.user = appendElement(d.user, e)
	case sectionSaid:
		d.said = appendElement(d.said, e)
	}
}

func (d *digest) addEarlier(text string) {
	if text = escapeDigest(text); text == "" {
		return
	}
	segments := append(d.earlier.segments, segment{text: text})
	d.earlier = element{open: "<" + earlierTag + ">", close: "</" + earlierTag + ">", summary: true, segments: segments}
}
