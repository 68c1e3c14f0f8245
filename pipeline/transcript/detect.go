package transcript

import (
	"bytes"
	"slices"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Several formats are arrays of messages with a role and a content. Which of them a file has is decided by what only
// one of them has, in all messages of the outline and not by the first sign: see apiOf.

// Detect returns the format of a file from its first bytes: pass 64 KiB, or all of a smaller file.
func Detect(head []byte) (Format, error) {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	i := rawjson.SkipSpace(head, 0)
	if i == len(head) {
		return "", pipeline.Errorf(pipeline.BadRequest, "the transcript is empty")
	}
	if c := head[i]; c != '{' && c != '[' {
		return "", pipeline.Errorf(pipeline.BadRequest, "the transcript is not JSON, it begins with %q", c)
	}
	sk := rawjson.OutlineOf(head)
	for _, row := range formats {
		if !row.detect(sk) {
			continue
		}
		if (row.name == Anthropic || row.name == OpenAI) && mixedCalls(sk) {
			return "", pipeline.Errorf(pipeline.BadRequest, "the messages have tool calls of two APIs, blocks of type "+
				"tool_use or tool_result beside tool_calls or the role tool: name the format, %q or %q",
				Anthropic, OpenAI)
		}
		return row.name, nil
	}
	return "", pipeline.Errorf(pipeline.BadRequest,
		"the format of the transcript was not recognized; if it is one of %s, name it", names())
}

// hasMessages reports whether an array at the path has messages with a role and lacks the marks of similar formats:
// Gemini's parts, the AI SDK's dashed types, an editor's timestamps.
func hasMessages(s rawjson.Outline, at string) bool {
	at += "[]"
	if s.Has(at+".parts", at+".ts", at+".role.value",
		at+".content[].type=tool-call", at+".content[].type=tool-result", at+".content[].type=reasoning") {
		return false
	}
	return s.Has(at+".content", at+".tool_calls") &&
		s.Has(at+".role=user", at+".role=assistant", at+".role=system", at+".role=developer", at+".role=tool",
			at+".role=function")
}

// messageArrays are the paths at which a file may have the messages of a request.
var messageArrays = []string{
	"messages", "", "[].traj", "history", "request_params.messages", "[].messages", "[].request.messages",
	"request.messages",
}

// apiOf returns the API, Anthropic or OpenAI, of the messages at a path whose request has its keys below the prefix:
// "" or "[].request.". It returns "" if nothing says which it is.
//
// The strongest evidence are tool calls and their results, then other content blocks and roles that only one API has,
// then the keys of the request, and last the name of the model. A system message is no evidence where it is not the
// first message: Anthropic takes system messages in mid-conversation. Evidence of equal strength for both APIs is
// counted.
func apiOf(s rawjson.Outline, request, messages string) Format {
	at := messages + "[]"
	block := at + ".content[].type="
	for _, level := range []struct{ anthropic, openai []string }{
		{
			anthropic: []string{block + "tool_use", block + "tool_result"},
			openai: []string{
				at + ".tool_calls", at + ".tool_call_id", at + ".function_call", at + ".role=tool",
				at + ".role=function",
			},
		},
		{
			anthropic: []string{
				block + "thinking", block + "redacted_thinking", block + "server_tool_use", block + "mcp_tool_use",
				block + "document", block + "image", block + "search_result", block + "container_upload",
				block + "compaction", at + ".content[].source", at + ".content[].tool_use_id",
			},
			openai: []string{
				at + ".role=developer", block + "image_url", block + "input_audio", block + "file", block + "refusal",
				messages + "[0].role=system",
			},
		},
		{
			anthropic: []string{
				request + "system", request + "tools[].input_schema", request + "anthropic_version",
				request + "thinking", request + "context_management", request + "stop_sequences",
			},
			openai: []string{
				request + "tools[].function", request + "max_completion_tokens", request + "stream_options",
				request + "response_format", request + "frequency_penalty", request + "n",
			},
		},
	} {
		if a, o := count(s, level.anthropic), count(s, level.openai); a > o {
			return Anthropic
		} else if o > a {
			return OpenAI
		}
	}
	if s.HasPrefix(request+"model", "claude", "anthropic.claude", "us.anthropic.", "eu.anthropic.") {
		return Anthropic
	}
	return ""
}

// count returns how many of the paths are there.
func count(s rawjson.Outline, paths []string) (n int) {
	for _, p := range paths {
		if s.Has(p) {
			n++
		}
	}
	return n
}

// mixedCalls reports whether messages have tool calls of both APIs, so that no reading of the file would be right.
func mixedCalls(s rawjson.Outline) bool {
	return slices.ContainsFunc(messageArrays, func(at string) bool {
		return s.Has(at+"[].content[].type=tool_use", at+"[].content[].type=tool_result") &&
			s.Has(at+"[].tool_calls", at+"[].role=tool")
	})
}
