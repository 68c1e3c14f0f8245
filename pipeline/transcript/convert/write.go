package convert

import (
	"fmt"
	"io"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/request"
)

// WriteFile writes contexts as a file of the format: for an API a request object that its vendor takes, several as
// one a line; for an agent's own files, such as claude-code or codex, a file of the kind that the agent keeps, with
// the compaction recorded in its way. A file format is written from its own messages alone. A format that is only
// read is written as the API format that it is made of. A conversation of another format is converted to an API's,
// and what got lost on the way is the result.
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
		f = api // a format that is for reading alone is written as what it is made of
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
	b, err := request.Build(request.Input{
		Format: f, Envelope: m.Envelope, System: m.System, Tools: m.Tools, Model: m.Model, MaxTokens: m.MaxTokens,
		Messages: messages, Summarized: out.HasSummary(),
	})
	return b, c.Losses, err
}

// openingText stands before a conversation that does not begin with a user message.
const openingText = "[The conversation begins in the middle: what came before is not part of it.]"

// mayBeFirst reports whether the first message is one that Anthropic and Google take first: a user message.
func mayBeFirst(codec transcript.Codec, messages [][]byte) bool {
	if len(messages) == 0 {
		return true
	}
	m, err := codec.Decode(messages[0])
	return err != nil || m.Role != pipeline.RoleAssistant // what is not a message is the vendor's to refuse
}
