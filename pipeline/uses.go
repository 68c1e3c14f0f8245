package pipeline

import (
	"encoding/json"
	"strings"
	"unicode"
)

// maxArgument is the longest argument in which names are looked for, in chars: a longer one is a document.
const maxArgument = 2000

// eachUse finds the identifiers that an assistant's message uses: those in its text outside of fences, and those in the
// values of its calls. Keys of arguments and names of tools do not count. The same one may be reported more than once.
func eachUse(w *work, m Message, add func(kind identifierKind, id string)) {
	values := func(input string) {
		for _, a := range argumentsOf(w, input) {
			if a.text && named(a.value) {
				add(valueKind(a.value), a.value)
			} else if a.text && len(a.value) <= maxArgument {
				eachName(w, a.value, add)
			}
		}
	}
	for _, p := range m.Parts {
		w.spend(0)
		switch {
		case p.Kind == PartToolCall:
			values(p.Input)
		case p.Kind == PartText && isObject(w, p.Text):
			values(p.Text)
		case p.Kind == PartText:
			eachIdentifier(w, withoutFences(w, p.Text), add)
		}
	}
}

// valueKind returns the kind of an argument that is a name as a whole.
func valueKind(value string) identifierKind {
	switch {
	case strings.Contains(value, "://"):
		return identifierURL
	case looksPath(value):
		return identifierPath
	}
	return identifierQuoted
}

// usedIn lists the identifiers that an assistant's message uses, except for quotes of a single word.
func usedIn(w *work, m Message) []string {
	var ids []string
	eachUse(w, m, func(kind identifierKind, id string) {
		if kind != identifierQuoted || !plainWord(id) {
			ids = append(ids, id)
		}
	})
	return ids
}

// isObject reports whether a text is a JSON object, as agents write that answer in a form.
func isObject(w *work, text string) bool {
	text = strings.TrimSpace(text)
	var any json.RawMessage
	return strings.HasPrefix(text, "{") && w.decode([]byte(text), &any) == nil
}

// plainWord reports whether a quote is a single ordinary word.
func plainWord(s string) bool {
	for i, r := range s {
		if r >= unicode.MaxASCII || !unicode.IsLetter(r) || i > 0 && unicode.IsUpper(r) {
			return false
		}
	}
	return true
}

// named reports whether a whole argument is a name: one word with a digit in it that is more than a small number.
func named(value string) bool {
	const shortest, longest = 4, 200
	letters, digits := 0, 0
	for _, r := range value {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		case unicode.IsSpace(r) || strings.ContainsRune("{}()<>\"'`$|&;*?[]", r):
			return false
		}
	}
	return digits > 0 && (letters > 0 || digits > shortest) && len(value) >= shortest && len(value) <= longest
}
