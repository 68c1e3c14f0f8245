// Package responses reads and writes the items of OpenAI's Responses API, which Codex stores in its files as well:
// https://platform.openai.com/docs/api-reference/responses.
package responses

import (
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// fields has the values of an item that the format reads.
type fields struct {
	typ, role, content, id, callID, name       rawjson.Value
	arguments, input, action, operation, code  rawjson.Value
	output, result, outputs, results, tools    rawjson.Value
	queries, summary, status, errorText, label rawjson.Value
}

func (f *fields) read(v rawjson.Value) {
	v.Read(rawjson.Want{
		{"type", &f.typ},
		{"role", &f.role},
		{"content", &f.content},
		{"id", &f.id},
		{"call_id", &f.callID},
		{"name", &f.name},
		{"arguments", &f.arguments},
		{"input", &f.input},
		{"action", &f.action},
		{"operation", &f.operation},
		{"code", &f.code},
		{"output", &f.output},
		{"result", &f.result},
		{"outputs", &f.outputs},
		{"results", &f.results},
		{"tools", &f.tools},
		{"queries", &f.queries},
		{"summary", &f.summary},
		{"status", &f.status},
		{"error", &f.errorText},
		{"server_label", &f.label},
	})
}

// Read appends the nodes of the item at v.
func Read(l *layout.Layout, v rawjson.Value) error {
	if !v.IsObject() {
		return l.Errorf("the message is not a JSON object")
	}
	l.Input = newInput
	var f fields
	f.read(v)
	switch typ := f.typ.Text(); {
	case typ == "message", typ == "" && !f.role.IsMissing():
		return readMessage(l, f)
	case typ == "":
		return l.Errorf("the item has neither a type nor a role")
	case typ == "agent_message":
		// A message of another agent of the same run to this one.
		l.Decide(pipeline.RoleUser, pipeline.KindSynthetic)
		nodes, err := readContent(l, f.content)
		l.Nodes = append(l.Nodes, nodes...)
		return err
	case typ == "reasoning":
		l.Decide(pipeline.RoleAssistant, pipeline.KindOrdinary)
		addItem(l, layout.Node{Part: pipeline.Part{
			Kind: pipeline.PartReasoning, Type: typ, Text: reasoningText(f), Raw: v.Raw(),
		}})
	case strings.HasSuffix(typ, "_output") && !f.resultID(typ).IsMissing():
		l.Decide(pipeline.RoleTool, pipeline.KindOrdinary)
		return readResult(l, typ, f, v)
	case strings.HasSuffix(typ, "_call") && f.callID.IsString(), typ == "program" && f.callID.IsString():
		l.Decide(pipeline.RoleAssistant, pipeline.KindOrdinary)
		addItem(l, readCall(typ, f, v))
	case strings.HasSuffix(typ, "_call"):
		l.Decide(pipeline.RoleAssistant, pipeline.KindOrdinary)
		readVendorCall(l, typ, f, v)
	default:
		l.Decide(opaqueItem(typ))
		addItem(l, layout.Node{Part: pipeline.Part{Kind: pipeline.PartOpaque, Type: typ, Raw: v.Raw()}, Block: true})
	}
	return nil
}

// addItem adds a node for the item as a whole.
func addItem(l *layout.Layout, n layout.Node) {
	n.List = -1
	l.Nodes = append(l.Nodes, n)
}

// opaqueItem returns the role and kind of an item of which only the type is known.
func opaqueItem(typ string) (pipeline.Role, pipeline.Kind) {
	switch typ {
	case "additional_tools", "configuration_update":
		return pipeline.RoleSystem, pipeline.KindOrdinary
	case "mcp_approval_response":
		return pipeline.RoleTool, pipeline.KindOrdinary
	case "compaction_trigger":
		return pipeline.RoleUser, pipeline.KindSynthetic
	}
	return pipeline.RoleAssistant, pipeline.KindOrdinary // compaction, item_reference, mcp_list_tools…
}

// Message returns the message of the layout of an item.
func Message(l *layout.Layout) pipeline.Message {
	if l.Role == "developer" {
		l.Role = string(pipeline.RoleSystem)
	}
	m := l.Message()
	if m.Role == pipeline.RoleUser && m.Kind != pipeline.KindSynthetic {
		if k, ok := codexKind(m); ok {
			m.Kind = k
		}
	}
	return m
}

// IsCompaction reports whether the item at v is a summary that only the vendor can read.
func IsCompaction(v rawjson.Value) bool {
	return v.IsObject() && v.Get("type").Text() == "compaction"
}
