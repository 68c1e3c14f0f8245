package convert

import (
	"fmt"
	"io"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/request"
	"precis/pipeline/transcript/valid"
)

// WriteFile writes contexts as a file of the format. For an API it writes a request object that its vendor takes, or
// several, one per line. For an agent's own format, such as claude-code or codex, it writes a file as the agent does,
// with the compaction recorded in the agent's way; this needs messages of the same format. A format that is only read
// is written as the API format of its messages. A conversation of another format is converted to the format of an
// API, and WriteFile returns what was lost in the conversion. A sendable context that the API would refuse is an error,
// and not written.
func WriteFile(w io.Writer, f transcript.Format, all ...transcript.Output) ([]Loss, error) {
	var losses []Loss
	for i, out := range all {
		b, lost, err := fileOf(f, out)
		if err != nil {
			return losses, fmt.Errorf("conversation %d: %w", i+1, err)
		}
		losses = append(losses, lost...)
		if len(all) > 1 && rawjson.Check(b) == nil {
			b = rawjson.OneLine(b)
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			return losses, fmt.Errorf("write the transcript: %w", err)
		}
	}
	return losses, nil
}

func fileOf(f transcript.Format, out transcript.Output) ([]byte, []Loss, error) {
	if f.HasFiles() {
		b, err := out.File(f)
		return b, nil, err
	}
	if api := f.API(); api != "" {
		f = api // a format that is only read is written as the API format of its messages
	}
	c, err := Conversation(out.Meta, out.Items, f)
	if err != nil {
		return nil, nil, err
	}
	m := c.Meta
	messages := c.Messages
	if codec, err := transcript.CodecFor(f); (f == transcript.Anthropic || f == transcript.Google) &&
		!mayBeFirst(codec, messages) {
		if err != nil {
			return nil, nil, err
		}
		opening, err := codec.Make(pipeline.Made{Role: pipeline.RoleUser, Text: openingText})
		if err != nil {
			return nil, nil, err
		}
		messages = append([][]byte{opening}, messages...)
	}
	if out.Sendable {
		if err := valid.Messages(f, messages, m.Continued); err != nil {
			return nil, nil, err
		}
	}
	b, err := request.Build(request.Input{
		Format: f, Envelope: m.Envelope, System: m.System, Tools: m.Tools, Model: m.Model, MaxTokens: m.MaxTokens,
		Messages: messages, Summarized: out.HasSummary(),
	})
	return b, c.Losses, err
}

// openingText is put before a conversation that does not begin with a user message.
const openingText = "[The conversation begins in the middle: what came before is not part of it.]"

// mayBeFirst reports whether Anthropic and Google accept the message as the first: a user message.
func mayBeFirst(codec transcript.Codec, messages [][]byte) bool {
	if len(messages) == 0 {
		return true
	}
	m, err := codec.Decode(messages[0])
	return err != nil || m.Role != pipeline.RoleAssistant // the vendor refuses what is not a message
}
