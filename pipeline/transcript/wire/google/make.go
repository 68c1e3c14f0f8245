package google

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// FunctionCall writes a call of the model.
func FunctionCall(p pipeline.Part) []byte {
	b := []byte(`{"functionCall":{`)
	if p.CallID != "" {
		b = fmt.Appendf(b, `"id":%s,`, rawjson.Quote(p.CallID))
	}
	b = fmt.Appendf(b, `"name":%s`, rawjson.Quote(p.Name))
	if args := strings.TrimSpace(p.Input); args != "" {
		b = fmt.Appendf(b, `,"args":%s`, args)
	}
	return append(b, "}}"...)
}

func Made(m pipeline.Made) (role string, part []byte, err error) {
	switch m.Role {
	case pipeline.RoleTool:
		return "user", FunctionResponse(m.CallID, m.Name, rawjson.Quote(m.Text), m.IsError), nil
	case pipeline.RoleUser, pipeline.RoleAssistant:
		if strings.TrimSpace(m.Text) == "" {
			return "", nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes",
				m.Role)
		}
		if m.Role == pipeline.RoleAssistant {
			return "model", Text(rawjson.Quote(m.Text)), nil
		}
		return "user", Text(rawjson.Quote(m.Text)), nil
	}
	return "", nil, pipeline.Errorf(pipeline.Internal,
		"a message of role %s cannot be one of the contents of a request: the system instruction is a key of its own",
		m.Role)
}

// Text writes a text part; lit is its text as JSON.
func Text(lit []byte) []byte {
	return fmt.Appendf(nil, `{"text":%s}`, lit)
}

// FunctionResponse writes the result of a call; output is the result as JSON.
func FunctionResponse(id, name string, output []byte, isError bool) []byte {
	b := []byte(`{"functionResponse":{`)
	if id != "" {
		b = fmt.Appendf(b, `"id":%s,`, rawjson.Quote(id))
	}
	return fmt.Appendf(b, `"name":%s,"response":%s}}`, rawjson.Quote(name), wrapOutput(output, isError))
}

// wrapOutput writes the result of a function: the vendor requires an object with the key "output" or "error".
func wrapOutput(output []byte, isError bool) []byte {
	key := `{"output":`
	if isError {
		key = `{"error":`
	}
	return append(append([]byte(key), output...), '}')
}

func Wrap(role string, parts [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"parts":[%s]}`, rawjson.Quote(role), rawjson.Join(parts))
}
