package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn writes a partition as one line: "S0 I1 sum 2-5 carried 2 tail 6-9".
func drawn(p Partition) string {
	var b strings.Builder
	list := func(name string, indexes []int) {
		if len(indexes) == 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + " ")
		for i := 0; i < len(indexes); {
			j := i
			for j+1 < len(indexes) && indexes[j+1] == indexes[j]+1 {
				j++
			}
			if i > 0 {
				b.WriteByte(',')
			}
			if i == j {
				fmt.Fprintf(&b, "%d", indexes[i])
			} else {
				fmt.Fprintf(&b, "%d-%d", indexes[i], indexes[j])
			}
			i = j + 1
		}
	}
	list("system", p.System)
	list("info", p.UserInfo)
	list("sum", p.ToSummarize)
	list("carried", p.Carried)
	list("tail", p.Tail)
	if p.Nothing != "" {
		b.WriteString(" nothing " + p.Nothing)
	}
	return strings.TrimSpace(b.String())
}

func keepLastUser(s *Settings) { s.PreserveLastUser = true }

func relaxGuard(s *Settings) { s.RelaxedSplitGuard = true }

// partitionCases are conversations in the script language and how each is divided.
var partitionCases = map[string]struct {
	script   string
	window   int
	full     bool
	settings func(*Settings)
	again    bool
	seen     int64
	want     string
}{
	"split at the last user message": {script: "S I U A U A U+x A", want: "system 0 info 1 sum 2-5 tail 6-7"},
	"the prior summary is summarised with the rest": {
		script: "P U A U A", want: "sum 0-2 tail 3-4",
	},
	"system behind the prior summary": {script: "P S I U A U", want: "system 1 info 2 sum 0,3-4 tail 5"},

	// The guard.
	"guard: one turn is summarised whole": {script: "S U A#500 A=x", want: "system 0 sum 1-3 carried 1"},
	"guard: split at 1 is no split":       {script: "P U A#100", want: "sum 0-2 carried 1"},
	"relaxed guard: split at 1 is kept": {
		script: "P#900 U A", settings: relaxGuard, again: true,
		want: "sum 0 tail 1-2",
	},
	"relaxed guard: split at 0 does not": {script: "U A#100", settings: relaxGuard, want: "sum 0-1 carried 0"},
	"full summarises all, the last user message stays": {
		script: "U A U A U A", full: true, want: "sum 0-5 carried 4",
	},
	"no user message: all": {script: "N A#100 N A", want: "sum 0-3"},

	// preserveLastUser.
	"preserve: summarised and in the tail": {script: "U A U A U A", settings: keepLastUser, want: "sum 0-4 tail 4-5"},
	"preserve: full wins": {
		script: "U A U A U A", settings: keepLastUser, full: true,
		want: "sum 0-5 carried 4",
	},
	"preserve: alone it is nothing to summarise": {
		script: "U", settings: keepLastUser,
		want: "tail 0 nothing all_protected",
	},

	// Nothing to do.
	"empty":                         {script: "", want: "nothing empty"},
	"only system":                   {script: "S I", want: "system 0 info 1 nothing empty"},
	"one user message":              {script: "U=hi", want: "tail 0 nothing all_protected"},
	"a greeting":                    {script: "U=hi A=hello", want: "tail 0-1 nothing all_protected"},
	"right after a compaction":      {script: "P", want: "tail 0 nothing already_compacted"},
	"only protected messages since": {script: "P U", want: "tail 0-1 nothing already_compacted"},
	"the same by force": {
		script: "P U", full: true,
		want: "tail 0-1 nothing already_compacted",
	},
	"no message since the marker": {
		script: "P U A#900 U A", seen: 4,
		want: "tail 0-4 nothing already_compacted",
	},
	"a new focus lets it be done again": {
		script: "P U A#900 U A", seen: 4, again: true,
		want: "sum 0-2 tail 3-4",
	},
	"reminders are nothing to summarise":  {script: "R R U", want: "tail 0-2 nothing all_protected"},
	"a large answer is, after one prompt": {script: "U A#8000", window: 10000, want: "sum 0-1 carried 0"},

	// Units.
	"ten parallel calls stay together": {
		script: "U A U A+1+2+3+4 T:1#900 T:2 T:3 M:4 A", window: 1000, want: "sum 0-7 carried 7 tail 8",
	},
	"results in user messages are no turns": {script: "U A U A+1+2 T:1 T:2 A=done", want: "sum 0-1 tail 2-6"},
	"server tool calls and results in one message": {
		script: "U A~s!s U A", want: "sum 0-1 tail 2-3",
	},
	"a server's result in the next message": {script: "U A U=q A~s A!s=found U A", want: "sum 0-4 tail 5-6"},
	"ids are compared whole": {
		script: "U A+call_1.fc_1 T:call_1.fc_1 A+call_1 T:call_1 U A", want: "sum 0-4 tail 5-6",
	},
	"ids that repeat": {script: "U A+x T:x A+x T:x U A+x T:x A", want: "sum 0-4 tail 5-8"},
	"a result of a call before the user's word comes along": {
		script: "U A U A+a U=wait T:a A", want: "sum 0-2 tail 3-6",
	},
	"a user message that carries the result of the step before": {
		script: "U A U A+a M:a A", want: "sum 0-2 tail 3-5",
	},

	// Open and dead calls.
	"a dead call does not hold the split": {script: "U A+dead U A U A U A", want: "sum 0-5 tail 6-7"},
	"nor does one with parallel results":  {script: "U A+1+dead T:1 A U A U A", want: "sum 0-5 tail 6-7"},
	"nor one whose id is used again":      {script: "U A+x U A+x T:x A U A", want: "sum 0-5 tail 6-7"},
	"a running call stays in the tail":    {script: "U A U A+z", want: "sum 0-1 tail 2-3"},
	"a running call stays when all is summarised": {
		script: "U A U A+z", full: true, want: "sum 0-2 carried 2 tail 3",
	},
	"a user's word behind a running call": {script: "U A U A+z U=hello", full: true, want: "sum 0-2 tail 3-4"},

	// What nobody has answered.
	"messages in a row stay verbatim":    {script: "U A U U R U", want: "sum 0-1 tail 2-5"},
	"also when all is summarised":        {script: "U A U U", full: true, want: "sum 0-1 tail 2-3"},
	"injected messages are not the last": {script: "N U=task A#90 N U=real R", want: "sum 0-3 tail 4-5"},
	"results that the model has not read": {
		script: "U A U A+a T:a", full: true,
		want: "sum 0-2 carried 2 tail 3-4",
	},
	"one result as large as the window": {
		script: "U A+a T:a#15000", window: 20000,
		want: "tail 0-2 nothing all_protected",
	},
	"a user message over the window stays": {script: "U A U#30000", window: 16000, want: "sum 0-1 tail 2"},

	// Long turns.
	"the split moves inside the turn": {
		script: "U A U=now A+a T:a#300 A+b T:b#300 A+c T:c#100 A", window: 1000, want: "sum 0-4 carried 2 tail 5-9",
	},
	"a single turn too": {
		script: "U=all A+a T:a#300 A+b T:b#300 A+c T:c#100 A", window: 1000, want: "sum 0-2 carried 0 tail 3-7",
	},
	"no user message: the same boundaries": {
		script: "N A+a T:a#300 A+b T:b#300 A+c T:c#100 A", window: 1000, want: "sum 0-2 tail 3-7",
	},
	"what was carried before is carried again": {
		script: "P U A+a T:a#300 A+b T:b#300 A+c T:c#100", window: 1000, want: "sum 0-3 carried 1 tail 4-7",
	},
	"a tail over its budget gives way, one within it does not": {
		script: "U A U A+a T:a#400 A", window: 1000, want: "sum 0-1 tail 2-5",
	},
	"a step that does not fit, and is not read, stays": {
		script: "U A U A+a T:a#100 A+b T:b#900", window: 1000, want: "sum 0-4 carried 2 tail 5-6",
	},
	"a step that does not fit, and is read, goes": {
		script: "U A U A#900", window: 1000, want: "sum 0-3 carried 2",
	},

	// Orphans.
	"a result without its call at the start": {script: "T:gone A U A#90 U", want: "sum 0-3 tail 4"},
	"in the tail":                            {script: "U A U T:gone A U A", want: "sum 0-4 tail 5-6"},
	"an orphan in the last turn moves the split behind it": {
		script: "U A U T:gone A", want: "sum 0-3 carried 2 tail 4",
	},
	"an orphan that the model has not read stays": {
		script: "U A U A+a T:a T:gone", want: "sum 0-1 tail 2-5",
	},
}

func TestPartitionMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range partitionCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := DefaultSettings()
			if tt.settings != nil {
				tt.settings(&s)
			}
			p := partition(nil, PartitionInput{
				Messages: script(t, tt.script), Settings: s, Full: tt.full, Window: tt.window, Again: tt.again,
				SeenSeq: tt.seen,
			})
			if got := drawn(p); got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.script, got, tt.want)
			}
		})
	}
}

func TestPartitionReportsTailShape(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		want   []ShapeWarning
	}{
		"clean":                   {script: "U A+a T:a A U A+b T:b A"},
		"a dead call is no fault": {script: "U A+dead U A U A"},
		"result of a call ahead": {
			script: "U A U A+a U=wait T:a A",
			want:   []ShapeWarning{{Code: tailShapeInvalid, CallIDs: []string{"a"}}},
		},
		"result without a call": {
			script: "U A U T:gone A",
			want:   []ShapeWarning{{Code: tailShapeInvalid, CallIDs: []string{"gone"}}},
		},
		"a call still running": {
			script: "U A U A+z U",
			want:   []ShapeWarning{{Code: tailShapeInvalid, CallIDs: []string{"z"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := partition(nil, PartitionInput{
				Messages: script(t, tt.script),
				Settings: DefaultSettings(),
			}).Warnings
			for i := range got {
				if got[i].Detail == "" {
					t.Error("a warning says nothing")
				}
				got[i].Detail = ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Messages without a text are nothing to summarize.
func TestPartitionOfBlankMessages(t *testing.T) {
	t.Parallel()
	ms := script(t, "A A A")
	ms[0].Parts = nil
	ms[1].Parts[0].Text = " \n\u00a0"
	ms[2].Parts[0] = Part{Kind: PartReasoning}
	p := partition(nil, PartitionInput{Messages: ms, Settings: DefaultSettings()})
	if got, want := drawn(p), "tail 0-2 nothing empty"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPartitionCovers(t *testing.T) {
	t.Parallel()
	p := partition(nil, PartitionInput{Messages: script(t, "S I U A+a T:a A U A"), Settings: DefaultSettings()})
	if p.CoversFrom != 3 || p.CoversTo != 6 || p.Split != 6 {
		t.Errorf("covers %d to %d, split %d, want 3 to 6, split 6", p.CoversFrom, p.CoversTo, p.Split)
	}
}

// Sizes are scaled by the last real figure, so that the tail fits the model's own count.
func TestPartitionCalibratesTheTail(t *testing.T) {
	t.Parallel()
	in := PartitionInput{
		Messages: script(t, "U A U A+a T:a#120 A+b T:b#120 A"), Settings: DefaultSettings(),
		Window: 1000,
	}
	if got := drawn(partition(nil, in)); got != "sum 0-1 tail 2-7" {
		t.Errorf("uncalibrated: %s", got)
	}
	in.Calibration = 3
	if got := drawn(partition(nil, in)); got != "sum 0-4 carried 2 tail 5-7" {
		t.Errorf("calibrated: %s", got)
	}
}

func TestPartitionFindsSkills(t *testing.T) {
	t.Parallel()
	ms := script(t, "U A U")
	ms[0].Parts[0].Text = `before <skill name="deploy">how to</skill> between <skills>all</skills> <skill_x> ` +
		`<skill name="deploy">how to</skill>`
	ms[1].Parts[0].Text = "<skill>two</skill>"
	ms[2].Parts[0].Text = "<skill>in the tail</skill>"
	got := partition(nil, PartitionInput{Messages: ms, Settings: DefaultSettings()}).Skills
	want := []string{`<skill name="deploy">how to</skill>`, "<skills>all</skills>", "<skill>two</skill>"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
}

// genSession draws conversations as agents have them, with what goes wrong in real ones: parallel calls, ids
// used again, dead and running calls, words in between, results without calls.
func genSession(turns int) *rapid.Generator[[]Message] {
	return rapid.Custom(func(t *rapid.T) []Message {
		var words []string
		if rapid.Bool().Draw(t, "system") {
			words = append(words, "S")
		}
		if rapid.Bool().Draw(t, "prior") {
			words = append(words, "P")
		}
		ids := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		for range rapid.IntRange(0, turns).Draw(t, "turns") {
			words = append(words, rapid.SampledFrom([]string{"U", "U", "U", "R U", "N", "U U", "U=again"}).Draw(t,
				"opening"))
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				calls := rapid.SliceOfNDistinct(ids, 0, 3, rapid.ID).Draw(t, "calls")
				call := "A"
				var results []string
				for _, id := range calls {
					call += "+" + id
					results = append(results, "T:"+id)
				}
				switch rapid.IntRange(0, 9).Draw(t, "trouble") {
				case 0: // the last result is lost
					if len(results) > 0 {
						results = results[:len(results)-1]
					}
				case 1: // somebody speaks in between
					results = append([]string{"U=steer"}, results...)
				case 2:
					results = append(results, "T:"+ids.Draw(t, "stray"))
				case 3:
					call = "A~s!s " + call
				}
				words = append(words, call)
				words = append(words, results...)
			}
			words = append(words, rapid.SampledFrom([]string{"A", "A", "", "A=x A=y"}).Draw(t, "closing"))
		}
		line := strings.Join(words, " ")
		t.Log(line)
		ms := script(&testing.T{}, line)
		for i := range ms {
			ms[i].Tokens = rapid.SampledFrom([]int{10, 10, 10, 100, 600}).Draw(t, "tokens")
		}
		return ms
	})
}

func genPartitionInput() *rapid.Generator[PartitionInput] {
	return rapid.Custom(func(t *rapid.T) PartitionInput {
		s := DefaultSettings()
		s.PreserveLastUser = rapid.Bool().Draw(t, "preserve")
		s.RelaxedSplitGuard = rapid.Bool().Draw(t, "relaxed")
		return PartitionInput{
			Messages: rapid.OneOf(genSession(5), genSession(5), genMessages(10)).Draw(t, "messages"),
			Settings: s,
			Full:     rapid.Bool().Draw(t, "full"),
			Window:   rapid.SampledFrom([]int{0, 500, 2000, 10000}).Draw(t, "window"),
			Again:    rapid.Bool().Draw(t, "again"),
		}
	})
}

// TestPartitionProperties holds for any conversation.
func TestPartitionProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genPartitionInput().Draw(t, "input")
		p := partition(nil, in)
		at := map[int][]string{}
		for name, list := range map[string][]int{
			"system": p.System, "info": p.UserInfo, "sum": p.ToSummarize,
			"tail": p.Tail,
		} {
			for _, i := range list {
				at[i] = append(at[i], name)
			}
		}
		lastUser := -1
		for i, m := range in.Messages {
			if m.Genuine() {
				lastUser = i
			}
		}
		stays := map[int]bool{}
		for _, i := range append(slices.Clone(p.Tail), p.Carried...) {
			stays[i] = true
		}

		for i := range in.Messages {
			twice := in.Settings.PreserveLastUser && !in.Full && i == lastUser
			if len(at[i]) == 0 || len(at[i]) > 1 && !twice {
				t.Fatalf("message %d is in %v; %s", i, at[i], drawn(p))
			}
		}
		for _, i := range p.Carried {
			if !slices.Contains(p.ToSummarize, i) || !in.Messages[i].Genuine() {
				t.Fatalf("carried message %d is not a summarised user message; %s", i, drawn(p))
			}
		}
		if p.Nothing != "" {
			if len(p.ToSummarize) > 0 {
				t.Fatalf("nothing to do, but %s", drawn(p))
			}
			return
		}
		if lastUser >= 0 && !stays[lastUser] && !slices.Contains(p.System, lastUser) {
			t.Fatalf("the last user message %d stays nowhere verbatim; %s", lastUser, drawn(p))
		}
		if !slices.IsSorted(p.Tail) || len(p.Tail) > 0 && p.Tail[0] != p.Split {
			t.Fatalf("split %d, %s", p.Split, drawn(p))
		}

		checkPairs(t, in, p)

		answered := false
		for i := len(in.Messages) - 1; i >= 0; i-- {
			m := in.Messages[i]
			if m.Role == RoleAssistant {
				answered = true
			}
			if m.Genuine() && !answered && !stays[i] {
				t.Fatalf("nobody has answered message %d, and it does not stay; %s", i, drawn(p))
			}
		}
	})
}

// checkPairs checks that no unit is parted and that the tail is one that an API takes.
func checkPairs(t *rapid.T, in PartitionInput, p Partition) {
	inTail := map[int]bool{}
	for _, i := range p.Tail {
		inTail[i] = true
	}
	var conv []Message
	var index []int
	for i, m := range in.Messages {
		if !slices.Contains(p.System, i) && !slices.Contains(p.UserInfo, i) {
			conv, index = append(conv, m), append(index, i)
		}
	}
	pairing := Pair(conv)
	for _, pair := range pairing.Pairs {
		call, result := index[pair.Call.Message], index[pair.Result.Message]
		if inTail[call] != inTail[result] {
			t.Fatalf("call at %d and result at %d are parted; %s", call, result, drawn(p))
		}
	}
	for _, call := range pairing.Unanswered {
		if !pairing.Dead(call) && !inTail[index[call.Message]] {
			t.Fatalf("the running call at %d was summarised; %s", index[call.Message], drawn(p))
		}
	}
	if len(p.Tail) == 0 {
		return
	}
	if first := in.Messages[p.Tail[0]]; first.Role == RoleTool {
		t.Fatalf("the tail starts with a tool result; %s", drawn(p))
	}
	d := newDivision(nil, in)
	for _, orphan := range pairing.Orphans {
		if inTail[index[orphan.Message]] && orphan.Message < d.floor {
			t.Fatalf("the tail holds a result without its call at %d; %s", index[orphan.Message], drawn(p))
		}
	}
	// A tail over its budget is there only where no later split would do.
	size := 0
	for _, i := range p.Tail {
		size += in.Messages[i].Tokens
	}
	if budget := tailBudget(in.Settings, in.Window); budget > 0 && size > budget && in.Messages[p.Tail[0]].Tokens > 0 {
		for q := slices.Index(index, p.Tail[0]) + 1; q <= d.floor; q++ {
			if d.sound(q) && !d.overBudget(q) {
				t.Fatalf("a tail of %d tokens is over its budget of %d, and could begin at %d; %s", size, budget,
					index[q], drawn(p))
			}
		}
	}
}

// A partition depends on nothing but its input, and leaves that as it was.
func TestPartitionIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := genPartitionInput().Draw(t, "input")
		before := fmt.Sprintf("%#v", in.Messages)
		first, second := partition(nil, in), partition(nil, in)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("two partitions of one conversation differ:\n%s", diff)
		}
		if fmt.Sprintf("%#v", in.Messages) != before {
			t.Fatal("the messages were changed")
		}
	})
}

func TestUnderWay(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"":            false,
		"S I":         false,
		"U":           true,
		"U A":         false,
		"U A R":       false,
		"U A U R":     true,
		"U A+a":       true,
		"U A+a T:a":   true,
		"U A+a T:a A": false,
		"U A~s!s":     false,
		"U A N":       true,
		"P":           false,
	} {
		if got := UnderWay(script(t, line)); got != want {
			t.Errorf("UnderWay(%q) = %v, want %v", line, got, want)
		}
	}
}
