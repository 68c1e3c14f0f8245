package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// Session files of Claude Code have one JSON record per line. A message of the API is one or more records with the
// same message.id. Its native bytes are those lines, joined by line breaks.

// claudeRecords reads the record lines of a message of Claude Code, in its files and in its streams.
type claudeRecords struct{}

type claudeCode struct{ claudeRecords }

func (claudeCode) name() Format { return ClaudeCode }

// read reads the record lines of one message, valid JSON.
func (claudeRecords) read(l *layout.Layout) error {
	var recs []record
	lines := layout.NewList(nil)
	for i := rawjson.SkipSpace(l.Native, 0); i < len(l.Native); i = rawjson.SkipSpace(l.Native, i) {
		v := rawjson.At(l.Native, i)
		if !v.IsObject() {
			return l.Errorf("a record is not an object")
		}
		recs = append(recs, readRecord(v))
		lines.Siblings = append(lines.Siblings, v)
		i = v.End()
	}
	if len(recs) == 0 {
		return l.Errorf("the message is empty")
	}
	l.AddList(lines)
	for i, r := range recs {
		if n, ok := r.attachedFile(); ok {
			l.Role = "user"
			n.List, n.Index = 0, i
			l.Nodes = append(l.Nodes, n)
			continue
		}
		if prompt, ok := r.queuedPrompt(); ok {
			l.Role = "user"
			if prompt.IsArray() {
				nodes, err := anthropic.ReadBlocks(l, prompt, layout.List{Parent: 0, ParentIndex: i})
				if err != nil {
					return err
				}
				l.Nodes = append(l.Nodes, nodes...)
				continue
			}
			l.Nodes = append(l.Nodes, layout.Node{
				Part: pipeline.Part{Kind: pipeline.PartText, Text: prompt.Text(), Raw: prompt.Raw()},
				List: 0, Index: i, Value: prompt, Block: true,
			})
			continue
		}
		if r.typ != "user" && r.typ != "assistant" {
			return l.Errorf("a record of type %q is not a message", r.typ)
		}
		if !r.message.IsObject() {
			return l.Errorf("a %s record has no message", r.typ)
		}
		if err := anthropic.Read(l, r.message, 0, i); err != nil {
			return err
		}
		if l.Role != r.typ {
			return l.Errorf("a %s record has a message of another role", r.typ)
		}
	}
	return nil
}

func (claudeRecords) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	r := readRecord(l.Lists[0].Siblings[0])
	m.ID = r.uuid.Text()
	if _, attached := r.attachedFile(); attached {
		m.Kind = pipeline.KindSynthetic
	} else if m.Role == pipeline.RoleUser {
		m.Kind = r.userKind(m)
	}
	return m
}

// Make writes a record with the required fields except those that depend on a place in a session. Its uuid is derived
// from its content. Output.File adds the rest.
func (claudeCode) Make(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleAssistant {
		return nil, pipeline.Errorf(pipeline.Internal,
			"an assistant record of Claude Code is an answer of the API and cannot be made")
	}
	role, block, err := anthropic.Made(m)
	if err != nil {
		return nil, err
	}
	b := []byte(`{"parentUuid":null,"isSidechain":false,"userType":"external","type":"user","message":{` +
		`"role":"user","content":`)
	if m.Role == pipeline.RoleTool {
		b = fmt.Appendf(b, "[%s]", block)
	} else {
		b = append(b, rawjson.Quote(m.Text)...)
	}
	b = append(b, "}"...)
	switch {
	case m.Kind == pipeline.KindSummary:
		b = append(b, `,"isVisibleInTranscriptOnly":true,"isCompactSummary":true`...)
	case m.Role == pipeline.RoleUser && m.Kind != pipeline.KindOrdinary:
		b = append(b, `,"isMeta":true`...)
	}
	return fmt.Appendf(b, `,"uuid":%s}`, rawjson.Quote(madeUUID(role, string(m.Kind), m.CallID, m.Text))), nil
}

// A record has the values of one line that the format reads.
type record struct {
	at                                         rawjson.Value
	typ                                        string
	subtype, uuid, parent, message, attachment rawjson.Value
	session, compact, origin                   rawjson.Value
	sidechain, meta, summary, apiError         bool
	transcriptOnly                             bool
}

func readRecord(v rawjson.Value) record {
	r := record{at: v}
	for key, field := range v.Fields() {
		switch string(key) {
		case "type":
			r.typ = field.Value.Text()
		case "subtype":
			r.subtype = field.Value
		case "uuid":
			r.uuid = field.Value
		case "parentUuid":
			r.parent = field.Value
		case "message":
			r.message = field.Value
		case "attachment":
			r.attachment = field.Value
		case "sessionId":
			r.session = field.Value
		case "session_id":
			if r.session.IsMissing() {
				r.session = field.Value
			}
		case "parent_tool_use_id": // a subagent's, in a stream
			r.sidechain = r.sidechain || field.Value.IsString()
		case "compactMetadata", "compact_metadata":
			r.compact = field.Value
		case "origin":
			r.origin = field.Value
		case "isSidechain":
			r.sidechain = field.Value.IsTrue()
		case "isMeta", "isSynthetic":
			r.meta = r.meta || field.Value.IsTrue()
		case "isCompactSummary":
			r.summary = field.Value.IsTrue()
		case "isApiErrorMessage":
			r.apiError = field.Value.IsTrue()
		case "isVisibleInTranscriptOnly":
			r.transcriptOnly = field.Value.IsTrue()
		}
	}
	return r
}

// queuedPrompt returns what the user typed while the agent was working: Claude Code writes it only as an attachment.
func (r record) queuedPrompt() (rawjson.Value, bool) {
	if r.typ != "attachment" || !r.attachment.IsObject() ||
		r.attachment.Get("type").Text() != "queued_command" ||
		r.attachment.Get("commandMode").Text() == "task-notification" {
		return rawjson.Value{}, false
	}
	prompt := r.attachment.Get("prompt")
	switch prompt.Kind() {
	case rawjson.String:
		return prompt, !strings.HasPrefix(prompt.Text(), "<task-notification>")
	case rawjson.Array:
		return prompt, true
	}
	return rawjson.Value{}, false
}

func (claudeRecords) check(native []byte) error { return rawjson.CheckLines(native) }

// userKind returns the kind of a user message that contains more than results.
func (r record) userKind(m pipeline.Message) pipeline.Kind {
	switch {
	case r.summary:
		return pipeline.KindSummary
	case r.meta:
		return pipeline.KindReminder
	case r.origin.IsObject() && r.origin.Get("kind").Text() == "task-notification":
		return pipeline.KindSynthetic
	}
	return m.Kind
}
