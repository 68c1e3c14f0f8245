package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"precis/internal/memory"
	"precis/internal/service"
)

// tools are the tools of one server.
type tools struct{ Options }

var (
	no       = false
	readOnly = &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}
)

// The tools, as clients list them.
var (
	toolSearch = sdk.Tool{
		Name: "search_transcript", Annotations: readOnly, Title: "Search what was said",
		Description: `Finds messages and notes of the conversation, also messages that a summary replaced. All words ` +
			`of the query must match; "a phrase" in double quotes, OR between alternatives, -word for a word that ` +
			`must not match. File paths, identifiers, numbers and text in any language match as written.`,
	}
	toolList = sdk.Tool{
		Name: "list_segments", Annotations: readOnly, Title: "List what was compacted",
		Description: "Lists the segments, which hold the messages that summaries replaced, with their message " +
			"numbers, times, " +
			"first request and files; and the notes.",
	}
	toolSegment = sdk.Tool{
		Name: "read_segment", Annotations: readOnly, Title: "Read a segment or a note",
		Description: "Reads one entry of list_segments by its name: up to 64 KB of messages word for word, a " +
			"note, or INDEX.md.",
	}
	toolMessages = sdk.Tool{
		Name: "read_messages", Annotations: readOnly, Title: "Read messages",
		Description: "Reads messages by their numbers, word for word. What does not fit is on the next page, " +
			"also the rest of a long message: the answer says how to read it.",
	}
	toolSummary = sdk.Tool{
		Name: "last_summary", Annotations: readOnly, Title: "Read the summary",
		Description: "Returns the summary that stands for the older part of the conversation, and which messages it " +
			"covers.",
	}
	toolNote = sdk.Tool{
		Name: "add_note", Annotations: &sdk.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
		Title: "Leave a note", Description: "Writes a note that survives every compaction and that " +
			"search_transcript finds. The context does not change.",
	}
)

// target names the conversation of a call, on a server that is not bound to one.
type target struct {
	Conversation string `json:"conversation,omitempty" jsonschema:"Id of the conversation."`
}

type searchInput struct {
	target
	Query  string `json:"query" jsonschema:"What to look for."`
	Limit  int    `json:"limit,omitempty" jsonschema:"Maximum number of hits, 1 to 100. Default 20."`
	Cursor string `json:"cursor,omitempty" jsonschema:"Cursor of the next page, from the previous answer."`
}

func (t tools) search(ctx context.Context, in searchInput) (string, error) {
	found, err := t.Service.Search(ctx, t.ref(in.Conversation), in.Query, in.Limit, in.Cursor)
	if err != nil {
		return "", err
	}
	return foundText(found, in.Query), nil
}

type listInput struct {
	target
	Cursor string `json:"cursor,omitempty" jsonschema:"Cursor of the next page, from the previous answer."`
}

func (t tools) list(ctx context.Context, in listInput) (string, error) {
	page, err := t.Service.ListSegments(ctx, t.ref(in.Conversation), 0, in.Cursor)
	if err != nil {
		return "", err
	}
	return listText(page), nil
}

type segmentInput struct {
	target
	Name string `json:"name" jsonschema:"segment_0001.md, INDEX.md, or the name of a note."`
}

func (t tools) segment(ctx context.Context, in segmentInput) (string, error) {
	g, err := t.Service.ReadSegment(ctx, t.ref(in.Conversation), strings.TrimSpace(in.Name))
	return segmentText(g.MemoryEntry, g.Text), err
}

type messagesInput struct {
	target
	From     int64 `json:"from" jsonschema:"Number of the first message, from 1."`
	To       int64 `json:"to,omitempty" jsonschema:"Number of the last message. Default: as many as fit."`
	Offset   int   `json:"offset,omitempty" jsonschema:"Byte of the first message's text to begin at, from a previous answer."`
	MaxBytes int   `json:"max_bytes,omitempty" jsonschema:"Maximum size of the answer, up to 65536. Default 16384."`
}

func (t tools) messages(ctx context.Context, in messagesInput) (string, error) {
	switch {
	case in.From < 1:
		return "", &service.Error{
			Code: service.CodeInvalid, Field: "from",
			Detail: "is below 1: messages are numbered from 1",
		}
	case in.Offset < 0 || in.MaxBytes < 0 || in.To < 0:
		return "", &service.Error{Code: service.CodeInvalid, Detail: "to, offset and max_bytes must not be negative"}
	case in.MaxBytes > 0 && in.MaxBytes < 1024:
		in.MaxBytes = 1024
	}
	page, err := t.Service.ReadPage(ctx, t.ref(in.Conversation), memory.Place{Seq: in.From, Offset: in.Offset}, in.To,
		in.MaxBytes)
	if err != nil {
		return "", err
	}
	return pageText(page), nil
}

type summaryInput struct{ target }

func (t tools) summary(ctx context.Context, in summaryInput) (string, error) {
	s, err := t.Service.LastSummary(ctx, t.ref(in.Conversation))
	if err != nil {
		return "", err
	}
	return summaryText(s), nil
}

type noteInput struct {
	target
	Text    string `json:"text" jsonschema:"The note, at most 256 KB."`
	Name    string `json:"name,omitempty" jsonschema:"Letters, digits, dot, _ and -. Default: the next free name, such as note_0001.md."`
	Replace bool   `json:"replace,omitempty" jsonschema:"Replace an existing note of that name."`
}

func (t tools) note(ctx context.Context, in noteInput) (string, error) {
	e, created, err := t.Service.AddNote(ctx, t.ref(in.Conversation),
		service.NewNote{Name: strings.TrimSpace(in.Name), Text: in.Text, Replace: in.Replace})
	if err != nil {
		return "", err
	}
	return noteText(e, created), nil
}
