package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// Format is the name of a transcript format, as in the HTTP API and on the command line.
type Format string

// The formats. Auto is not a format of its own: its meaning is the result of Detect.
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
	ClaudeStream Format = "claude-stream-json" // the output of `claude -p --output-format stream-json`
	Codex        Format = "codex"              // rollout files of Codex, JSONL
	GeminiCLI    Format = "gemini-cli"         // session files of Gemini CLI, JSON and JSONL, and its saved chats
	Vercel       Format = "vercel"             // messages of the AI SDK, and the log of its devtools
	LangChain    Format = "langchain"          // messages of LangChain and LangGraph
	OpenCode     Format = "opencode"           // the output of `opencode export`
	Pi           Format = "pi"                 // session files of Pi
	OpenHands    Format = "openhands"          // event streams of OpenHands
	Roo          Format = "roo"                // task files of Roo Code and Cline
	Copilot      Format = "copilot"            // sessions of GitHub's Copilot CLI
	ADK          Format = "adk"                // sessions of Google's Agent Development Kit
	MSAgent      Format = "ms-agent"           // runs and threads of Microsoft's Agent Framework
	Cursor       Format = "cursor"             // agent transcripts of Cursor
	Kimi         Format = "kimi"               // context files of Kimi CLI
	Qwen         Format = "qwen"               // session files of Qwen Code, JSONL
	SWEAgent     Format = "swe-agent"          // another name: a trajectory of SWE-agent, whose messages are openai
)

// formats is the table of all formats, in the order in which Detect tries them. A format is a row here and a type in a
// file of its own.
var formats = []struct {
	name Format
	// api is the format of the API whose blocks the messages have, so that a conversion to it keeps them: the format
	// itself for an API's own, empty for a format with blocks of its own.
	api Format
	format
}{
	{Qwen, Google, qwen{}}, // before Claude Code, whose records have the same chain
	{ClaudeCode, Anthropic, claudeCode{}},
	{ClaudeStream, Anthropic, claudeStream{}},
	{Codex, OpenAIResponses, codex{}},
	{GeminiCLI, Google, geminiCLI{}},
	{Vercel, "", vercel{}},
	{LangChain, "", langChain{}},
	{OpenCode, "", openCode{}},
	{Pi, "", pi{}},
	{OpenHands, "", openHands{}},
	{Roo, "", roo{}},
	{Copilot, "", copilot{}},
	{ADK, "", adk{}},
	{MSAgent, "", msAgent{}},
	{Cursor, "", cursor{}},
	{Kimi, "", kimi{}},
	{Google, Google, googleAPI{}},
	{OpenAIResponses, OpenAIResponses, openAIResponses{}},
	{Anthropic, Anthropic, anthropicAPI{}},
	{OpenAI, OpenAI, openAIChat{}},
	{SWEAgent, OpenAI, sweAgent{}},
}

// API returns the format of the API whose blocks the messages of a format have: the format itself for an API's own,
// empty for a format whose messages have to be converted for every API.
func (f Format) API() Format {
	for _, row := range formats {
		if row.name == f {
			return row.api
		}
	}
	return ""
}

// Formats lists the formats in the order in which Detect tries them.
func Formats() []Format {
	out := make([]Format, len(formats))
	for i, row := range formats {
		out[i] = row.name
	}
	return out
}

func names() string { return quotedFormats(func(Format, Format) bool { return true }) }

// APINames lists the formats of APIs, quoted, for an error or a help text.
func APINames() string { return quotedFormats(func(f, api Format) bool { return f == api }) }

func quotedFormats(which func(f, api Format) bool) string {
	var all []string
	for _, row := range formats {
		if which(row.name, row.api) {
			all = append(all, fmt.Sprintf("%q", row.name))
		}
	}
	return strings.Join(all, ", ")
}

// MessagesKey returns the key of the messages in a request of an API.
func (f Format) MessagesKey() string {
	switch f {
	case OpenAIResponses:
		return "input"
	case Google:
		return "contents"
	}
	return "messages"
}

// ModelJSON returns a model's name as JSON, in the form that a request of the API has.
func (f Format) ModelJSON(model string) []byte {
	if f == Google && !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return rawjson.Quote(model)
}

// NewEnvelope makes an envelope for an API from the metadata of a conversation.
func (m Meta) NewEnvelope() []byte {
	out := []byte(`{`)
	if m.Model != "" {
		out = fmt.Appendf(out, `"model":%s,`, m.Format.ModelJSON(m.Model))
	}
	out = fmt.Appendf(out, "%s:[]", rawjson.Quote(m.Format.MessagesKey()))
	if m.Tools != nil {
		out = fmt.Appendf(out, `,"tools":%s`, m.Tools)
	}
	return append(out, "}"...)
}

// HasFiles reports whether the format has files of its own. For any other format the output is a request of its API.
func (f Format) HasFiles() bool {
	c, err := CodecFor(f)
	if err != nil {
		return false
	}
	_, ok := c.format.(writer)
	return ok
}

// NoWayTo returns the error for a conversion of messages of f to a format in which they cannot be written.
func (f Format) NoWayTo(to Format) error {
	return pipeline.Errorf(pipeline.BadRequest,
		"messages of format %q cannot be written in format %q; the formats of APIs are %s", f, to, APINames())
}
