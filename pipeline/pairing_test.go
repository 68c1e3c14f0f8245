package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// paired writes a pairing as "0.0=1.0 dead 2.0 orphan 3.0 open 0 2".
func paired(p Pairing) string {
	var words []string
	for _, pair := range p.Pairs {
		words = append(words, fmt.Sprintf("%d.%d=%d.%d", pair.Call.Message, pair.Call.Part, pair.Result.Message,
			pair.Result.Part))
	}
	for _, c := range p.Unanswered {
		word := "running"
		if p.Dead(c) {
			word = "dead"
		}
		words = append(words, fmt.Sprintf("%s %d.%d", word, c.Message, c.Part))
	}
	for _, r := range p.Orphans {
		words = append(words, fmt.Sprintf("orphan %d.%d", r.Message, r.Part))
	}
	open := ""
	for i := range p.open {
		if p.OpenAfter(i) {
			open += fmt.Sprintf(" %d", i)
		}
	}
	if open != "" {
		words = append(words, "open"+open)
	}
	return strings.Join(words, " ")
}

// wantPaired fails the test unless the pairing of the messages, written as paired writes it, is want. line is what
// the messages were made from.
func wantPaired(t *testing.T, line string, messages []Message, want string) {
	t.Helper()
	if got := paired(Pair(messages)); got != want {
		t.Errorf("%s\n got %s\nwant %s", line, got, want)
	}
}

func TestPair(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"none":                          {"U A U", ""},
		"one":                           {"U A+a T:a A", "1.0=2.0 open 1"},
		"parallel":                      {"A+1+2+3 T:1 T:2 T:3", "0.0=1.0 0.1=2.0 0.2=3.0 open 0 1 2"},
		"any order":                     {"A+1+2 T:2 T:1", "0.1=1.0 0.0=2.0 open 0 1"},
		"all results in one message":    {"A+1+2 T:1:2", "0.0=1.0 0.1=1.1 open 0"},
		"ids repeat":                    {"A+x T:x A+x T:x", "0.0=1.0 2.0=3.0 open 0 2"},
		"the same id twice in one step": {"A+x+x T:x T:x", "0.0=1.0 0.1=2.0 open 0 1"},
		"a result twice":                {"A+x T:x T:x", "0.0=1.0 orphan 2.0 open 0"},
		"dead":                          {"A+x U A", "dead 0.0"},
		"running":                       {"A+x U", "running 0.0 open 0 1"},
		"an id that a later step took":  {"A+x U A+x T:x", "2.0=3.0 dead 0.0 open 2"},
		"no result for the earlier one": {"A+x U A+x T:x T:x", "2.0=3.0 dead 0.0 orphan 4.0 open 2"},
		"a late result":                 {"A+x U A T:x", "0.0=3.0 open 0 1 2"},
		"in one message":                {"A~s!s", "0.0=0.1"},
		"across messages of a step":     {"A~s A!s=x", "0.0=1.0 open 0"},
		"ids are compared whole":        {"A+call_1.fc_1 T:call_1", "running 0.0 orphan 1.0 open 0 1"},
		"a result without its call":     {"T:gone A", "orphan 0.0"},
		"calls in a row are one step":   {"A+1 A+2 T:1 T:2 A", "0.0=2.0 1.0=3.0 open 0 1 2"},
		"results in a user's message":   {"A+1 M:1", "0.0=1.0 open 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantPaired(t, tt.script, script(t, tt.script), tt.want)
		})
	}
}

func TestServerSide(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]bool{
		"tool_use": false, "": false, "function": false, "server_tool_use": true,
		"mcp_tool_use": true,
	} {
		if got := (CallRef{Type: typ}).ServerSide(); got != want {
			t.Errorf("ServerSide of %q = %v, want %v", typ, got, want)
		}
	}
}

// Every call and every result is in exactly one place, a call comes before its result, and a call is open
// exactly from its message to that of its result.
func TestPairProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.OneOf(genSession(5), genMessages(10)).Draw(t, "messages")
		p := Pair(ms)
		calls, results := map[[2]int]int{}, map[[2]int]int{}
		open := make([]bool, len(ms))
		for _, pair := range p.Pairs {
			c, r := pair.Call, pair.Result
			calls[[2]int{c.Message, c.Part}]++
			results[[2]int{r.Message, r.Part}]++
			if c.ID != r.ID && c.ID != "" && r.ID != "" || c.Message > r.Message || c.Message == r.Message &&
				c.Part > r.Part {
				t.Fatalf("%v cannot answer %v", r, c)
			}
			for i := c.Message; i < r.Message; i++ {
				open[i] = true
			}
		}
		for _, c := range p.Unanswered {
			calls[[2]int{c.Message, c.Part}]++
			for i := c.Message; i < len(ms) && !p.Dead(c); i++ {
				open[i] = true
			}
		}
		for _, r := range p.Orphans {
			results[[2]int{r.Message, r.Part}]++
		}
		for i, m := range ms {
			if p.OpenAfter(i) != open[i] {
				t.Fatalf("OpenAfter(%d) = %v", i, p.OpenAfter(i))
			}
			for j, part := range m.Parts {
				at := [2]int{i, j}
				if part.Kind == PartToolCall && calls[at] != 1 || part.Kind == PartToolResult && results[at] != 1 {
					t.Fatalf("part %d of message %d was counted %d or %d times", j, i, calls[at], results[at])
				}
			}
		}
		if !slices.IsSortedFunc(p.Unanswered,
			func(a, b CallRef) int { return (a.Message-b.Message)*1000 + a.Part - b.Part }) {
			t.Fatalf("unanswered calls are not in order: %v", p.Unanswered)
		}
	})
}
