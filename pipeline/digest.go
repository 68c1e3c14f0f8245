package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// DigestInput is what a digest is made of.
type DigestInput struct {
	// Messages in order, a prior summary (KindSummary) first if there is one.
	Messages []Message
	// Todo is the current list of what is open, "": the one that the agent keeps with a tool, if it does.
	Todo string
	// BudgetChars bounds the digest, in chars.
	BudgetChars int
}

// digestHead is the first line of a digest: it says what it is, and lets a later digest take it apart.
const digestHead = "[Digest: no model wrote this. It quotes the conversation; what it leaves out is in the transcript.]"

// The sections of a digest, in order. What the user said stands before everything that comes from tools.
const (
	sectionEarlier  = "## Earlier summary"
	sectionUser     = "## What the user said"
	sectionTodo     = "## Open todos"
	sectionSaid     = "## What was said last in each turn"
	sectionFiles    = "## Files touched"
	sectionCommands = "## Commands run"
)

// The elements of a digest. They are not those of a rendered transcript or of the context, so that neither
// has to escape a digest that stands in it.
const (
	quoteTag   = "quote"
	earlierTag = "earlier_summary"
)

var digestTags = append([]string{quoteTag, earlierTag}, reservedTags...)

// escapeDigest is escapeTags for a text in a digest.
func escapeDigest(s string) string { return escapeNamed(s, digestTags) }

// digestUseful is the least that a quote is cut to, in chars.
const digestUseful = 80

// Digest is a summary without a model, so that a compaction lands when no model answers: the prior summary
// whole, every genuine user message, whole or cut to a fair share, the last thing that the assistant said
// in each turn, the files that its tools touched and the commands that they ran, and the open todos. The
// same input gives the same digest; it is never over the budget. Where the budget is short, the earlier
// summary comes first, then the user's words, the newest before the older ones, then the rest. A prior
// summary that is a digest itself is taken apart and merged, so that digests do not nest.
func Digest(in DigestInput) string {
	d := collectDigest(in.Messages)
	if in.Todo != "" {
		d.todo = in.Todo
	} else if open, listed := OpenTasks(in.Messages); listed {
		d.todo = strings.Join(listLines(open), "\n")
	}
	d.todo = strings.TrimSpace(escapeDigest(d.todo))
	return d.writeWithLimits(in.Messages, in.BudgetChars)
}

// limitsShare is how much of a digest may go to limits of the user's that were cut out of their messages.
const limitsShare = 4

// writeWithLimits writes the digest, and where quotes are cut the limits that the user set in them, word for word.
func (d *digest) writeWithLimits(messages []Message, budget int) string {
	text := d.write(budget)
	none := newSource(nil)
	if len(missingLimits(text, messages, none)) == 0 {
		return text
	}
	room := min(maxConstraintsChars, budget/limitsShare)
	text = strings.TrimRight(d.write(budget-room), "\n")
	missing := missingLimits(text, messages, none)
	room -= len("\n\n" + constraintsTitle + "\n")
	for i := range missing {
		missing[i].text = escapeDigest(missing[i].text)
		room -= len("\n- ") + len("  ")*strings.Count(missing[i].text, "\n")
	}
	return appendSection(text, constraintsTitle, withinBudget(missing, room))
}

// listLines gives texts as entries of a list.
func listLines(items []string) []string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = listItem(item)
	}
	return lines
}

// digest is the material of a digest.
type digest struct {
	earlier  element
	user     []element
	todo     string
	said     []element
	files    recentList
	changed  map[string]bool // the files that were not only read
	commands recentList
}

func collectDigest(ms []Message) *digest {
	d := &digest{changed: map[string]bool{}}
	failed := failedCalls(ms)
	said := -1 // the message that spoke last in this turn
	endTurn := func() {
		if said >= 0 {
			d.said = appendQuote(d.said, ms[said], said)
		}
		said = -1
	}
	for i, m := range ms {
		switch {
		case m.Kind == KindSummary:
			d.fold(RenderMessage(m))
		case m.Genuine():
			endTurn()
			d.user = appendQuote(d.user, m, i)
		case m.Role == RoleAssistant:
			for j, p := range m.Parts {
				switch {
				case p.Kind == PartToolCall:
					d.call(p, failed[[2]int{i, j}])
				case p.Kind == PartText && strings.TrimSpace(p.Text) != "":
					said = i
				}
			}
		}
	}
	endTurn()
	return d
}

// failedCalls finds the calls, by message and part, whose results are errors.
func failedCalls(ms []Message) map[[2]int]bool {
	failed := map[[2]int]bool{}
	for _, pair := range Pair(ms).Pairs {
		if ms[pair.Result.Message].Parts[pair.Result.Part].IsError {
			failed[[2]int{pair.Call.Message, pair.Call.Part}] = true
		}
	}
	return failed
}

