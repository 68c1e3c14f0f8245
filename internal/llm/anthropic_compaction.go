package llm

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// compactionBlock is a compaction block in a stream: complete at its start, or with its content in one delta.
type compactionBlock struct {
	raw     string
	changes []gjson.Result
}

func (b *compactionBlock) delta(raw string) {
	if b.raw != "" && gjson.Get(raw, "type").String() == "compaction_delta" {
		b.changes = append(b.changes, gjson.Parse(raw))
	}
}

// whole returns the block with the changes of the deltas. Without deltas it has the vendor's own bytes.
func (b *compactionBlock) whole() string {
	raw := b.raw
	for _, d := range b.changes {
		d.ForEach(func(k, v gjson.Result) bool {
			if k.String() == "type" || v.Type == gjson.Null {
				return true
			}
			// Setting the key cannot fail: the block is an object.
			if changed, err := sjson.SetRaw(raw, k.String(), v.Raw); err == nil {
				raw = changed
			}
			return true
		})
	}
	return raw
}

// compaction keeps a compaction block. A block without content is a failed compaction and is dropped.
func (a *answer) compaction(raw string) {
	content := gjson.Get(raw, "content")
	if content.Type != gjson.String || strings.TrimSpace(content.String()) == "" {
		return
	}
	a.native, a.nativeText = json.RawMessage("["+raw+"]"), content.String()
}
