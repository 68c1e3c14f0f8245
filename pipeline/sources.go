package pipeline

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// sourceTexts is everything that a summary may be based on, prepared for searching.
type sourceTexts struct {
	raw string
	// flat is raw in lower case with single spaces, made on first use.
	flat string
	// users are the texts of genuine user messages and of earlier summaries, flattened.
	users []string
}

func newSource(w *work, messages []Message) *sourceTexts {
	var all strings.Builder
	s := &sourceTexts{}
	for _, m := range messages {
		w.spend(0)
		for _, text := range textsOf(m) {
			w.spend(len(text))
			all.WriteString(text)
			all.WriteByte('\n')
		}
		for _, p := range m.Parts {
			if p.Kind == PartText && (m.Genuine() || m.Kind == KindSummary) {
				s.users = append(s.users, flatten(w, p.Text))
			}
		}
	}
	s.raw = all.String()
	return s
}

// textsOf returns every text in a message: what was said, names and arguments of calls, results. Reasoning is not a
// source.
func textsOf(m Message) []string {
	var texts []string
	for _, p := range m.Parts {
		switch p.Kind {
		case PartReasoning:
		case PartOpaque:
			texts = append(texts, string(p.Raw))
		default:
			texts = append(texts, p.Name, p.Text, p.Input)
			for _, c := range p.Content {
				texts = append(texts, c.Name, c.Text)
			}
		}
	}
	return texts
}

// flattened returns all of the source in lower case, with single spaces.
func (s *sourceTexts) flattened(w *work) string {
	if s.flat == "" {
		var words strings.Builder
		w.words(&words, s.raw)
		s.flat = w.lower(words.String())
	}
	return s.flat
}

// occurring reports for each identifier whether one of the sources contains it: as it is, escaped as in JSON, or with
// other spacing and case.
func occurring(w *work, ids []string, sources ...*sourceTexts) []bool {
	var exact, loose forms
	for i, id := range ids {
		w.spend(len(id))
		exact.add(i, id)
		exact.add(i, jsonEscaped(id))
		if !strings.ContainsFunc(id, unicode.IsSpace) && !numberUnit.MatchString(id) {
			continue // a path, an address, a hash: only the exact text counts
		}
		low := strings.ToLower(strings.Join(strings.Fields(id), " "))
		loose.add(i, low)
		loose.add(i, strings.ReplaceAll(low, " ", ""))
		loose.add(i, numberUnit.ReplaceAllString(low, "$1 $2"))
	}
	has := make([]bool, len(ids))
	look := newSearch(w, exact.texts)
	for _, s := range sources {
		exact.mark(look.places(w, s.raw), has)
	}
	if loose.drop(has); len(loose.texts) > 0 {
		look = newSearch(w, loose.texts)
		for _, s := range sources {
			loose.mark(look.places(w, s.flattened(w)), has)
		}
	}
	return has
}

// forms are the ways in which identifiers may be written.
type forms struct {
	texts []string
	of    []int // the identifier of each
}

func (f *forms) add(id int, text string) {
	if n := len(f.of); n > 0 && f.of[n-1] == id && f.texts[n-1] == text {
		return
	}
	f.texts, f.of = append(f.texts, text), append(f.of, id)
}

// drop removes the forms of identifiers that are found.
func (f *forms) drop(has []bool) {
	var left forms
	for i, id := range f.of {
		if !has[id] {
			left.add(id, f.texts[i])
		}
	}
	*f = left
}

// mark records which identifiers have a place in a text.
func (f *forms) mark(places []int, has []bool) {
	for i, at := range places {
		has[f.of[i]] = has[f.of[i]] || at >= 0
	}
}

var numberUnit = regexp.MustCompile(`^([\d.,_]+)([^\d.,_\s]+)$`)

// jsonEscaped returns a text as it is written inside a JSON string.
func jsonEscaped(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(quoted[1 : len(quoted)-1])
}

// unsupported returns the identifiers of a summary that neither source contains.
func unsupported(w *work, summary string, before, behind *sourceTexts) []string {
	var missing []string
	ids := identifiersIn(w, summary, maxIdentifiers)
	for i, has := range occurring(w, ids, before, behind) {
		if !has {
			missing = append(missing, ids[i])
		}
	}
	return missing
}
