package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// The output of `claude -p --output-format stream-json` has one event per line. Events of the types user and
// assistant are records of Claude Code with fewer fields, and are read like them. The prompt is missing unless
// --replay-user-messages was given.
//
// No program loads such a stream, so it is written as a request for Anthropic's API.

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
			"an assistant event of Claude Code is an answer of the API and cannot be made")
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

// window returns the context window of the model from the result event at the end, 0 if it is missing there. The
// other figures of that event are sums over all requests.
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
