package anthropic

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
)

// Made returns the role and the only block of a message that the pipeline made.
func Made(m pipeline.Made) (role string, block []byte, err error) {
	switch m.Role {
	case pipeline.RoleTool:
		return "user", ToolResult(m.CallID, rawjson.Quote(m.Text), m.IsError), nil
	case pipeline.RoleUser, pipeline.RoleAssistant:
		if strings.TrimSpace(m.Text) == "" {
			return "", nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes",
				m.Role)
		}
		return string(m.Role), layout.TextBlock(m.Text), nil
	}
	return "", nil, pipeline.Errorf(pipeline.Internal,
		"a message of role %s cannot be in the messages of a request: the system prompt is a key of its own", m.Role)
}

func ToolResult(id string, content []byte, isError bool) []byte {
	b := fmt.Appendf(nil, `{"type":"tool_result","tool_use_id":%s,"content":%s`, rawjson.Quote(id), content)
	if isError {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, "}"...)
}

func Wrap(role string, blocks [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"content":[%s]}`, rawjson.Quote(role), rawjson.Join(blocks))
}

// Source writes an image or document block of Anthropic, nil if its data are missing.
func Source(typ string, p pipeline.Part, url string) []byte {
	b := fmt.Appendf(nil, `{"type":%s`, rawjson.Quote(typ))
	if mediaType, data, ok := media.SplitDataURL(url); ok {
		if mediaType == "" {
			mediaType = p.MediaType
		}
		return fmt.Appendf(b, `,"source":{"type":"base64","media_type":%s,"data":%s}}`, rawjson.Quote(mediaType),
			rawjson.Quote(data))
	}
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return fmt.Appendf(b, `,"source":{"type":"url","url":%s}}`, rawjson.Quote(url))
	}
	return nil
}
