package pipeline

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Enrichment is one piece of live state, sent behind the summary.
type Enrichment struct {
	// Key is one of EnrichmentKeys, or begins with "x-".
	Key  string
	Text string
}

// EnrichmentKeys are the known keys, in the order in which they are sent. Others follow, sorted by name.
var EnrichmentKeys = []string{
	"skills", "todo", "plan", "mode", "project_root", "automation", "transcripts_folder", "conversation_id", "pins",
}

// sortEnrichments returns the values that are not empty, in the order in which they are sent.
func sortEnrichments(all []Enrichment) []Enrichment {
	var kept []Enrichment
	for _, e := range all {
		if strings.TrimSpace(e.Text) != "" {
			kept = append(kept, e)
		}
	}
	place := func(e Enrichment) int {
		if i := slices.Index(EnrichmentKeys, e.Key); i >= 0 {
			return i
		}
		return len(EnrichmentKeys)
	}
	slices.SortStableFunc(kept, func(x, y Enrichment) int {
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x.Key, y.Key))
	})
	return kept
}

// stateName is the name of the element of a value.
const stateName = "current_state"

var stateTags = append([]string{stateName}, reservedTags...)

// stateTag is what is escaped by the old rules.
var stateTag = regexp.MustCompile(`(?i)<(\s*/?\s*current_state\b)`)

// enrichmentText wraps a value so that it cannot be mistaken for the user's words. Nothing inside can close the
// wrapper.
func enrichmentText(e Enrichment, oldRules bool) string {
	text := strings.TrimSpace(e.Text)
	if oldRules {
		text = stateTag.ReplaceAllString(escapeNamed(text, reservedTags), "&lt;$1")
	} else {
		text = escapeFolded(text, stateTags)
	}
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune("\"<>&\n\r", r) {
			return '_'
		}
		return r
	}, e.Key)
	return "<" + stateName + ` name="` + key + "\">\n" + text + "\n</" + stateName + ">"
}
