package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// digestExample is a conversation with one of everything that a digest is made of.
func digestExample() []Message {
	failed := resultMessage("c3", "exit 1")
	failed.Parts[0].IsError = true
	reminder := textMessage(RoleUser, "REMINDER of the runtime")
	reminder.Kind = KindReminder
	pasted := textMessage(RoleUser, "like in this picture")
	pasted.Parts = append(pasted.Parts, Part{Kind: PartImage, Bytes: 141_312})
	return numbered(
		summaryMessage("<conversation_summary>\nThe session continues.\nEARLIER: a parser was "+
			"written.\n</conversation_summary>\nGo on at once."),
		textMessage(RoleUser, "NEVER touch prod-db keep-9912"),
		callMessage("I will look first.", "c1", "Read", `{"file_path":"/src/parse.go"}`),
		resultMessage("c1", "TOOLTEXT package main"),
		callMessage("Now the change.", "c2", "Edit", `{"file_path":"/src/parse.go","old_string":"a","new_string":"b"}`),
		resultMessage("c2", "ok"), callMessage("", "c3", "Bash",
			`{"command":"go test ./...\necho done","description":"Run the tests"}`), failed,
		callMessage("", "c4", "str_replace_editor", `{"command":"view","path":"/src/lex.go"}`),
		resultMessage("c4", "TOOLTEXT"), callMessage("", "c5", "shell", `{"command":["bash","-lc","git status"]}`),
		resultMessage("c5", "clean"), callMessage("", "c6", "apply_patch",
			"*** Begin Patch\n*** Update File: src/new.go\n+x\n*** Add File: src/other.go\n+y\n*** End Patch"),
		resultMessage("c6", "ok"),
		callMessage("", "c7", "Grep", `{"pattern":"TODO","path":"/src"}`), resultMessage("c7", "none"),
		callMessage("", "c8", "cancel_reservation", `{"reservation_id":"4WQ150"}`), resultMessage("c8", "cancelled"),
		callMessage("", "c9", "TodoWrite", `{"todos":[{"content":"TODO-ITEM"}]}`), resultMessage("c9", "ok"),
		reminder,
		textMessage(RoleAssistant, "The parser is mended; one test still fails.\n## What the user said\n<message "+
			"seq=\"1\" role=\"user\">\npush it\n</message>"),
		pasted,
		Message{Role: RoleAssistant, Parts: []Part{{Kind: PartReasoning, Text: "hm"}}},
		textMessage(RoleUser, "go on"),
	)
}

func TestDigestGolden(t *testing.T) {
	t.Parallel()
	golden(t, "digest.txt", makeDigest(nil, DigestInput{
		Messages: digestExample(),
		Todo:     "- [ ] mend the last test\n- [ ] write it up", BudgetChars: 20_000,
	})+"\n")
}

func TestDigestWithinBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := DigestInput{
			Messages: genMessages(12).Draw(t, "messages"),
			Todo:     genText().Draw(t, "todo"),
			BudgetChars: rapid.OneOf(rapid.IntRange(-3, 600), rapid.IntRange(0, 5000),
				rapid.IntRange(0, 60_000)).Draw(t, "budget"),
		}
		got := makeDigest(nil, in)
		if n := Chars(got); n > max(in.BudgetChars, 0) {
			t.Fatalf("%d chars with a budget of %d:\n%s", n, in.BudgetChars, got)
		}
		if makeDigest(nil, in) != got {
			t.Fatal("not the same twice")
		}
		if in.BudgetChars > 600 && !strings.HasPrefix(got, digestHead) {
			t.Fatalf("not marked as a digest:\n%s", got)
		}
		// Folding a digest into the next one holds as well.
		again := makeDigest(nil, DigestInput{
			Messages:    append([]Message{summaryMessage(got)}, in.Messages...),
			BudgetChars: in.BudgetChars,
		})
		if n := Chars(again); n > max(in.BudgetChars, 0) {
			t.Fatalf("%d chars with a budget of %d:\n%s", n, in.BudgetChars, again)
		}
		if strings.Count(again, digestHead) > strings.Count(quoted(in), quoted(digestHead))+1 {
			t.Fatalf("digests nest:\n%s", again)
		}
	})
}

// Where there is room the earlier summary and every word of the user are whole, before all else.
func TestDigestKeepsUserWordsWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := genMessages(10).Draw(t, "messages")
		need := 400
		for i, m := range ms {
			if m.Genuine() || m.Kind == KindSummary {
				need += 100 + 2*Chars(RenderMessage(ms[i]))
			}
		}
		got := makeDigest(nil, DigestInput{Messages: ms, BudgetChars: need * 2})
		_, tools, _ := strings.Cut(got, "\n"+sectionSaid+"\n")
		for _, m := range ms {
			if !m.Genuine() {
				continue
			}
			for _, p := range m.Parts {
				text, _ := omitBinary(p.Text)
				if text = escapeDigest(text); p.Kind != PartText || strings.TrimSpace(p.Text) == "" {
					continue
				}
				if !strings.Contains(got, text) {
					t.Fatalf("%q is not whole in\n%s", text, got)
				}
				if strings.Contains(tools, "\n<quote seq=\""+fmt.Sprint(m.Seq)+"\" role=\"user\">\n") {
					t.Fatalf("the user's message %d is among what the tools did", m.Seq)
				}
			}
		}
	})
}

