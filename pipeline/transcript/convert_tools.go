package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A tool is the definition of one that the client runs, in JSON.
type tool struct{ name, description, schema []byte }

// anySchema is the schema of a tool that has none, and textSchema that of one that takes free text: as its calls do,
// it stands under "arguments".
var (
	anySchema  = []byte(`{"type":"object","properties":{}}`)
	textSchema = []byte(`{"type":"object","properties":{"arguments":{"type":"string"}},"required":["arguments"]}`)
)

// convertTools writes tool definitions anew. Tools that the vendor runs itself have no counterpart.
func convertTools(tools json.RawMessage, from, to Format) (json.RawMessage, []Loss) {
	if len(tools) == 0 || from == to || from.API() == to || to.API() == from || whole(tools) != nil ||
		kind(tools, root(tools)) != '[' {
		return tools, nil
	}
	var out [][]byte
	var losses []Loss
	for _, el := range elements(tools, root(tools)) {
		all, ran := readTools(tools, el)
		for _, t := range all {
			out = append(out, writeTool(t, to))
		}
		for _, what := range ran {
			losses = append(losses, Loss{-1, "tool", fmt.Sprintf("%q is one that the vendor runs itself", what)})
		}
	}
	if len(out) == 0 {
		return nil, losses
	}
	b := append(append([]byte{'['}, bytes.Join(out, []byte{','})...), ']')
	if to == Google {
		b = append(append([]byte(`[{"functionDeclarations":`), b...), "}]"...)
	}
	return b, losses
}

// readTools reads one entry of a list of tools: Anthropic's, the AI SDK's, OpenAI's in both of its forms, or Gemini's,
// which has several in one. ran names those that the vendor runs.
func readTools(b []byte, el span) (all []tool, ran []string) {
	if kind(b, el) != '{' {
		return nil, nil
	}
	if list, ok := getCamel(b, el, "functionDeclarations"); ok && kind(b, list) == '[' {
		for _, d := range elements(b, list) {
			t := readTool(b, d, "parametersJsonSchema", "parameters_json_schema")
			if t.schema == nil {
				t = readTool(b, d, "parameters")
				t.schema = lowerTypes(t.schema)
			}
			all = append(all, t)
		}
		return all, nil
	}
	typ := text(b, first(get(b, el, "type")))
	for _, key := range []string{"function", "custom"} {
		if at, ok := get(b, el, key); ok && kind(b, at) == '{' {
			el, typ = at, key
		}
	}
	t := readTool(b, el, "input_schema", "inputSchema", "parameters")
	switch {
	case t.name == nil:
		if typ == "" { // Gemini's, by their keys
			for key := range fields(b, el) {
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

func readTool(b []byte, v span, schemaKeys ...string) tool {
	var t tool
	if kind(b, v) != '{' {
		return t
	}
	if name, ok := get(b, v, "name"); ok && kind(b, name) == '"' {
		t.name = name.of(b)
	}
	if d, ok := get(b, v, "description"); ok && kind(b, d) == '"' {
		t.description = d.of(b)
	}
	for _, key := range schemaKeys {
		if at, ok := get(b, v, key); ok && kind(b, at) == '{' {
			t.schema = at.of(b)
			break
		}
	}
	return t
}

func writeTool(t tool, to Format) []byte {
	name := quote(toolName(unquote(t.name)))
	schema := t.schema
	if schema == nil {
		schema = anySchema
	}
	var description []byte
	if t.description != nil {
		description = append([]byte(`,"description":`), t.description...)
	}
	head, key, tail := `{"type":"function","function":{"name":`, `,"parameters":`, "}}"
	switch to {
	case Anthropic:
		head, key, tail = `{"name":`, `,"input_schema":`, "}"
		name = t.name
	case OpenAIResponses:
		head, tail = `{"type":"function","name":`, `,"strict":false}`
	case Google:
		head, key, tail = `{"name":`, `,"parametersJsonSchema":`, "}"
		name = quote(googleName(unquote(t.name)))
	}
	b := append(append([]byte(head), name...), description...)
	b = append(append(b, key...), schema...)
	return append(b, tail...)
}

// lowerTypes writes the types of a schema as JSON Schema does: Gemini's own has them in capitals.
func lowerTypes(schema []byte) []byte {
	if schema == nil {
		return nil
	}
	var all []splice
	var walk func(v span)
	walk = func(v span) {
		switch kind(schema, v) {
		case '[':
			for _, el := range elements(schema, v) {
				walk(el)
			}
		case '{':
			for key, f := range fields(schema, v) {
				s, isText := str(schema, f.value)
				switch {
				case string(key) == "type" && isText:
					all = append(all, splice{f.value, quote(strings.ToLower(s))})
				case string(key) == "properties" && kind(schema, f.value) == '{': // a property may be called "type"
					for _, p := range fields(schema, f.value) {
						walk(p.value)
					}
				case string(key) != "enum" && string(key) != "default" && string(key) != "example":
					walk(f.value)
				}
			}
		}
	}
	walk(root(schema))
	return apply(schema, all)
}
