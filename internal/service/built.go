package service

import (
	"context"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// BuiltContext is a conversation's context as it was built, for callers that write a file from it or show it. Context
// returns the messages to send instead.
type BuiltContext struct {
	Meta  transcript.Meta
	Items []pipeline.ContextItem
	// Tokens is the local estimate of the messages alone.
	Tokens int
	Stats  wire.ContextStats
	// Summary is the text of the summary in effect, "" if there is none.
	Summary string

	codec transcript.Codec
}

// ReadableMessage is an entry of a context as it is sent.
type ReadableMessage struct {
	pipeline.Message
	// Place of the entry in the context, from 1.
	Place int
}

// BuildContext returns the context of a conversation as it is built now.
func (s *Service) BuildContext(ctx context.Context, ref store.ConversationRef) (BuiltContext, error) {
	view, err := s.load(ctx, ref)
	if err != nil {
		return BuiltContext{}, refused(err)
	}
	return builtOf(ctx, view)
}

func builtOf(ctx context.Context, view conversation.View) (BuiltContext, error) {
	built, err := view.Context(ctx)
	if err != nil {
		return BuiltContext{}, refused(err)
	}
	out := BuiltContext{
		Meta: view.Meta(), Items: built.Items, Tokens: built.Stats.Tokens, Stats: view.Stats(built), codec: view.Codec,
	}
	if view.Marker != nil {
		out.Summary = string(view.Summary)
	}
	return out, nil
}

// Readable decodes the entries as they are sent, with their edits, and leaves out those of which nothing is sent.
func (c BuiltContext) Readable() []ReadableMessage {
	var list []ReadableMessage
	for i, item := range c.Items {
		if m, ok := c.readable(item); ok {
			list = append(list, ReadableMessage{m, i + 1})
		}
	}
	return list
}

func (c BuiltContext) readable(item pipeline.ContextItem) (pipeline.Message, bool) {
	if made := item.Made; made != nil {
		part := pipeline.Part{Kind: pipeline.PartText, Text: made.Text, Name: made.Name}
		if made.Role == pipeline.RoleTool {
			part.Kind = pipeline.PartToolResult
			part.Content = []pipeline.Part{{Kind: pipeline.PartText, Text: made.Text}}
		}
		return pipeline.Message{Role: made.Role, Kind: made.Kind, Parts: []pipeline.Part{part}}, true
	}
	m := *item.Message
	if len(item.Edits) == 0 {
		return m, true
	}
	native, err := c.codec.Encode(m, item.Edits)
	if err != nil || native == nil {
		return m, false
	}
	edited, err := c.codec.Decode(native)
	if err != nil {
		return m, false
	}
	edited.Seq, edited.Role, edited.Kind = m.Seq, m.Role, m.Kind
	return edited, true
}
