package valid

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline/transcript/rawjson"
)

// Turn is a run of messages with one role. Anthropic's API joins them before it looks at calls and results.
type Turn struct {
	Role string
	// First is the index of its first message.
	First  int
	Blocks []Block
}

// Block is a content block of a turn.
type Block struct {
	// Path says where the block is, for errors.
	Path string
	// Kind is its type, ID the id of the call that it is or answers.
	Kind, ID string
}

// isServerResult reports whether a block is the result of a tool that the vendor runs.
func (b Block) isServerResult() bool {
	return b.Kind != "tool_result" && strings.HasSuffix(b.Kind, "_tool_result")
}

// isServerCall reports whether a block is the call of a tool that the vendor runs.
func (b Block) isServerCall() bool { return b.Kind == "server_tool_use" || b.Kind == "mcp_tool_use" }

// anthropicMessages checks the messages of Anthropic's API.
func anthropicMessages(messages [][]byte) error {
	var turns []Turn
	for i, b := range messages {
		v, err := object(i, b)
		if err != nil {
			return err
		}
		role, content := v.Get("role").Text(), v.Get("content")
		if calls := v.Get("tool_calls"); calls.IsArray() && !calls.IsEmpty() {
			return failure(i, "it has calls in the form of OpenAI")
		}
		if err := anthropicRole(turns, i, role); err != nil {
			return err
		}
		if !content.IsString() && !content.IsArray() || content.IsArray() && content.IsEmpty() {
			return failure(i, "it has no content")
		}
		if len(turns) == 0 || turns[len(turns)-1].Role != role {
			turns = append(turns, Turn{Role: role, First: i})
		}
		turn := &turns[len(turns)-1]
		turn.Blocks = append(turn.Blocks, anthropicBlocks(i, content)...)
	}
	return AnthropicPairs(turns)
}

func anthropicRole(turns []Turn, i int, role string) error {
	last := ""
	if len(turns) > 0 {
		last = turns[len(turns)-1].Role
	}
	switch {
	case role == "system" && last != "user" && last != "system":
		return failure(i, "a system message does not follow one of the user; the system prompt is beside the messages")
	case role == "user" && last == "system":
		return failure(i, "a message of the user follows a system message")
	case role != "user" && role != "assistant" && role != "system":
		return failure(i, "the API has no role %q", role)
	}
	return nil
}

func anthropicBlocks(i int, content rawjson.Value) []Block {
	if content.IsString() {
		return []Block{{Path: fmt.Sprintf("messages.%d.content", i), Kind: "text"}}
	}
	els := content.Elements()
	blocks := make([]Block, len(els))
	for j, el := range els {
		b := Block{Path: fmt.Sprintf("messages.%d.content.%d", i, j), Kind: el.Get("type").Text()}
		if b.ID = el.Get("tool_use_id").Text(); b.ID == "" {
			b.ID = el.Get("id").Text()
		}
		blocks[j] = b
	}
	return blocks
}

// AnthropicPairs returns an error unless every call is answered in the next turn, and every answer belongs to a call.
// The call of a tool that the vendor runs may be answered in its own or in any later turn, and that of the last turn
// still by the vendor. System messages between the turns do not count.
func AnthropicPairs(turns []Turn) error {
	turns = slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return t.Role == "system" })
	called, served := map[string]bool{}, servedLater(turns)
	for i, t := range turns {
		err := error(nil)
		if t.Role == "assistant" {
			err = callsAnswered(turns, i, called, served)
		} else {
			err = resultsBelong(turns, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// servedLater returns the last turn with a result of each call of the vendor's own tools.
func servedLater(turns []Turn) map[string]int {
	served := map[string]int{}
	for i, t := range turns {
		for _, b := range t.Blocks {
			if b.isServerResult() {
				served[b.ID] = i
			}
		}
	}
	return served
}

// callsAnswered checks the calls of turn i. called has the vendor's calls so far.
func callsAnswered(turns []Turn, i int, called map[string]bool, served map[string]int) error {
	t := turns[i]
	answered := map[string]bool{}
	if i+1 < len(turns) {
		for _, b := range turns[i+1].Blocks {
			if b.Kind != "tool_result" {
				break // results come first
			}
			answered[b.ID] = true
		}
	}
	var missing []string
	for _, b := range t.Blocks {
		switch {
		case b.Kind == "tool_use":
			if !answered[b.ID] {
				missing = append(missing, b.ID)
			}
		case b.isServerCall():
			called[b.ID] = true
			if at, ok := served[b.ID]; (!ok || at < i) && closed(turns, i) {
				return fmt.Errorf("messages.%d: `%s` block with id `%s` was found without a corresponding result block",
					t.First, b.Kind, b.ID)
			}
		case b.isServerResult():
			if !called[b.ID] {
				return fmt.Errorf("%s: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must "+
					"have a corresponding `server_tool_use` block before it.", b.Path, b.Kind, b.ID, b.Kind)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: "+
			"%s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
			t.First, strings.Join(missing, ", "))
	}
	return nil
}

// closed reports whether a call of the vendor's tool in turn i must have its result by now: the user has spoken since.
// Before that the vendor may have paused the turn, or waits for results of the client's tools.
func closed(turns []Turn, i int) bool {
	return slices.ContainsFunc(turns[i+1:], func(t Turn) bool {
		return t.Role == "user" && len(t.Blocks) > 0 && t.Blocks[0].Kind != "tool_result"
	})
}

func resultsBelong(turns []Turn, i int) error {
	called := map[string]bool{}
	if i > 0 {
		for _, b := range turns[i-1].Blocks {
			if b.Kind == "tool_use" {
				called[b.ID] = true
			}
		}
	}
	seen := map[string]bool{}
	for _, b := range turns[i].Blocks {
		if b.Kind != "tool_result" {
			continue
		}
		if !called[b.ID] {
			return fmt.Errorf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` "+
				"block must have a corresponding `tool_use` block in the previous message.", b.Path, b.ID)
		}
		if seen[b.ID] {
			return fmt.Errorf(
				"%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", b.Path,
				b.ID)
		}
		seen[b.ID] = true
	}
	return nil
}

var errForeignCalls = errors.New("it has calls or results in the form of another API")
