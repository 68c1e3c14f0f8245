package pipeline

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var scriptWord = regexp.MustCompile(`^([SIPUATRNM])((?:[+~!][\w.]+|:[\w.]+|=\S+)*)(?:#(\d+))?$`)

// script makes a conversation from a line: one word a message.
//
//	S system, I environment, P prior summary, U user, A assistant, T tool, R reminder, N synthetic,
//	M a user message that carries results and words of its own
//	+a makes call a, ~a makes it as a server's tool call, !a answers it in the same message as the server,
//	:a holds the result of a, =text says text, #500 weighs 500 tokens
//
// Without =text a message says its position, a call or a result alone says nothing.
func script(t testing.TB, line string) []Message {
	t.Helper()
	roles := map[byte]Role{
		'S': RoleSystem, 'I': RoleUser, 'P': RoleUser, 'U': RoleUser, 'A': RoleAssistant,
		'T': RoleTool, 'R': RoleUser, 'N': RoleUser, 'M': RoleUser,
	}
	kinds := map[byte]Kind{'I': KindUserInfo, 'P': KindSummary, 'R': KindReminder, 'N': KindSynthetic}
	var ms []Message
	seq := int64(0)
	for i, word := range strings.Fields(line) {
		m := scriptWord.FindStringSubmatch(word)
		if m == nil {
			t.Fatalf("script: cannot read %q", word)
		}
		letter := m[1][0]
		msg := Message{Role: roles[letter], Kind: kinds[letter], Tokens: 10}
		if letter != 'P' {
			seq++
			msg.Seq = seq
		}
		if m[3] != "" {
			msg.Tokens, _ = strconv.Atoi(m[3])
		}
		for _, piece := range regexp.MustCompile(`[+~!:=][^+~!:=]*`).FindAllString(m[2], -1) {
			value := piece[1:]
			switch piece[0] {
			case '+':
				msg.Parts = append(msg.Parts, Part{
					Kind: PartToolCall, Type: "tool_use", CallID: value, Name: "tool",
					Input: "{}",
				})
			case '~':
				msg.Parts = append(msg.Parts, Part{
					Kind: PartToolCall, Type: "server_tool_use", CallID: value,
					Name: "web_search", Input: "{}",
				})
			case '!':
				msg.Parts = append(msg.Parts, Part{
					Kind: PartToolResult, Type: "web_search_tool_result", CallID: value,
					Content: []Part{{Kind: PartText, Text: "found"}},
				})
			case ':':
				msg.Parts = append(msg.Parts, Part{
					Kind: PartToolResult, Type: "tool_result", CallID: value,
					Content: []Part{{Kind: PartText, Text: "result " + value}},
				})
			case '=':
				msg.Parts = append(msg.Parts, Part{Kind: PartText, Text: value})
			}
		}
		if len(msg.Parts) == 0 || letter == 'M' {
			msg.Parts = append(msg.Parts, Part{Kind: PartText, Text: "message " + strconv.Itoa(i)})
		}
		ms = append(ms, msg)
	}
	return ms
}
