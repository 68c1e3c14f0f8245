package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// byName makes messages from words: "a.read" is a call of the assistant's, "a.read#1" one with the id 1, "t.read" its
// result, "u" the user. Words joined by "+" are one message. A name may be missing.
func byName(t interface{ Fatalf(string, ...any) }, line string) []Message {
	var ms []Message
	for word := range strings.FieldsSeq(line) {
		var m Message
		for piece := range strings.SplitSeq(word, "+") {
			rest, id, _ := strings.Cut(piece, "#")
			who, name, named := strings.Cut(rest, ".")
			p := Part{Kind: PartText, Text: "x"}
			switch who {
			case "a":
				m.Role = RoleAssistant
				if named {
					p = Part{Kind: PartToolCall, Name: name, CallID: id}
				}
			case "t":
				m.Role = RoleTool
				p = Part{Kind: PartToolResult, Name: name, CallID: id}
			case "v": // a result in the assistant's own message
				m.Role = RoleAssistant
				p = Part{Kind: PartToolResult, Name: name, CallID: id}
			case "u":
				m.Role = RoleUser
			default:
				t.Fatalf("cannot read %q", piece)
			}
			m.Parts = append(m.Parts, p)
		}
		ms = append(ms, m)
	}
	return ms
}

func TestPairWithoutIDs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ line, want string }{
		"by name":                                {"a.read t.read", "0.0=1.0 open 0"},
		"an id on the result alone":              {"a.read t.read#r1", "0.0=1.0 open 0"},
		"an id on the call alone":                {"a.read#c1 t.read", "0.0=1.0 open 0"},
		"of one name, in order":                  {"a.read+a.read t.read+t.read", "0.0=1.0 0.1=1.1 open 0"},
		"of several names, in any order":         {"a.read+a.list t.list+t.read", "0.1=1.0 0.0=1.1 open 0"},
		"messages of a step":                     {"a.read a.read t.read t.read", "0.0=2.0 1.0=3.0 open 0 1 2"},
		"another name is no answer":              {"a.read t.list", "running 0.0 orphan 1.0 open 0 1"},
		"another id is none for a call with one": {"a.read#c1 t.read#c2", "running 0.0 orphan 1.0 open 0 1"},
		"a result without a name":                {"a.read+a.list t.", "0.0=1.0 running 0.1 open 0 1"},
		"a call without a name":                  {"a.+a.list t.read", "0.0=1.0 running 0.1 open 0 1"},
		"ids first":                              {"a.read#1+a.read t.read#1 t.read", "0.0=1.0 0.1=2.0 open 0 1"},
		"an id taken is not answered twice": {
			"a.read#1+a.read#2 t.read t.read#1 t.read#2",
			"0.0=1.0 0.1=3.0 orphan 2.0 open 0 1 2",
		},
		"never across steps":              {"a.read u a t.read", "dead 0.0 orphan 3.0"},
		"a later step takes its own":      {"a.read u a.read t.read", "2.0=3.0 dead 0.0 open 2"},
		"the user in between":             {"a.read u t.read", "0.0=2.0 open 0 1"},
		"the vendor's own in one message": {"a.search+v.search a.search+v.search", "0.0=0.1 1.0=1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantPaired(t, tt.line, byName(t, tt.line), tt.want)
		})
	}
}

// Whatever ids are missing: a call has one result at most, which comes behind it and may be its own.
func TestPairWithoutIDsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.Custom(func(t *rapid.T) string {
			word := rapid.SampledFrom([]string{"a", "a.", "a.x", "a.y", "t.", "t.x", "t.y", "v.x", "u"}).Draw(t, "word")
			if strings.ContainsAny(word[:1], "atv") && strings.Contains(word, ".") {
				word += rapid.SampledFrom([]string{"", "", "#1", "#2"}).Draw(t, "id")
			}
			return word
		})
		words := rapid.SliceOfN(piece, 0, 20).Draw(t, "pieces")
		ms := byName(t, strings.Join(words, " "))
		p := Pair(ms)
		seen := map[string]int{}
		for _, pair := range p.Pairs {
			call, result := pair.Call, pair.Result
			seen[fmt.Sprintf("c%d.%d", call.Message, call.Part)]++
			seen[fmt.Sprintf("r%d.%d", result.Message, result.Part)]++
			name := ms[result.Message].Parts[result.Part].Name
			switch {
			case call.Message > result.Message || call.Message == result.Message && call.Part > result.Part:
				t.Fatalf("%v comes before %v", result, call)
			case call.ID != "" && result.ID != "" && call.ID != result.ID:
				t.Fatalf("%v answers %v", result, call)
			case (call.ID == "" || result.ID == "") &&
				(p.StepOf(call.Message) != p.StepOf(result.Message) || call.Name != "" && name != "" &&
					call.Name != name):
				t.Fatalf("%v (%s) answers %v without an id", result, name, call)
			}
		}
		for _, c := range p.Unanswered {
			seen[fmt.Sprintf("c%d.%d", c.Message, c.Part)]++
		}
		for _, r := range p.Orphans {
			seen[fmt.Sprintf("r%d.%d", r.Message, r.Part)]++
		}
		for i, m := range ms {
			for j, part := range m.Parts {
				key := map[PartKind]string{PartToolCall: "c", PartToolResult: "r"}[part.Kind]
				if key != "" && seen[fmt.Sprintf("%s%d.%d", key, i, j)] != 1 {
					t.Fatalf("part %d of message %d was counted %d times", j, i,
						seen[fmt.Sprintf("%s%d.%d", key, i, j)])
				}
			}
		}
	})
}