// appendQuote adds what a message says, without its calls, results and reasoning.
func appendQuote(quotes []element, m Message, index int) []element {
	e := element{
		message: index, role: m.Role, open: openTag(quoteTag, m.Seq, renderRole(m)),
		close: "</" + quoteTag + ">", genuine: m.Genuine(),
	}
	for _, p := range m.Parts {
		if p.Kind == PartToolCall || p.Kind == PartToolResult {
			continue
		}
		text, _ := renderPart(p, "")
		if text = escapeDigest(text); text != "" {
			e.segments = append(e.segments, splitQuery(text)...)
		}
	}
	return appendElement(quotes, e)
}

// Calls of these tools change nothing and are no action.
var thoughtTools = []string{"think", "todowrite", "todoread", "update_plan"}

// The argument names under which tools take a file and a command.
var (
	fileArguments = []string{
		"file_path", "filePath", "notebook_path", "path", "filename", "target_file", "file",
		"absolute_path",
	}
	commandArguments = []string{"command", "cmd", "script"}
)

// call books what a tool call touched or ran.
func (d *digest) call(p Part, failed bool) {
	name := strings.ToLower(p.Name)
	if slices.Contains(thoughtTools, name) {
		return
	}
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Input), &args) != nil {
		args = nil // free text, or damaged: the name and the text still say what it was
	}
	patched := patchedFiles(p.Input, args)
	for _, path := range patched {
		d.touch(path, true)
	}
	path := stringArgument(args, fileArguments)
	searches := containsAny(name, "grep", "glob", "search", "find", "list", "ls")
	command := stringArgument(args, commandArguments)
	switch {
	case path != "" && !searches:
		d.touch(path, containsAny(name+" "+command, "write", "edit", "create", "insert", "replace", "patch", "delete",
			"move", "rename") && command != "view")
	case command != "":
		d.run(command, failed)
	case len(patched) == 0:
		d.run(p.Name+" "+p.Input, failed)
	}
}

// patchedFiles finds the files named in a patch of the kind that begins "*** Begin Patch".
func patchedFiles(input string, args map[string]json.RawMessage) []string {
	if !strings.Contains(input, "*** Begin Patch") {
		return nil
	}
	if patch := stringArgument(args, []string{"input", "patch", "patchText", "command", "cmd"}); patch != "" {
		input = patch
	}
	var paths []string
	for line := range strings.Lines(input) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, found := strings.CutPrefix(strings.TrimSpace(line), head); found {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// stringArgument is the first of the named arguments that is a string or a list of strings. A list is one
// command line; of a shell with its script, the script.
func stringArgument(args map[string]json.RawMessage, names []string) string {
	for _, name := range names {
		var text string
		if json.Unmarshal(args[name], &text) == nil && text != "" {
			return text
		}
		var list []string
		if json.Unmarshal(args[name], &list) == nil && len(list) > 0 {
			if len(list) == 3 && strings.HasPrefix(list[1], "-") && strings.HasSuffix(list[1], "c") {
				return list[2]
			}
			return strings.Join(list, " ")
		}
	}
	return ""
}

func containsAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(s, word) })
}

// touch books a file as the last one touched.
func (d *digest) touch(path string, changed bool) {
	path = oneLine(path)
	d.changed[path] = d.changed[path] || changed
	d.files.add(path)
}

// run books a command as the last one run.
func (d *digest) run(command string, failed bool) {
	command = oneLine(command)
	if failed {
		command += failedNote
	}
	d.commands.add(command)
}

const (
	failedNote  = " (failed)"
	changedNote = " (changed)"
)

// recentList is a list of distinct lines, the one that was added last at the end.
type recentList struct {
	last  map[string]int
	count int
}

func (l *recentList) add(line string) {
	if l.last == nil {
		l.last = map[string]int{}
	}
	l.count++
	l.last[line] = l.count
}

func (l *recentList) lines() []string {
	lines := make([]string, 0, len(l.last))
	for line := range l.last {
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Compare(l.last[a], l.last[b]) })
	return lines
}

// oneLine is the first line of a text, of bounded length.
func oneLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.TrimSpace(line)
	if strings.TrimSpace(rest) != "" {
		line += " …"
	}
	return escapeDigest(toolName(line))
}

