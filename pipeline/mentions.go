package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// MentionKind is the kind of a mention.
type MentionKind string

// The kinds of mentions.
const (
	MentionConstraint MentionKind = "constraint" // a sentence in which the user set a limit
	MentionIntent     MentionKind = "intent"     // any other sentence of the user
	MentionPath       MentionKind = "path"       // a file or a folder
	MentionIdentifier MentionKind = "identifier" // an address, a hash, a name that was quoted or given to a tool
	MentionNumber     MentionKind = "number"     // a number with its unit
	MentionTask       MentionKind = "task"       // an entry of the agent's list that is not done
)

// MentionKinds are all kinds, in the order in which they are shown.
var MentionKinds = []MentionKind{
	MentionConstraint, MentionIntent, MentionTask, MentionPath, MentionIdentifier,
	MentionNumber,
}

// Mention is something in the messages that can be looked for word by word.
type Mention struct {
	Kind MentionKind
	Text string
	// Seq is the first message with the mention.
	Seq int64
}

const (
	// maxIntents is how many sentences of one user message are taken: the rest is probably pasted.
	maxIntents = 8
	// minIntentChars is the least length of a sentence, in chars.
	minIntentChars = 8
)

// MentionsOf returns the mentions in messages, each once, in order: the sentences of the user, and the names and
// numbers that the user wrote, or that the agent wrote or passed to a tool. What tools returned does not count until
// somebody uses it. Keys of arguments and what programs added to user messages never count. For tasks see OpenTasks.
func MentionsOf(messages []Message) []Mention {
	var mentions []Mention
	seen := map[MentionKind]map[string]bool{}
	for _, m := range messages {
		add := func(kind MentionKind, text string) {
			key := flatten(text)
			if seen[kind] == nil {
				seen[kind] = map[string]bool{}
			}
			if key != "" && !seen[kind][key] {
				seen[kind][key] = true
				mentions = append(mentions, Mention{kind, text, m.Seq})
			}
		}
		switch {
		case m.Genuine():
			userMentions(m, add)
		case m.Role == RoleAssistant:
			eachUse(m, func(kind identifierKind, id string) {
				if fact := mentionKind(kind); !strings.HasPrefix(id, "/dev/") &&
					(kind != identifierQuoted || !plainWord(id)) {
					add(fact, id)
				}
			})
		}
	}
	return mentions
}

func userMentions(m Message, add func(MentionKind, string)) {
	for _, p := range m.Parts {
		if p.Kind != PartText {
			continue
		}
		intents := 0
		for _, s := range saidSentences(p.Text) {
			switch n := Chars(s); {
			case n > maxConstraintChars:
			case setsLimit(s):
				add(MentionConstraint, s)
			case n >= minIntentChars && intents < maxIntents && strings.ContainsFunc(s, unicode.IsLetter):
				intents++
				add(MentionIntent, s)
			}
		}
		eachIdentifier(withoutFences(saidText(p.Text)), func(kind identifierKind, id string) {
			if id = strings.TrimSpace(id); kind != identifierQuoted || !plainWord(id) {
				add(mentionKind(kind), id)
			}
		})
	}
}

func mentionKind(k identifierKind) MentionKind {
	switch k {
	case identifierPath:
		return MentionPath
	case identifierNumber:
		return MentionNumber
	}
	return MentionIdentifier
}

// MentionedIn reports for each mention whether one of the texts contains it: a sentence word by word with any spacing
// and case, a name as it is or escaped as in JSON or in a summary.
func MentionedIn(mentions []Mention, texts ...string) []bool {
	source := &sourceTexts{raw: strings.Join(texts, "\n")}
	has := make([]bool, len(mentions))
	var names, sentences forms // per fact
	for i, f := range mentions {
		switch f.Kind {
		case MentionConstraint, MentionIntent, MentionTask:
			low := flatten(f.Text)
			sentences.texts, sentences.of = append(sentences.texts, low, flatten(escapeDigest(f.Text)),
				flatten(jsonEscaped(f.Text))), append(sentences.of, i, i, i)
		default:
			names.texts, names.of = append(names.texts, f.Text), append(names.of, i)
		}
	}
	if len(sentences.texts) > 0 {
		sentences.mark(newSearch(sentences.texts).places(flatten(source.raw)), has)
	}
	for i, found := range occurring(names.texts, source) {
		has[names.of[i]] = has[names.of[i]] || found
	}
	return has
}

// The names of the arguments in which tools take a list of tasks, and of an entry's text.
var (
	taskLists = []string{"todos", "plan", "tasks", "items", "todo_list"}
	taskTexts = []string{"content", "step", "text", "title", "description", "task"}
	doneWords = []string{"completed", "complete", "done", "cancelled", "canceled", "finished"}
)

// OpenTasks returns the tasks that are not done in the newest list that the agent wrote with a tool, and whether there
// is such a list.
func OpenTasks(messages []Message) (open []string, listed bool) {
	for i := len(messages) - 1; i >= 0; i-- {
		parts := messages[i].Parts
		for j := len(parts) - 1; j >= 0; j-- {
			if parts[j].Kind != PartToolCall {
				continue
			}
			if open, listed = tasksIn(parts[j]); listed {
				return open, true
			}
		}
	}
	return nil, false
}

// tasksIn reads the list in a call of a tool whose name shows that it keeps one.
func tasksIn(call Part) (open []string, listed bool) {
	if !containsAny(strings.ToLower(call.Name), "todo", "plan", "task") {
		return nil, false
	}
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(call.Input), &args) != nil {
		return nil, false
	}
	for _, name := range taskLists {
		var entries []map[string]any
		if json.Unmarshal(args[name], &entries) != nil || entries == nil {
			continue
		}
		for _, e := range entries {
			status, said := e["status"].(string)
			text := ""
			for _, key := range taskTexts {
				if text, _ = e[key].(string); strings.TrimSpace(text) != "" {
					break
				}
			}
			if text = strings.TrimSpace(text); text == "" || !said {
				continue
			}
			listed = true
			if !slices.Contains(doneWords, strings.ToLower(status)) {
				open = append(open, text)
			}
		}
		if listed || len(entries) == 0 && name != "items" {
			return open, true
		}
	}
	return nil, false
}
