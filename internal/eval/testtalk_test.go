package eval_test

import (
	"fmt"
	"strings"

	"precis/pipeline"
)

// talk is a small session: an agent that reads and edits files for its user, who sets limits on the way.
func talk(turns int) []pipeline.Message {
	var out []pipeline.Message
	add := func(m pipeline.Message) {
		m.Seq = int64(len(out) + 1)
		m.Tokens = pipeline.EstimateMessage(m)
		out = append(out, m)
	}
	text := func(role pipeline.Role, s string) pipeline.Message {
		return pipeline.Message{Role: role, Parts: []pipeline.Part{{Kind: pipeline.PartText, Text: s}}}
	}
	for i := range turns {
		ask := fmt.Sprintf("Please look at part %d in src/part%d.go and tell me what it costs.", i, i)
		if i%3 == 0 {
			ask += fmt.Sprintf(" Never touch config/env%d.yaml.", i)
		}
		add(text(pipeline.RoleUser, ask))
		id := fmt.Sprint("call", i)
		call := pipeline.Part{
			Kind: pipeline.PartToolCall, CallID: id, Name: "Read",
			Input: fmt.Sprintf(`{"file_path":"src/part%d.go","ticket":"TCK-%d"}`, i, 1000+i),
		}
		add(pipeline.Message{Role: pipeline.RoleAssistant, Parts: []pipeline.Part{call}})
		result := pipeline.Part{
			Kind: pipeline.PartToolResult, CallID: id,
			Content: []pipeline.Part{{
				Kind: pipeline.PartText,
				Text: strings.Repeat(fmt.Sprintf("line of part %d, of no use\n", i), 60),
			}},
		}
		add(pipeline.Message{Role: pipeline.RoleTool, Parts: []pipeline.Part{result}})
		add(text(pipeline.RoleAssistant,
			fmt.Sprintf("Part %d takes %d ms and %d MB; see `costOf%d()` in src/part%d.go. %s", i, 10+i, 2+i, i, i,
				strings.Repeat("More is said about it here. ", 10))))
	}
	return out
}
