package eval

import (
	"regexp"
	"slices"
	"strings"

	"precis/pipeline"
)

// The scripted summarizer represents a model that follows its prompt to the letter and has no judgment. It reads only
// its input, and fills the sections that the prompt requests with what it can copy, each within its part of the room,
// newest first if the room is short. It never paraphrases or makes anything up, so that every fact that it keeps is
// found; a real model keeps fewer words and understands more. Both get the same input, and for both the check appends
// what is missing and the user's own messages are put into their section.

// shares of the room, in hundredths.
const (
	shareEarlier  = 25
	shareIntent   = 10
	shareFiles    = 20
	shareErrors   = 10
	sharePending  = 5
	shareCurrent  = 15
	shareConcepts = 10
)

var (
	shownElement = regexp.MustCompile(`(?s)<message seq="\d+" role="(\w+)">\n(.*?)\n</message>`)
	shownEarlier = regexp.MustCompile(`(?s)<conversation_summary>\n(.*?)\n</conversation_summary>`)
	shownPath    = regexp.MustCompile(`(?:[\w.@+-]*/)+[\w.@+-]+\.\w{1,5}\b`)
	shownName    = regexp.MustCompile("`[^`\n]{2,80}`|https?://[^\\s\"'<>)]+")
	shownError   = regexp.MustCompile(`(?im)^.*\b(?:error|failed|failure|exception|panic|traceback)\b.*$`)
	shownOpen    = regexp.MustCompile(`(?m)^\[Note: .* Open on the agent's list: (.*?)\.(?: Files that |\]$)`)
	shownTask    = regexp.MustCompile(`"(?:content|step|text)":\s*"([^"\n]{3,200})"[^{` +
		`}]*?"status":\s*"(?:pending|in_progress)"|"status":\s*"(?:pending|in_progress)"[^{` +
		`}]*?"(?:content|step|text)":\s*"([^"\n]{3,200})"`)
)

// write returns a summary of the text shown, in at most room chars.
func write(shown string, room int) string {
	part := func(share int) int { return room * share / 100 }
	var users, said []string
	for _, m := range shownElement.FindAllStringSubmatch(shown, -1) {
		switch m[1] {
		case "user":
			users = append(users, firstLines(m[2], 200))
		case "assistant":
			if text, _, _ := strings.Cut(m[2], "[call "); strings.TrimSpace(text) != "" {
				said = append(said, strings.TrimSpace(text))
			}
		}
	}
	var b strings.Builder
	section := func(title string, lines []string, share int) {
		if kept := newest(lines, part(share)); len(kept) > 0 {
			b.WriteString(title + "\n" + strings.Join(kept, "\n") + "\n\n")
		}
	}
	var earlier []string
	for _, m := range shownEarlier.FindAllStringSubmatch(shown, -1) {
		earlier = append(earlier, notBlank(strings.Split(m[1], "\n"))...)
	}
	section("1. Primary request and intent:", listed(users), shareIntent)
	section("2. Key technical concepts:", listed(often(shownName.FindAllString(shown, -1))), shareConcepts)
	section("3. Files and code sections:", listed(often(shownPath.FindAllString(shown, -1))), shareFiles)
	section("4. Errors and fixes:", listed(once(trimmed(shownError.FindAllString(shown, -1)))), shareErrors)
	section("5. Problem solving:", earlier, shareEarlier)
	b.WriteString("6. All user messages:\n\n")
	var tasks []string
	for _, m := range shownTask.FindAllStringSubmatch(shown, -1) {
		tasks = append(tasks, m[1]+m[2])
	}
	for _, m := range shownOpen.FindAllStringSubmatch(shown, -1) {
		tasks = append(tasks, strings.Split(m[1], "; ")...)
	}
	section("7. Pending tasks:", listed(once(tasks)), sharePending)
	section("8. Current work:", said, shareCurrent)
	return strings.TrimSpace(b.String())
}

// newest returns the last lines that fit, or the start of the last line if it does not fit.
func newest(lines []string, room int) []string {
	from := len(lines)
	for from > 0 && pipeline.Chars(lines[from-1])+1 <= room {
		from--
		room -= pipeline.Chars(lines[from]) + 1
	}
	if from == len(lines) && from > 0 && room > 0 {
		return []string{pipeline.Truncate(lines[from-1], room)}
	}
	return lines[from:]
}

// firstLines returns the start of a text on one line.
func firstLines(text string, chars int) string {
	return pipeline.Truncate(strings.Join(strings.Fields(text), " "), chars)
}

func listed(items []string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = "- " + item
	}
	return out
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = firstLines(line, 200)
	}
	return out
}

func notBlank(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// once returns the items, with only the last of equal ones.
func once(items []string) []string {
	last := map[string]int{}
	for i, item := range items {
		last[item] = i
	}
	var out []string
	for i, item := range items {
		if last[item] == i {
			out = append(out, item)
		}
	}
	return out
}

// often returns the items by how often they occur, the most frequent last, and by their last place if that is equal.
func often(items []string) []string {
	count := map[string]int{}
	for _, item := range items {
		count[item]++
	}
	out := once(items)
	slices.SortStableFunc(out, func(a, b string) int { return count[a] - count[b] })
	return out
}
