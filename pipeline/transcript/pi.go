package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// pi is the format of session files of the Pi coding agent, JSONL: a session line, then entries. A stored message is
// one entry line. From session version 2 on entries are a tree, by id and parentId; the conversation is the path from
// the last entry to the root.
//
// Output.File writes a session that Pi resumes: the session line, a compaction entry that keeps no entry before
// itself, and the entries that stay, unchanged.
type pi struct{}

func (pi) name() Format { return Pi }

// read reads an entry that is for the model, valid JSON.
func (f pi) read(l *layout.Layout) error {
	v := rawjson.Root(l.Native)
	e := f.entry(v)
	l.Role = "user"
	switch {
	case e.typ == "compaction", e.typ == "branch_summary", e.role == "compactionSummary", e.role == "branchSummary":
		if !e.summary.IsString() {
			return l.Errorf("a %s entry has no summary", e.typ)
		}
		l.Nodes = []layout.Node{layout.Text(e.summary)}
		return nil
	case e.typ == "custom_message", e.role == "custom", e.role == "hookMessage", e.role == "user":
		return f.content(l, e.content)
	case e.role == "assistant":
		l.Role = "assistant"
		return f.content(l, e.content)
	case e.role == "toolResult":
		l.Role = "tool"
		return f.result(l, e)
	case e.role == "bashExecution":
		f.bash(l, e.message)
		return nil
	case e.typ != "message":
		return l.Errorf("an entry of type %q is not a message", e.typ)
	}
	return l.Errorf("the role is not user, assistant, toolResult, bashExecution or custom")
}

func (f pi) message(l *layout.Layout) pipeline.Message {
	m := l.Message()
	e := f.entry(rawjson.Root(l.Native))
	m.ID = e.id.Text()
	switch {
	case e.typ == "compaction", e.role == "compactionSummary":
		m.Kind = pipeline.KindSummary
	case m.Role == pipeline.RoleUser && e.role != "user":
		m.Kind = pipeline.KindSynthetic // a command's output, an extension, what a branch left behind
	}
	return m
}

// Make writes an entry without the fields that depend on a session: Output.File adds a time and a place in the tree.
func (pi) Make(m pipeline.Made) ([]byte, error) {
	switch m.Role {
	case pipeline.RoleTool:
		return fmt.Appendf(nil, `{"type":"message","message":{"role":"toolResult","toolCallId":%s,"toolName":%s,`+
			`"content":[%s],"isError":%t,"timestamp":0}}`, rawjson.Quote(m.CallID), rawjson.Quote(m.Name),
			layout.TextBlock(m.Text), m.IsError), nil
	case pipeline.RoleUser:
		if err := layout.MustSay(m); err != nil {
			return nil, err
		}
		if m.Kind == pipeline.KindSummary {
			return fmt.Appendf(nil, `{"type":"compaction","summary":%s,"tokensBefore":0}`, rawjson.Quote(m.Text)), nil
		}
		if m.Kind != pipeline.KindOrdinary {
			return fmt.Appendf(nil, `{"type":"custom_message","customType":"precis","content":[%s],"display":true}`,
				layout.TextBlock(m.Text)), nil
		}
		return fmt.Appendf(nil, `{"type":"message","message":{"role":"user","content":[%s],"timestamp":0}}`,
			layout.TextBlock(m.Text)), nil
	}
	return nil, pipeline.Errorf(pipeline.Internal,
		"an entry of Pi with role %s is written by a model and cannot be made", m.Role)
}

// piEntry has the values of an entry that the format reads.
type piEntry struct {
	typ, role                     string
	id, parent, message, time     rawjson.Value
	content, summary, hidden      rawjson.Value
	firstKeptIndex, firstKeptID   rawjson.Value
	tokensBefore, provider, model rawjson.Value
}

func (pi) entry(v rawjson.Value) piEntry {
	var e piEntry
	var typ, role rawjson.Value
	v.Read(rawjson.Want{
		{"type", &typ},
		{"id", &e.id},
		{"parentId", &e.parent},
		{"timestamp", &e.time},
		{"message", &e.message},
		{"content", &e.content},
		{"summary", &e.summary},
		{"firstKeptEntryIndex", &e.firstKeptIndex},
		{"firstKeptEntryId", &e.firstKeptID},
		{"tokensBefore", &e.tokensBefore},
		{"provider", &e.provider},
		{"modelId", &e.model},
	})
	if e.typ = typ.Text(); e.typ != "message" || !e.message.IsObject() {
		return e
	}
	e.message.Read(rawjson.Want{
		{"role", &role}, {"content", &e.content}, {"summary", &e.summary}, {"excludeFromContext", &e.hidden},
	})
	e.role = role.Text()
	return e
}

