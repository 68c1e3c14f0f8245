package pipeline

import (
	"fmt"
	"strings"
	"testing"
)

// What the user said before the first compaction is listed after the third, and a limit in it still counts, whoever
// wrote the summaries.
func TestUsersWordsSurviveRounds(t *testing.T) {
	t.Parallel()
	first := "Build the importer.\n- keep the old names\nNever write to prod-db."
	for name, summarize := range map[string]func([]Message) string{
		"a model that lists nothing": func(source []Message) string {
			summary := userMessagesSection(nil, "5. Solving:\n\nx\n\n6. All user messages:\n\n7. Pending:\n- y",
				summarizedUsers(nil, source), 4000)
			summary, _ = verify(nil, summary, source, nil)
			return summary
		},
		"digest": func(source []Message) string {
			return makeDigest(nil, DigestInput{Messages: source, BudgetChars: 2000})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := numbered(textMessage(RoleUser, first), textMessage(RoleAssistant, "I begin."))
			for round := range 4 {
				summary := summarize(source)
				for _, want := range []string{"Build the importer.", "keep the old names", "Never write to prod-db."} {
					if !strings.Contains(flat(nil, summary), want) {
						t.Fatalf("round %d: %q is missing:\n%s", round, want, summary)
					}
				}
				if n := strings.Count(summary, "Build the importer."); n != 1 {
					t.Fatalf("round %d: listed %d times:\n%s", round, n, summary)
				}
				prior := summaryMessage(SummaryText(SummaryTextInput{Summary: summary, UnderWay: true}))
				source = []Message{
					prior, textMessage(RoleUser, fmt.Sprintf("Go on with part %d.", round)),
					textMessage(RoleAssistant, "Done."),
				}
			}
		})
	}
}

// A digest after a model's summary, and the other way round, hand the user's words on.
func TestUsersWordsSurviveAChangeOfSummarizer(t *testing.T) {
	t.Parallel()
	source := numbered(textMessage(RoleUser, "Never write to prod-db, please."), textMessage(RoleAssistant, "Yes."))
	digest := makeDigest(nil, DigestInput{Messages: source, BudgetChars: 2000})
	next := []Message{
		summaryMessage(SummaryText(SummaryTextInput{Summary: digest, Digest: true})),
		textMessage(RoleUser, "Go on."),
	}
	users := summarizedUsers(nil, next)
	if len(users) != 2 || strings.TrimSpace(userText(users[0])) != "Never write to prod-db, please." ||
		!users[0].Genuine() {
		t.Fatalf("got %+v", users)
	}
	summary, v := verify(nil, "Nothing of it.", next, nil)
	if len(v.ConstraintsMissing) != 1 || !strings.Contains(summary, "Never write to prod-db, please.") {
		t.Errorf("got %q, %+v", summary, v)
	}
}

func TestDigestKeepsLimitsOfCutMessages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Some words about the weather in the mountains. ", 80) + "Never delete the backups. " +
		strings.Repeat("And on it goes. ", 80)
	source := numbered(textMessage(RoleUser, long), textMessage(RoleAssistant, "Yes."), textMessage(RoleUser, "Go on."))
	for _, budget := range []int{900, 1500, 3000, 20_000} {
		digest := makeDigest(nil, DigestInput{Messages: source, BudgetChars: budget})
		if Chars(digest) > budget {
			t.Errorf("%d chars with a budget of %d", Chars(digest), budget)
		}
		if !strings.Contains(digest, "Never delete the backups.") {
			t.Errorf("the limit is missing with %d chars:\n%s", budget, digest)
		}
	}
}

func TestDigestTakesTheAgentsOwnList(t *testing.T) {
	t.Parallel()
	source := numbered(
		textMessage(RoleUser, "Do both."),
		callMessage("", "a", "TodoWrite", `{"todos":[{"content":"Write the parser","status":"completed"},{`+
			`"content":"Write the tests","status":"pending"}]}`),
		resultMessage("a", "ok"),
	)
	digest := makeDigest(nil, DigestInput{Messages: source, BudgetChars: 4000})
	if !strings.Contains(digest, sectionTodo+"\n- Write the tests") || strings.Contains(digest, "Write the parser") {
		t.Errorf("got\n%s", digest)
	}
	if given := makeDigest(nil, DigestInput{
		Messages: source, Todo: "mine",
		BudgetChars: 4000,
	}); !strings.Contains(given,
		sectionTodo+"\nmine") || strings.Contains(given, "Write the tests") {
		t.Errorf("with a list of its own:\n%s", given)
	}
	next := []Message{
		summaryMessage(SummaryText(SummaryTextInput{Summary: digest, Digest: true})),
		textMessage(RoleUser, "Go on."),
	}
	if again := makeDigest(nil, DigestInput{Messages: next, BudgetChars: 4000}); strings.Count(again,
		"Write the tests") != 1 {
		t.Errorf("after another compaction:\n%s", again)
	}
}

func TestSlimNamesTheFilesOfDroppedCalls(t *testing.T) {
	t.Parallel()
	messages := []Message{textMessage(RoleUser, "Look at all of it.")}
	for i := range 30 {
		id := fmt.Sprint("c", i)
		messages = append(messages, callMessage("", id, "Read", fmt.Sprintf(`{"file_path":"src/part%d.go"}`, i)),
			resultMessage(id, strings.Repeat("line of a file\n", 100)))
	}
	messages = append(messages, callMessage("", "t", "TodoWrite",
		`{"todos":[{"content":"Write it up","status":"pending"},{"content":"Read","status":"completed"}]}`),
		resultMessage("t", "ok"))
	messages = append(messages, textMessage(RoleAssistant, "All read."))
	in := SlimInput{Messages: numbered(messages...), BudgetChars: 4000, ToolDropThreshold: 0.25, MinUsefulChars: 200}
	out := slim(nil, in)
	if out.Chars > in.BudgetChars || !strings.Contains(out.Text, "the last ones last: ") ||
		!strings.Contains(out.Text, "src/part29.go.]") {
		t.Errorf("%d chars:\n%s", out.Chars, out.Text)
	}
	if !strings.Contains(out.Text, "Open on the agent's list: Write it up.") {
		t.Errorf("the open task is not named:\n%s", out.Text)
	}
	if strings.Contains(out.Text, "src/part0.go") {
		t.Error("the list is not bounded")
	}
	in.Redact = func(s string) string { return strings.ReplaceAll(s, "part29", "[redacted]") }
	if out := slim(nil, in); strings.Contains(out.Text, "part29") {
		t.Error("the list is not redacted")
	}
}
