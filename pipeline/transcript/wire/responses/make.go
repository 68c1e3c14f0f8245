package responses

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Made writes an item for a message that the pipeline made.
func Made(m pipeline.Made) ([]byte, error) {
	if m.Role == pipeline.RoleTool {
		return madeResult(m), nil
	}
	if strings.TrimSpace(m.Text) == "" {
		return nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes", m.Role)
	}
	typ := "input_text"
	if m.Role == pipeline.RoleAssistant {
		typ = "output_text"
	}
	return fmt.Appendf(nil, `{"type":"message","role":%s,"content":[%s]}`, rawjson.Quote(string(m.Role)),
		TextPart(typ, rawjson.Quote(m.Text))), nil
}

// NoScreenshot is an image of one white pixel, for a computer call that was never answered: its result has to be an
// image.
const NoScreenshot = "data:image/png;base64," +
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="

// madeResult writes the result of a call. Each type of call requires its own type of result.
func madeResult(m pipeline.Made) []byte {
	output := rawjson.Quote(m.Text)
	typ := m.Type + "_output"
	key, more := "call_id", ""
	switch m.Type {
	case "custom_tool_call":
	case "local_shell_call":
		key = "id"
	case "shell_call":
		output = shellOutput(m.Text, 1)
	case "apply_patch_call":
		more = `,"status":"failed"`
	case "computer_call":
		output = fmt.Appendf(nil, `{"type":"computer_screenshot","image_url":%s}`, rawjson.Quote(NoScreenshot))
	default:
		typ = "function_call_output"
	}
	return fmt.Appendf(nil, `{"type":%s,"%s":%s%s,"output":%s}`, rawjson.Quote(typ), key, rawjson.Quote(m.CallID), more,
		output)
}
