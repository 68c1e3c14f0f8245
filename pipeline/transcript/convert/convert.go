// Package convert writes conversations in other formats: messages, whole conversations, and files. It leaves out what
// the target format cannot hold and reports it as a Loss.
package convert

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/request"
	"precis/pipeline/transcript/wire/anthropic"
)

// Loss is something that the target format cannot hold.
type Loss struct {
	// Item is the index of the entry of the context, -1 for a loss outside of the messages.
	Item int
	// What names what was lost or changed.
	What string
	// Why is one sentence: the reason, and what replaces it.
	Why string
}

// Result is a conversation in another format.
type Result struct {
	// Meta has the system prompt, the tools and the envelope in the new format.
	Meta     transcript.Meta
	Messages [][]byte
	Losses   []Loss
}

// Messages writes a context in another format. Roles, calls with their results, order and images stay; what the
// target cannot hold is left out and reported. Blocks that are the same in both formats keep their bytes. For
// Anthropic, consecutive messages of one role become one, results first, as the API requires; a system message is a
// loss, because Conversation moves it out of the messages. The context ensures that every call has a result
// (pipeline.BuildContext).
//
// The source may have any format; the target is the format of an API. What only its own vendor can use is left out:
// signatures, encrypted reasoning and summaries, files that are named by an id.
func Messages(items []pipeline.ContextItem, from, to transcript.Format) ([][]byte, []Loss, error) {
	c, err := convert(transcript.Meta{Format: from}, items, to)
	if err != nil {
		return nil, nil, err
	}
	if len(c.Meta.System) > 0 && (to == transcript.Anthropic || to == transcript.Google) {
		c.Losses = append(c.Losses, Loss{
			-1, "system message",
			"it belongs beside the messages and is left out of them",
		})
	}
	return c.Messages, c.Losses, nil
}

// Conversation does what Messages does and also converts the metadata: the system prompt moves to its place in the
// target format, tools are converted, and the envelope is a new one. For Anthropic surplus cache marks are left out.
func Conversation(m transcript.Meta, items []pipeline.ContextItem, to transcript.Format) (Result, error) {
	c, err := convert(m, items, to)
	if err != nil {
		return c, err
	}
	tools, losses := convertTools(m.Tools, m.Format, to)
	c.Meta.Tools = tools
	c.Losses = append(c.Losses, losses...)
	if to == transcript.Anthropic {
		docs := anthropic.LimitMarks(append([][]byte{c.Meta.Tools, c.Meta.System}, c.Messages...)...)
		c.Meta.Tools, c.Meta.System, c.Messages = docs[0], docs[1], docs[2:]
		tools = c.Meta.Tools
	}
	if c.Meta.Format == m.Format {
		c.Meta.Envelope = m.Envelope
		return c, nil
	}
	c.Meta.Vendor, c.Meta.Envelope = string(to), nil
	r := request.Input{Format: to, Model: m.Model, MaxTokens: m.MaxTokens, Tools: tools}
	switch to {
	case transcript.OpenAI: // its system prompt is a message
	case transcript.OpenAIResponses:
		c.Meta.Vendor = string(transcript.OpenAI)
		fallthrough
	default:
		r.System = c.Meta.System
	}
	c.Meta.Envelope, err = request.Build(r)
	return c, err
}

func convert(m transcript.Meta, items []pipeline.ContextItem, to transcript.Format) (Result, error) {
	out := Result{Meta: m}
	codec, err := transcript.CodecFor(m.Format)
	if err != nil {
		return out, err
	}
	c := &converter{from: m.Format, to: to, source: m.Format}
	if m.Format == to || to == transcript.GeminiCLI && m.Format == transcript.Google {
		// The chats that Gemini CLI saves contain messages of its API.
		if out.Messages, err = transcript.EncodeItems(codec, items); err == nil {
			out.Messages, err = codec.FileEntries(out.Messages)
		}
		return out, err
	}
	out.Meta.Format = to
	if codec.HoldsAPIMessages() {
		if items, err = c.cross(codec, items); err != nil {
			return out, err
		}
		c.from = m.Format.API()
		if codec, err = transcript.CodecFor(c.from); err != nil {
			return out, err
		}
	}
	crossed := len(c.losses) // these have their index in the context already
	if c.from == to {
		out.Messages, err = transcript.EncodeItems(codec, items)
		out.Losses = c.losses
		return out, err
	}
	all, err := c.read(codec, items)
	if err != nil {
		return out, err
	}
	if out.Messages, err = c.write(&out.Meta, all); err != nil {
		return out, err
	}
	for i := crossed; i < len(c.losses); i++ {
		if l := &c.losses[i]; c.index != nil && l.Item >= 0 {
			l.Item = c.index[l.Item]
		}
	}
	out.Losses = c.losses
	return out, nil
}

// write writes messages in the target format and moves the system prompt of m to its place there.
func (c *converter) write(m *transcript.Meta, all []spoken) ([][]byte, error) {
	var messages [][]byte
	switch c.to {
	case transcript.Anthropic, transcript.Google:
		var system []string
		all, system = c.liftSystem(all)
		if s := request.PlainText(m.System); strings.TrimSpace(s) != "" && c.from.API() != c.to {
			system = append([]string{s}, system...)
			m.System = nil
		}
		if len(m.System) == 0 && len(system) > 0 {
			m.System = rawjson.Quote(strings.Join(system, "\n\n"))
		}
		if c.to == transcript.Google {
			c.model = m.Model
			messages = c.google(all)
		} else {
			messages = c.anthropic(all)
		}
	case transcript.OpenAI:
		if s := request.PlainText(m.System); len(m.System) > 0 && strings.TrimSpace(s) != "" {
			all = append([]spoken{{
				role:  pipeline.RoleSystem,
				parts: []pipeline.Part{{Kind: pipeline.PartText, Text: s}}, item: -1,
			}}, all...)
		}
		m.System = nil
		messages = c.openAI(all)
	case transcript.OpenAIResponses:
		if s := request.PlainText(m.System); strings.TrimSpace(s) != "" {
			m.System = rawjson.Quote(s)
		}
		messages = c.responses(all)
	default:
		return nil, c.source.NoWayTo(c.to)
	}
	for i, b := range messages {
		if fixed := rawjson.WellFormed(b); fixed != nil {
			c.losses = append(c.losses, Loss{
				-1, "broken characters",
				fmt.Sprintf("message %d has halves of characters, which no API takes: U+FFFD replaces them", i),
			})
			messages[i] = fixed
		}
	}
	return messages, nil
}
