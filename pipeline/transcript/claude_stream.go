package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// What `claude -p --output-format stream-json` prints: an event a line. Those of the types user and assistant are
// records as Claude Code keeps them, with fewer fields, and are read as those are. The prompt is not among them,
// unless --replay-user-messages was given.
//
// No tool loads such a stream, so what is written of it is a request for Anthropic's API.

type claudeStream struct{ claudeRecords }

func (claudeStream) name() Format { return ClaudeStream }

// Make writes an event as one that is sent to `claude --input-format stream-json`.
func (claudeStream) Make(m pipeline.Made) ([]byte, error) {
	role, block, err := anthropic.Made(m)
	if err != nil {
		return nil, err
	}
	if m.Role == pipeline.RoleAssistant {
		return nil, pipeline.Errorf(pipeline.Internal,
			"an assistant event of Claude Code is an answer of the API: none can be made")
	}
	b := fmt.Appendf(nil, `{"type":"user","message":%s,"parent_tool_use_id":null`,
		anthropic.Wrap(role, [][]byte{block}))
	if m.Role == pipeline.RoleUser && m.Kind != pipeline.KindOrdinary {
		b = append(b, `,"isSynthetic":true`...)
	}
	return append(b, "}"...), nil
}

func (claudeStream) detect(s rawjson.Outline) bool {
	return s.Has("parent_tool_use_id") && s.Has("session_id") && !s.Has("parentUuid", "isSidechain") ||
		s.Has("type=system") && s.Has("subtype=init") && s.Has("session_id") &&
			s.Has("slash_commands", "permissionMode", "mcp_servers")
}

func (f claudeStream) open(s *jsonstream.Reader, o Options) source {
	c := &claudeSession{s: s, o: o, format: f, hold: holdBytes}
	c.aside = func(b []byte, r record) {
		switch {
		case r.typ == "system" && r.subtype.Text() == "init":
			if model := r.at.Get("model").Text(); model != "" && c.main.meta.Model == "" {
				c.main.meta.Model = model
			}
			c.main.meta.ID = r.at.Get("session_id").Text()
		case r.typ == "result":
			c.main.meta.Window = f.window(r.at, c.main.meta.Model)
		}
	}
	c.notes.add(Note{
		Code: NoteMissing, What: "prompt",
		Reason: "the stream does not hold what was asked, nor the system prompt",
	}, 1)
	return c
}

// window is the context window of the model by the result event at the end, 0 when it does not say. Its other
// figures are sums over all requests.
func (claudeStream) window(v rawjson.Value, model string) int {
	used, ok := v.Lookup("modelUsage")
	if !ok || !used.IsObject() {
		return 0
	}
	for name, field := range used.Fields() {
		if string(name) == model || strings.HasPrefix(string(name), model+"[") {
			return field.Value.Get("contextWindow").Count()
		}
	}
	return 0
}