func (f pi) content(l *layout.Layout, v rawjson.Value) error {
	switch v.Kind() {
	case rawjson.String:
		l.Nodes = []layout.Node{layout.Text(v)}
		return nil
	case rawjson.Array:
		nodes, err := f.blocks(l, v)
		l.Nodes = nodes
		return err
	}
	return l.Errorf("the content is neither a string nor an array of blocks")
}

func (f pi) blocks(l *layout.Layout, v rawjson.Value) ([]layout.Node, error) {
	els := v.Elements()
	row := l.AddList(layout.NewList(els))
	nodes := make([]layout.Node, 0, len(els))
	for i, el := range els {
		if !el.IsObject() {
			return nil, l.Errorf("a content block is not an object")
		}
		n := f.block(el)
		n.List, n.Index = row, i
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (f pi) block(v rawjson.Value) layout.Node {
	at := v.Members()
	n := layout.Node{Block: true, Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: at["type"].Text(), Raw: v.Raw()}}
	p := &n.Part
	switch p.Type {
	case "text":
		if at["text"].IsString() {
			p.Kind, p.Text, n.Value = pipeline.PartText, at["text"].Text(), at["text"]
		}
	case "thinking":
		p.Kind, p.Text = pipeline.PartReasoning, at["thinking"].Text()
	case "image":
		p.Kind, p.MediaType = pipeline.PartImage, at["mimeType"].Text()
		media.FromAddress(p, f.address(*p))
	case "toolCall":
		// This is Gemini's name for tools that the vendor runs itself.
		p.Type = ""
		p.Kind, p.CallID, p.Name, n.Block = pipeline.PartToolCall, at["id"].Text(), at["name"].Text(), false
		n.Value, n.Insert, n.Key = at["arguments"], v.End()-1, "arguments"
		p.Input = n.Value.TextOrRaw()
	}
	return n
}

// result reads a message that is a result as a whole.
func (f pi) result(l *layout.Layout, e piEntry) error {
	at := e.message.Members()
	n := layout.Node{
		Part: pipeline.Part{
			Kind: pipeline.PartToolResult, CallID: at["toolCallId"].Text(), Name: at["toolName"].Text(),
			IsError: at["isError"].IsTrue(),
		},
		List: -1, Value: e.content, Insert: e.message.End() - 1,
		As: func(text string) ([]byte, error) { return fmt.Appendf(nil, "[%s]", layout.TextBlock(text)), nil },
	}
	switch e.content.Kind() {
	case rawjson.Missing, rawjson.Null:
	case rawjson.String:
		n.Content = []layout.Node{layout.Text(e.content)}
	case rawjson.Array:
		nodes, err := f.blocks(l, e.content)
		if err != nil {
			return err
		}
		n.Content = nodes
	default:
		return l.Errorf("the content is neither a string nor an array of blocks")
	}
	l.Nodes = []layout.Node{n}
	return nil
}

// bash reads a command that the user ran beside the agent. Pi sends it to the model in these words. A replacement
// text takes the place of the output.
func (pi) bash(l *layout.Layout, v rawjson.Value) {
	at := v.Members()
	said := "Ran `" + at["command"].Text() + "`\n"
	if output := at["output"].Text(); output != "" {
		said += "```\n" + output + "\n```"
	} else {
		said += "(no output)"
	}
	if code := at["exitCode"].Numeral(); at["cancelled"].IsTrue() {
		said += "\n\n(command cancelled)"
	} else if code != "" && code != "0" {
		said += "\n\nCommand exited with code " + code
	}
	if path := at["fullOutputPath"].Text(); path != "" && at["truncated"].IsTrue() {
		said += "\n\n[Output truncated. Full output: " + path + "]"
	}
	l.Nodes = []layout.Node{{
		Part: pipeline.Part{Kind: pipeline.PartText, Type: "bashExecution", Text: said},
		List: -1, Value: at["output"], Insert: v.End() - 1, Key: "output", Vacant: `""`, Block: true,
	}}
}

func (pi) address(p pipeline.Part) string {
	b := []byte(p.Raw)
	return media.Base64URL(p.MediaType, rawjson.Root(b).Get("data").Text())
}
