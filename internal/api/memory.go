package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type listSegmentsInput struct {
	ConversationPath
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Maximum number of entries of a page."`
	Cursor string `query:"cursor" limit:"cursor" doc:"next of the previous page."`
}

type listSegmentsOutput struct{ Body wire.Segments }

type segmentInput struct {
	ConversationPath
	Name string `path:"name" limit:"note_name" doc:"INDEX.md, segment_0001.md…, or the name of a note."`
}

type segmentOutput struct{ Body wire.Segment }

type addNoteInput struct {
	ConversationPath
	Payload payload[wire.NewNoteInput]
}

type addNoteOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     wire.MemoryEntry
}

type searchInput struct {
	ConversationPath
	Query  string `query:"q" limit:"query" required:"true" doc:"Words that must all match, \"a phrase\", OR between alternatives, -word for a word that must not match. Paths and numbers match as written. If no whole word matches, the search looks inside of words."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"Maximum number of hits of a page."`
	Cursor string `query:"cursor" limit:"cursor" doc:"next of the previous page."`
}

type searchOutput struct{ Body wire.MemoryFound }

func (s *Server) memory() {
	path := "/v1/conversations/{id}/segments"
	register(s, huma.Operation{
		OperationID: "list-segments", Method: http.MethodGet, Path: path, Tags: []string{tagMemory},
		Summary: "List segments and notes",
		Description: "Segments have the messages that compactions covered, word for " +
			"word. Neither a compaction nor an undo removes them. Empty until something is compacted or noted.",
	}, traits{}, func(ctx context.Context, q *request, in *listSegmentsInput) (*listSegmentsOutput, error) {
		page, err := s.service.ListSegments(ctx, in.ref(q), in.Limit, in.Cursor)
		return &listSegmentsOutput{page}, err
	})
	register(s, huma.Operation{
		OperationID: "get-segment", Method: http.MethodGet, Path: path + "/{name}", Tags: []string{tagMemory},
		Summary: "Read a segment, a note or INDEX.md",
	}, traits{}, func(ctx context.Context, q *request, in *segmentInput) (*segmentOutput, error) {
		g, err := s.service.ReadSegment(ctx, in.ref(q), in.Name)
		return &segmentOutput{g}, err
	})
	register(s, huma.Operation{
		OperationID: "add-note", Method: http.MethodPost, Path: path, Tags: []string{tagMemory},
		DefaultStatus: http.StatusCreated,
		Summary:       "Leave a note",
		Description: "The note is listed with the segments, and the search finds it. The same name and text again is " +
			"200 and changes nothing.",
	}, traits{also: http.StatusOK, codes: []wire.Code{service.CodeConflict}},
		func(ctx context.Context, q *request, in *addNoteInput) (*addNoteOutput, error) {
			n := in.Payload.value
			e, created, err := s.service.AddNote(ctx, in.ref(q),
				service.NewNote{Name: n.Name, Text: n.Text, Replace: n.Replace})
			if err != nil {
				return nil, err
			}
			out := &addNoteOutput{
				Status:   http.StatusOK,
				Location: "/v1/conversations/" + url.PathEscape(in.ID) + "/segments/" + e.Name, Body: e,
			}
			if created {
				out.Status = http.StatusCreated
			}
			return out, nil
		})
	register(s, huma.Operation{
		OperationID: "search", Method: http.MethodGet, Path: "/v1/conversations/{id}/search", Tags: []string{tagMemory},
		Summary:     "Search the transcript and the notes",
		Description: "Searches all messages, also those that no summary covers.",
	}, traits{}, func(ctx context.Context, q *request, in *searchInput) (*searchOutput, error) {
		found, err := s.service.Search(ctx, in.ref(q), in.Query, in.Limit, in.Cursor)
		return &searchOutput{found}, err
	})
}
