package convert

import (
	"encoding/json"
	"fmt"
	"strings"

	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

// A tool is the definition of a tool that the client runs, in JSON.
type tool struct{ name, description, schema []byte }

// anySchema is the schema of a tool without one. textSchema is the schema of a tool that takes free text, which is
// under "arguments" as in its calls.
var (
	anySchema  = []byte(`{"type":"object","properties":{}}`)
	textSchema = []byte(`{"type":"object","properties":{"arguments":{"type":"string"}},"required":["arguments"]}`)
)

// convertTools converts tool definitions. Tools that the vendor runs itself have no counterpart.
func convertTools(tools json.RawMessage, from, to transcript.Format) (json.RawMessage, []Loss) {
	if len(tools) == 0 || from == to || from.API() == to || to.API() == from || rawjson.Check(tools) != nil ||
		!rawjson.Root(tools).IsArray() {
		return tools, nil
	}
	var out [][]byte
	var losses []Loss
	for _, el := range rawjson.Root(tools).Elements() {
		all, ran := readTools(el)
		for _, t := range all {
			out = append(out, writeTool(t, to))
		}
		for _, what := range ran {
			losses = append(losses, Loss{-1, "tool", fmt.Sprintf("%q is a tool that the vendor runs itself", what)})
		}
	}
	if len(out) == 0 {
		return nil, losses
	}
	b := fmt.Appendf(nil, "[%s]", rawjson.Join(out))
	if to == transcript.Google {
		b = fmt.Appendf(nil, `[{"functionDeclarations":%s}]`, b)
	}
	return b, losses
}

// readTools reads one entry of a list of tools in the form of Anthropic, of the AI SDK, of either API of OpenAI, or
// of Gemini, whose entry has several tools. ran names those that the vendor runs.
func readTools(el rawjson.Value) (all []tool, ran []string) {
	if !el.IsObject() {
		return nil, nil
	}
	if list, ok := el.LookupCamel("functionDeclarations"); ok && list.IsArray() {
		for _, d := range list.Elements() {
			t := readTool(d, "parametersJsonSchema", "parameters_json_schema")
			if t.schema == nil {
				t = readTool(d, "parameters")
				t.schema = lowerTypes(t.schema)
			}
			all = append(all, t)
		}
		return all, nil
	}
	typ := el.Get("type").Text()
	for _, key := range []string{"function", "custom"} {
		if at, ok := el.Lookup(key); ok && at.IsObject() {
			el, typ = at, key
		}
	}
	t := readTool(el, "input_schema", "inputSchema", "parameters")
	switch {
	case t.name == nil:
		if typ == "" { // tools of Gemini, named by their keys
			for key := range el.Fields() {
				ran = append(ran, string(key))
			}
			return nil, ran
		}
		return nil, []string{typ}
	case t.schema == nil && typ == "custom":
		t.schema = textSchema
	case t.schema == nil && typ != "" && typ != "function":
		return nil, []string{typ}
	}
	return []tool{t}, nil
}

func readTool(v rawjson.Value, schemaKeys ...string) tool {
	var t tool
	if !v.IsObject() {
		return t
	}
	if name, ok := v.Lookup("name"); ok && name.IsString() {
		t.name = name.Raw()
	}
	if d, ok := v.Lookup("description"); ok && d.IsString() {
		t.description = d.Raw()
	}
	for _, key := range schemaKeys {
		if at, ok := v.Lookup(key); ok && at.IsObject() {
			t.schema = at.Raw()
			break
		}
	}
	return t
}

func writeTool(t tool, to transcript.Format) []byte {
	name := rawjson.Quote(toolName(rawjson.Unquote(t.name)))
	schema := t.schema
	if schema == nil {
		schema = anySchema
	}
	var description []byte
	if t.description != nil {
		description = fmt.Appendf(nil, `,"description":%s`, t.description)
	}
	head, key, tail := `{"type":"function","function":{"name":`, `,"parameters":`, "}}"
	switch to {
	case transcript.Anthropic:
		head, key, tail = `{"name":`, `,"input_schema":`, "}"
		name = t.name
	case transcript.OpenAIResponses:
		head, tail = `{"type":"function","name":`, `,"strict":false}`
	case transcript.Google:
		head, key, tail = `{"name":`, `,"parametersJsonSchema":`, "}"
		name = rawjson.Quote(googleName(rawjson.Unquote(t.name)))
	}
	b := append(append([]byte(head), name...), description...)
	return fmt.Appendf(b, "%s%s%s", key, schema, tail)
}

// lowerTypes writes the types of a schema as JSON Schema does: Gemini writes them in capitals.
func lowerTypes(schema []byte) []byte {
	if schema == nil {
		return nil
	}
	var all []rawjson.Splice
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		switch v.Kind() {
		case rawjson.Array:
			for _, el := range v.Elements() {
				walk(el)
			}
		case rawjson.Object:
			for key, field := range v.Fields() {
				s, isText := field.Value.Str()
				switch {
				case string(key) == "type" && isText:
					all = append(all, field.Value.Replace(rawjson.Quote(strings.ToLower(s))))
				case string(key) == "properties" && field.Value.IsObject(): // a property may be called "type"
					for _, p := range field.Value.Fields() {
						walk(p.Value)
					}
				case string(key) != "enum" && string(key) != "default" && string(key) != "example":
					walk(field.Value)
				}
			}
		}
	}
	walk(rawjson.Root(schema))
	return rawjson.Apply(schema, all...)
}