// fold takes in an earlier summary: whole, or piece by piece when it is a digest.
func (d *digest) fold(summary string) {
	text := summaryBody(summary)
	if len(text) < len(strings.TrimSpace(summary)) { // our lines at the head of the wrapper may stand before it
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
	d.earlier.measure()
}

// write puts the digest together in budget chars.
func (d *digest) write(budget int) string {
	room := budget - len(digestHead) - len("\n")
	if room < 2*digestUseful {
		return d.writeTiny(budget)
	}
	files := d.files.lines()
	for i, path := range files {
		if d.changed[path] {
			files[i] += changedNote
		}
	}
	var earlier []element
	if len(d.earlier.segments) > 0 {
		earlier = []element{d.earlier}
	}
	var todo []element
	if d.todo != "" {
		todo = appendElement(nil, element{segments: []segment{{text: d.todo}}})
	}
	sections := []digestSection{
		{title: sectionEarlier, quotes: earlier},
		{title: sectionUser, quotes: d.user},
		{title: sectionTodo, quotes: todo},
		{title: sectionSaid, quotes: d.said},
		{title: sectionFiles, lines: files},
		{title: sectionCommands, lines: d.commands.lines()},
	}
	var out strings.Builder
	out.WriteString(digestHead + "\n")
	for i, n := range digestRooms(sections, room) {
		out.WriteString(sections[i].write(n))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// digestRooms divides the room among the sections, in the order of their worth.
func digestRooms(sections []digestSection, room int) []int {
	needs := make([]int, len(sections))
	for i, s := range sections {
		needs[i] = s.need()
	}
	if sum(needs) <= room {
		return needs
	}
	rooms := make([]int, len(sections))
	// The earlier summary is whole, but for a word of what the user said since.
	rooms[0] = min(needs[0], room-min(needs[1], room/8))
	room -= rooms[0]
	rooms[2] = min(needs[2], room/8)
	room -= rooms[2]
	// The user's words may take three quarters of what is left, and all that the rest leaves over.
	copy(rooms[3:], FairShare(needs[3:], room-min(needs[1], room-room/4)))
	rooms[1] = min(needs[1], room-sum(rooms[3:]))
	return rooms
}

// writeTiny is a digest in a budget that does not take its head: the newest words of the user, or else
// whatever there is.
func (d *digest) writeTiny(budget int) string {
	var text string
	for _, quotes := range [][]element{d.user, {d.earlier}, d.said} {
		if n := len(quotes); n > 0 && quotes[n-1].body > 0 {
			text = quotes[n-1].joined()
			break
		}
	}
	return Truncate("[Digest] "+text, max(budget, 0))
}

// digestSection is a title over quotes or lines, the newest last.
type digestSection struct {
	title  string
	quotes []element
	lines  []string
}

// need is what the section takes whole, in chars; 0 when there is nothing in it.
func (s digestSection) need() int {
	n := 0
	for i := range s.quotes {
		n += s.quotes[i].full()
	}
	for _, line := range s.lines {
		n += Chars(line) + len("- \n")
	}
	if n > 0 {
		n += s.frame()
	}
	return n
}

func (s digestSection) frame() int { return len("\n" + s.title + "\n") }

// leftOut is the line for what there was no room for.
func leftOut(n int) string { return fmt.Sprintf("[%d earlier left out for size]\n", n) }

// write gives the section in at most room chars: every quote, or else the newest ones, cut to fair shares;
// the newest lines.
func (s digestSection) write(room int) string {
	if room <= s.frame() {
		return ""
	}
	var out strings.Builder
	out.WriteString("\n" + s.title + "\n")
	need := s.need()
	body := room - s.frame()
	if need > room {
		body -= len(leftOut(len(s.quotes) + len(s.lines)))
	}
	sizes, least := make([]int, len(s.quotes)), make([]int, len(s.quotes))
	for i := range s.quotes {
		e := &s.quotes[i]
		sizes[i], least[i] = e.full(), min(e.full(), e.wrap()+digestUseful)
	}
	shares := usefulShares(sizes, least, body)
	gone := 0
	for gone < len(shares) && shares[gone] < least[gone] {
		gone++
	}
	keepFrom := len(s.lines)
	for keepFrom > 0 && body-Chars(s.lines[keepFrom-1])-len("- \n") >= 0 {
		keepFrom--
		body -= Chars(s.lines[keepFrom]) + len("- \n")
	}
	switch {
	case gone+keepFrom == len(s.quotes)+len(s.lines):
		return ""
	case gone+keepFrom > 0:
		out.WriteString(leftOut(gone + keepFrom))
	}
	for i := gone; i < len(s.quotes); i++ {
		e := s.quotes[i]
		e.room = min(e.body, shares[i]-e.wrap())
		e.write(&out)
	}
	for _, line := range s.lines[keepFrom:] {
		out.WriteString("- " + line + "\n")
	}
	return out.String()
}
