package pipeline

import (
	"fmt"
	"strings"
	"testing"
)

// What Gemini wants of a context: as many results as calls, with or without ids, and no text that is empty.
func TestBuildContextForGoogle(t *testing.T) {
	t.Parallel()
	raw := func(m Message, part int, json string) Message {
		m.Parts[part].Raw = []byte(json)
		return m
	}
	empty := Message{
		Role:  RoleAssistant,
		Parts: []Part{{Kind: PartText}, {Kind: PartText, Text: "said"}, {Kind: PartText}},
	}
	for name, tt := range map[string]struct {
		live []Message
		// "a" stands for the message of that letter, "-0" for its first part dropped, "made NAME" for a result
		want string
	}{
		"answered":                  {byName(t, "u a.x t.x"), "0 1 2"},
		"one of two":                {byName(t, "u a.x+a.y t.y u"), "0 1 made x 2 3"},
		"none, without an id":       {byName(t, "u a.x u"), "0 1 made x 2"},
		"a result without its call": {byName(t, "u t.x a"), "0 text 2"},
		"what the vendor runs": {append(byName(t, "u"),
			Message{Role: RoleAssistant, Parts: []Part{{
				Kind: PartToolCall, Type: "executableCode",
				Name: "code_execution",
			}}}), "0 1"},
		"empty texts but for a signature": {append(byName(t, "u"),
			raw(raw(empty, 0, `{"text":""}`), 2, `{"text":"","thoughtSignature":"c2ln"}`)), "0 1-0"},
		"a message with nothing in it": {
			append(byName(t, "u"), Message{Role: RoleAssistant}, byName(t, "u")[0]),
			"0 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			context := buildContext(nil, ContextInput{Live: tt.live, Settings: DefaultSettings(), Vendor: "google"})
			var words []string
			for _, it := range context.Items {
				if it.Made != nil {
					word := "text"
					if it.Made.Role == RoleTool {
						word = "made " + it.Made.Name
					}
					words = append(words, word)
					continue
				}
				for i := range tt.live {
					if it.Message == &tt.live[i] {
						word := fmt.Sprint(i)
						for _, e := range it.Edits {
							word += fmt.Sprintf("-%d", e.Part)
						}
						words = append(words, word)
					}
				}
			}
			if got := strings.Join(words, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
