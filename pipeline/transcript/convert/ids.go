package convert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
)

// matchIDs sets the same id on a call and its result if either has none, and the name of the tool on the result.
func matchIDs(all []spoken) {
	messages := make([]pipeline.Message, len(all))
	for i, m := range all {
		messages[i] = pipeline.Message{Role: m.role, Parts: m.parts}
	}
	used := map[string]bool{}
	for _, m := range all {
		for _, p := range m.parts {
			used[p.CallID] = true
		}
	}
	n := 0
	for _, pair := range pipeline.Pair(messages).Pairs {
		call := &all[pair.Call.Message].parts[pair.Call.Part]
		result := &all[pair.Result.Message].parts[pair.Result.Part]
		id := cmp.Or(call.CallID, result.CallID)
		for id == "" || call.CallID == "" && used[id] && id != result.CallID {
			n++
			if id = fmt.Sprintf("call_%d", n); used[id] {
				id = ""
			}
		}
		used[id] = true
		call.CallID, result.CallID = id, id
		result.Name = cmp.Or(result.Name, call.Name)
	}
}

// maxCallID is the maximum length of a call id: OpenAI's Responses take 64 bytes, which leaves room for a number.
const maxCallID = 58

// callIDs makes call ids valid for every API: they consist of letters, digits, '_' and '-', and are unique. A result
// answers the first unanswered call of its id in the nearest message before it that has one.
type callIDs struct {
	used map[string]bool
	open map[string][]openCall // unanswered calls by their original id, in order
}

type openCall struct {
	name string // the id that is written
	item int    // the index of its entry
}

func (c *callIDs) call(id string, item int) string {
	name := c.fresh(id)
	c.open[id] = append(c.open[id], openCall{name, item})
	return name
}

func (c *callIDs) fresh(id string) string {
	if c.used == nil {
		c.used, c.open = map[string]bool{}, map[string][]openCall{}
	}
	base := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
	if base = shortID(base, maxCallID); base == "" {
		base = "call"
	}
	name := base
	for n := 2; c.used[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	c.used[name] = true
	return name
}

func (c *callIDs) result(id string) string {
	open := c.open[id]
	if len(open) == 0 {
		return c.fresh(id)
	}
	i := len(open) - 1
	for i > 0 && open[i-1].item == open[i].item {
		i--
	}
	name := open[i].name
	c.open[id] = slices.Delete(open, i, i+1)
	return name
}

// maxChatID is the maximum length of a call id in a chat message, in bytes: the vendor refuses longer ones.
const maxChatID = 40

// chatID returns a call id that is valid in a chat message. It depends on id only.
func chatID(id string) string { return shortID(id, maxChatID) }

// shortID cuts an id that is too long and adds a hash, which keeps ids with the same beginning distinct.
func shortID(id string, limit int) string {
	if len(id) <= limit {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return strings.ToValidUTF8(id[:limit-9], "") + "_" + hex.EncodeToString(sum[:4])
}

// maxToolName is the maximum length of a tool name for OpenAI, in bytes.
const maxToolName = 64

// toolName returns a name in the characters that OpenAI accepts: letters, digits, '_' and '-'.
func toolName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return cmp.Or(shortID(name, maxToolName), "tool")
}
