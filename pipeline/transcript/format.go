package transcript

import (
	"bytes"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Format names a wire format. The names are the ones of the HTTP API and the command line.
type Format string

// The formats there are. Auto is none: it asks for Detect.
const (
	Auto      Format = "auto"
	Anthropic Format = "anthropic" // Messages API requests, and recorded request/response pairs
	// chat-completions requests, message arrays, and the logs of agents that use them
	OpenAI Format = "openai"
	// Responses API requests, items and responses, and recorded pairs of them
	OpenAIResponses Format = "openai-responses"
	// generateContent requests of Gemini, Content arrays, and recorded pairs
	Google       Format = "google"
	ClaudeCode   Format = "claude-code"        // session files of Claude Code, JSONL
	ClaudeStream Format = "claude-stream-json" // what `claude -p --output-format stream-json` prints
	Codex        Format = "codex"              // rollout files of Codex, JSONL
	GeminiCLI    Format = "gemini-cli"         // session files of Gemini CLI, JSON and JSONL, and its saved chats
)

// formats is the table of all formats, in the order in which Detect tries them. A format is a row here and a file
// of its own.
var formats = []struct {
	format Format
	// api is the format of the API that the messages are made for, so that going to it needs no rewriting of
	// their blocks: the format itself for an API's own, empty for one that shares its blocks with none.
	api Format
	// detect says from the beginning of a file whether it is one of the format.
	detect func(rawjson.Outline) bool
	// open makes the reader of a file.
	open  func(*stream, Options) source
	codec Codec
	// write makes the file of a conversation whose messages are of the format; nil for an API, whose file is a
	// request.
	write func(Output) ([]byte, error)
}{
	{ClaudeCode, Anthropic, detectClaudeCode, openClaudeCode, claudeCodeCodec{}, claudeCodeFile},
	{ClaudeStream, Anthropic, detectClaudeStream, openClaudeStream, claudeStreamCodec{}, nil},
	{Codex, OpenAIResponses, detectCodex, openCodex, codexCodec{}, codexFile},
	{GeminiCLI, Google, detectGemini, openGemini, geminiCodec{}, geminiFile},
	{Vercel, "", detectVercel, openVercel, vercelCodec{}, writeVercel},
	{LangChain, "", detectLangChain, openLangChain, langChainCodec{}, writeLangChain},
	{OpenCode, "", detectOpenCode, openOpenCode, openCodeCodec{}, writeOpenCode},
	{Pi, "", detectPi, openPi, piCodec{}, writePi},
	{OpenHands, "", detectOpenHands, openOpenHands, openHandsCodec{}, writeOpenHands},
	{Roo, "", detectRoo, openRoo, rooCodec{}, writeRoo},
	{Copilot, "", detectCopilot, openCopilot, copilotCodec{}, writeCopilot},
	{ADK, "", detectADK, openADK, adkCodec{}, writeADK},
	{MSAgent, "", detectMSAgent, openMSAgent, msAgentCodec{}, writeMSAgent},
	{Cursor, "", detectCursor, openCursor, cursorCodec{}, writeCursor},
	{Kimi, "", detectKimi, openKimi, kimiCodec{}, writeKimi},
	{Google, Google, detectGoogle, openGoogle, googleCodec{}, nil},
	{OpenAIResponses, OpenAIResponses, detectResponses, openResponses, responsesCodec{}, nil},
	{Anthropic, Anthropic, detectAnthropic, openAnthropic, anthropicCodec{}, nil},
	{OpenAI, OpenAI, detectOpenAI, openOpenAI, openAICodec{}, nil},
	{SWEAgent, OpenAI, detectNever, openSWEAgent, openAICodec{}, nil},
}

// Codec is one format's way with a single message. A Codec has no state.
type Codec interface {
	Format() Format
	// Decode reads a stored message. The result's Native is native itself, not a copy. Seq, ID and Tokens are
	// the caller's, but for an id that the message itself carries.
	Decode(native []byte) (pipeline.Message, error)
	// Encode gives the bytes of m.Native with the edits applied: only the edited values differ. Without edits
	// it is m.Native itself. When the edits leave nothing to send the result is nil, without an error.
	Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error)
	// Make writes a message of the pipeline's own in the format.
	Make(m pipeline.Made) ([]byte, error)
}

// CodecFor gives the codec of a format; the error names the formats that have one.
func CodecFor(f Format) (Codec, error) {
	for _, row := range formats {
		if row.format == f {
			return row.codec, nil
		}
	}
	return nil, pipeline.Errorf(pipeline.BadRequest, "no format is called %q; there are %s", f, names())
}

// API gives the format of the API that the messages of a format are made for: the format itself for an API's own,
// empty for one whose messages have to be converted for every API.
func (f Format) API() Format {
	for _, row := range formats {
		if row.format == f {
			return row.api
		}
	}
	return ""
}

// Detect names the format of a file from its first bytes: 64 KiB are plenty, all of a smaller file are best.
func Detect(head []byte) (Format, error) {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	i := rawjson.SkipSpace(head, 0)
	if i == len(head) {
		return "", pipeline.Errorf(pipeline.BadRequest, "the transcript is empty")
	}
	if c := head[i]; c != '{' && c != '[' {
		return "", pipeline.Errorf(pipeline.BadRequest, "the transcript is no JSON: it begins with %q", c)
	}
	sk := rawjson.OutlineOf(head)
	for _, row := range formats {
		if row.detect(sk) {
			return row.format, nil
		}
	}
	return "", pipeline.Errorf(pipeline.BadRequest,
		"the transcript is of no known format; name one of %s if it is meant to be that", names())
}

// hasMessages says whether an array at the path holds messages with a role, and none of the marks of formats that
// look much like these: Gemini's parts, the AI SDK's dashed types, an editor's timestamps.
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

// Formats lists the formats in the order in which Detect tries them.
func Formats() []Format {
	out := make([]Format, len(formats))
	for i, row := range formats {
		out[i] = row.format
	}
	return out
}

func names() string { return quotedFormats(func(Format, Format) bool { return true }) }

// apiNames lists the formats of APIs.
func apiNames() string { return quotedFormats(func(f, api Format) bool { return f == api }) }

func quotedFormats(which func(f, api Format) bool) string {
	var all []string
	for _, row := range formats {
		if which(row.format, row.api) {
			all = append(all, fmt.Sprintf("%q", row.format))
		}
	}
	return strings.Join(all, ", ")
}
