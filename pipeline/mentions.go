package pipeline

import (
	"context"
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
// The cost is linear. The error is that of the context, if it is done first.
func MentionsOf(ctx context.Context, messages []Message) ([]Mention, error) {
	return interruptible(ctx, "the search for mentions", func(w *work) []Mention { return mentionsOf(w, messages) })
}

func mentionsOf(w *work, messages []Message) []Mention {
	var mentions []Mention
	seen := map[MentionKind]map[string]bool{}
	for _, m := range messages {
		w.spend(0)
		add := func(kind MentionKind, text string) {
			key := flatten(w, text)
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
			userMentions(w, m, add)
		case m.Role == RoleAssistant:
			eachUse(w, m, func(kind identifierKind, id string) {
				if fact := mentionKind(kind); !strings.HasPrefix(id, "/dev/") &&
					(kind != identifierQuoted || !plainWord(id)) {
					add(fact, id)
				}
			})
		}
	}
	return mentions
}

func userMentions(w *work, m Message, add func(MentionKind, string)) {
	for _, p := range m.Parts {
		if p.Kind != PartText {
			continue
		}
		intents := 0
		for _, s := range saidSentences(w, p.Text) {
			w.spend(limitCost * min(len(s), maxConstraintChars))
			switch n := Chars(s); {
			case n > maxConstraintChars:
			case setsLimit(s):
				add(MentionConstraint, s)
			case n >= minIntentChars && intents < maxIntents && strings.ContainsFunc(s, unicode.IsLetter):
				intents++
				add(MentionIntent, s)
			}
		}
		eachIdentifier(w, withoutFences(w, saidText(w, p.Text)), func(kind identifierKind, id string) {
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
// and case, a name as it is or escaped as in JSON or in a summary. The cost is linear. The error is
// that of the context,
// if it is done first.
func MentionedIn(ctx context.Context, mentions []Mention, texts ...string) ([]bool, error) {
	return interruptible(ctx, "the search in a summary", func(w *work) []bool {
		return mentionedIn(w, mentions, texts...)
	})
}

func mentionedIn(w *work, mentions []Mention, texts ...string) []bool {
	source := &sourceTexts{raw: strings.Join(texts, "\n")}
	has := make([]bool, len(mentions))
	var names, sentences forms // per fact
	for i, f := range mentions {
		w.spend(len(f.Text))
		switch f.Kind {
		case MentionConstraint, MentionIntent, MentionTask:
			low := flatten(w, f.Text)
			sentences.texts, sentences.of = append(sentences.texts, low, flatten(w, escapeDigest(f.Text)),
				flatten(w, jsonEscaped(f.Text))), append(sentences.of, i, i, i)
		default:
			names.texts, names.of = append(names.texts, f.Text), append(names.of, i)
		}
	}
	if len(sentences.texts) > 0 {
		sentences.mark(firstPlaces(w, sentences.texts, flatten(w, source.raw)), has)
	}
	for i, found := range occurring(w, names.texts, source) {
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
// is such a list. The cost is linear. The error is that of the context, if it is done first.
func OpenTasks(ctx context.Context, messages []Message) (open []string, listed bool, err error) {
	open, err = interruptible(ctx, "the search for tasks", func(w *work) []string {
		open, listed = openTasks(w, messages)
		return open
	})
	return open, listed, err
}

func openTasks(w *work, messages []Message) (open []string, listed bool) {
	for i := len(messages) - 1; i >= 0; i-- {
		parts := messages[i].Parts
		w.spend(0)
		for j := len(parts) - 1; j >= 0; j-- {
			w.spend(0)
			if parts[j].Kind != PartToolCall {
				continue
			}
			if open, listed = tasksIn(w, parts[j]); listed {
				return open, true
			}
		}
	}
	return nil, false
}

// tasksIn reads the list in a call of a tool whose name shows that it keeps one.
func tasksIn(w *work, call Part) (open []string, listed bool) {
	if !containsAny(strings.ToLower(call.Name), "todo", "plan", "task") {
		return nil, false
	}
	var args map[string]json.RawMessage
	if w.decode([]byte(call.Input), &args) != nil {
		return nil, false
	}
	for _, name := range taskLists {
		var entries []map[string]any
		if w.decode(args[name], &entries) != nil || entries == nil {
			continue
		}
		for _, e := range entries {
			w.spend(0)
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
