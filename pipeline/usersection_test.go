package pipeline

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUserMessagesSection(t *testing.T) {
	t.Parallel()
	reminder := textMessage(RoleUser, "injected")
	reminder.Kind = KindReminder
	users := []Message{
		textMessage(RoleUser, "first\nwith two lines"),
		reminder,
		textMessage(RoleAssistant, "not the user's"),
		{Role: RoleUser, Parts: []Part{{
			Kind: PartToolResult, CallID: "a",
			Content: []Part{{Kind: PartText, Text: "a result"}},
		}, {Kind: PartText, Text: "second"}}},
		textMessage(RoleUser, "  "),
		{Role: RoleUser, Parts: []Part{{Kind: PartImage, Bytes: 2048}}},
	}
	list := "- first\n  with two lines\n- second\n- [binary omitted: ~2 KB]"
	for name, tt := range map[string]struct{ summary, want string }{
		"numbered": {
			"5. Problem solving:\nnone\n\n6. All user messages:\n   - \"made up\"\n\n7. Pending tasks:\nnone",
			"5. Problem solving:\nnone\n\n6. All user messages:\n" + list + "\n\n7. Pending tasks:\nnone",
		},
		"markdown titles": {
			"## 6. All User Messages\n\n1. made up\n2. more\n\n## 7. Pending Tasks\nnone",
			"## 6. All User Messages\n" + list + "\n\n## 7. Pending Tasks\nnone",
		},
		"bold": {
			"**6. All user messages:**\n- x\n\n**7. Pending tasks:**\ny",
			"**6. All user messages:**\n" + list + "\n\n**7. Pending tasks:**\ny",
		},
		"text behind the title": {
			"6. All user messages: \"made up\" and more\n7. Pending tasks: y",
			"6. All user messages:\n" + list + "\n\n7. Pending tasks: y",
		},
		"another language": {
			"5. 问题解决：\n无\n6. 所有用户消息：\n- 编造\n7. 待办：\n无",
			"5. 问题解决：\n无\n6. 所有用户消息：\n" + list + "\n\n7. 待办：\n无",
		},
		"without a number, last": {
			"# User messages\nmade up", "# User messages\n" + list,
		},
		"no such section": {"BODY", "BODY"},
		"handoff has five": {
			"1. Goal: x\n2. Facts: y\n5. Where things stand: z",
			"1. Goal: x\n2. Facts: y\n5. Where things stand: z",
		},
		"a mention is no section": {"The user messages were read.", "The user messages were read."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := userMessagesSection(nil, tt.summary, users, 10_000); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Newest first within the budget: the oldest go, the one at the edge is cut.
func TestUserMessagesSectionBudget(t *testing.T) {
	t.Parallel()
	users := []Message{
		textMessage(RoleUser, "oldest"), textMessage(RoleUser, "older"),
		textMessage(RoleUser, strings.Repeat("middle ", 100)), textMessage(RoleUser, "newest"),
	}
	got := userMessagesSection(nil, "6. All user messages:\n", users, 120)
	if !strings.Contains(got, "- newest") || !strings.Contains(got, "[... truncated,") ||
		strings.Contains(got, "older") ||
		!strings.Contains(got, "[2 earlier message(s) not listed]") {
		t.Errorf("got %q", got)
	}
	if strings.Index(got, "middle") > strings.Index(got, "newest") {
		t.Error("the messages are not in order")
	}
	for _, nothing := range []int{0, -1, 3} {
		if got := userMessagesSection(nil, "6. All user messages:\nmade up", users,
			nothing); got != "6. All user messages:\nmade up" {
			t.Errorf("a budget of %d gave %q", nothing, got)
		}
	}
}

func TestUserListProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		users := genMessages(8).Draw(t, "messages")
		budget := rapid.IntRange(-10, 2000).Draw(t, "budget")
		list := userList(nil, users, budget)
		list = strings.TrimSuffix(list, "\n")
		if _, rest, found := strings.Cut(list, "not listed]\n"); found && strings.HasPrefix(list, "[") {
			list = rest
		}
		if n := Chars(list); n > max(budget, 0) {
			t.Fatalf("%d chars, the budget is %d", n, budget)
		}
		for line := range strings.Lines(list) {
			if !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "  ") {
				t.Fatalf("the line %q is outside of the list", line)
			}
		}
	})
}