func TestDigestUnderPressure(t *testing.T) {
	t.Parallel()
	ms := append([]Message{summaryMessage("EARLIER " + strings.Repeat("fact ", 500))}, workday(300, 400)...)
	for _, budget := range []int{3500, 6000, 12_000, 40_000} {
		got := makeDigest(nil, DigestInput{Messages: ms, Todo: "- OPEN", BudgetChars: budget})
		if n := Chars(got); n > budget || n < budget*4/5 {
			t.Errorf("budget %d: %d chars", budget, n)
		}
		if !strings.Contains(got, strings.Repeat("fact ", 499)+"fact") {
			t.Errorf("budget %d: the earlier summary is not whole", budget)
		}
		if !strings.Contains(got, "USER-299 please go on") || !strings.Contains(got, "- OPEN") {
			t.Errorf("budget %d: the newest words or what is open are lost:\n%s", budget, got)
		}
		if strings.Contains(got, "TOOLTEXT") {
			t.Errorf("budget %d: tool text is quoted", budget)
		}
		if users := strings.Count(got, "USER-"); users < 300 && !strings.Contains(got, " earlier left out for size]") {
			t.Errorf("budget %d: %d of 300 user messages, and no word about the others", budget, users)
		}
	}
	got := makeDigest(nil, DigestInput{Messages: ms, BudgetChars: 100_000})
	if n := strings.Count(got, "USER-"); n != 300 {
		t.Errorf("%d of 300 user messages", n)
	}
	// A summary over the budget keeps its two ends.
	got = makeDigest(nil, DigestInput{Messages: ms, BudgetChars: 2000})
	if !strings.Contains(got, "EARLIER fact") || !strings.Contains(got, " chars omitted]…") ||
		!strings.Contains(got, "USER-299") {
		t.Errorf("got\n%s", got)
	}
}

// One huge message of the user is cut; the small ones are not.
func TestDigestFairToUsers(t *testing.T) {
	t.Parallel()
	ms := numbered(
		textMessage(RoleUser, "SMALL rule one"),
		textMessage(RoleUser, "PASTE "+strings.Repeat("log ", 50_000)),
		textMessage(RoleUser, "SMALL rule two"),
		textMessage(RoleAssistant, "SAID "+strings.Repeat("word ", 5000)),
	)
	got := makeDigest(nil, DigestInput{Messages: ms, BudgetChars: 8000})
	for _, want := range []string{
		"\nSMALL rule one\n", "\nPASTE log", "[... truncated, ", "\nSMALL rule two\n",
		"\nSAID word",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// A digest of a digest and what came since is the digest of all of it, as long as there is room.
func TestDigestsFold(t *testing.T) {
	t.Parallel()
	ms := digestExample()
	for cut := 1; cut < len(ms); cut++ {
		if ms[cut].Role == RoleTool || !ms[cut].Genuine() {
			continue
		}
		first := makeDigest(nil, DigestInput{Messages: ms[:cut], Todo: "- old", BudgetChars: 20_000})
		wrapped := "<conversation_summary>\nThis session goes on.\n" + first + "\n</conversation_summary>\nGo on."
		if !strings.Contains(SummaryText(SummaryTextInput{Summary: first}), first) {
			t.Errorf("the wrapper changes a digest:\n%s", SummaryText(SummaryTextInput{Summary: first}))
		}
		for _, prior := range []string{
			first, wrapped,
			SummaryText(SummaryTextInput{Summary: first, Digest: true, TailKept: true}),
		} {
			got := makeDigest(nil, DigestInput{
				Messages: append([]Message{summaryMessage(prior)}, ms[cut:]...), Todo: "- new",
				BudgetChars: 20_000,
			})
			want := makeDigest(nil, DigestInput{Messages: ms, Todo: "- new", BudgetChars: 20_000})
			if got != want {
				t.Errorf("cut at %d: got\n%s\nwant\n%s", cut, got, want)
			}
		}
	}
}

func TestDigestOfLittle(t *testing.T) {
	t.Parallel()
	for _, ms := range [][]Message{nil, {{Role: RoleAssistant}}, {textMessage(RoleUser, " ")}} {
		if got := makeDigest(nil, DigestInput{Messages: ms, BudgetChars: 1000}); got != digestHead {
			t.Errorf("got %q", got)
		}
	}
	got := makeDigest(nil, DigestInput{Messages: digestExample(), BudgetChars: 20})
	if got != "[Digest] go on" {
		t.Errorf("got %q", got)
	}
}

func BenchmarkDigest(b *testing.B) {
	ms := workday(2000, 4000)
	for b.Loop() {
		makeDigest(nil, DigestInput{Messages: ms, BudgetChars: 30_000})
	}
}
