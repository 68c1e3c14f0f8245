package api

import (
	"context"
	"net/http"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type markerInput struct {
	ConversationPath
	Payload payload[wire.ReportedMarkerInput]
}

type markerOutput struct {
	Status int
	Body   wire.Marker
}

type undoOutput struct{ Body wire.Undone }

func (s *Server) reportMarker(ctx context.Context, q *request, in *markerInput) (*markerOutput, error) {
	b := in.Payload.value
	m, err := s.service.ReportMarker(ctx, in.ref(q), service.ReportedMarker{
		Summary: b.Summary, CoversTo: b.CoversTo, TokensBefore: b.TokensBefore, TokensAfter: b.TokensAfter,
	}, q.trusted)
	if err != nil {
		return nil, err
	}
	return &markerOutput{Status: http.StatusCreated, Body: m}, nil
}

func (s *Server) undo(ctx context.Context, q *request, in *ConversationPath) (*undoOutput, error) {
	u, err := s.service.Undo(ctx, in.ref(q))
	if err != nil {
		return nil, err
	}
	return &undoOutput{Body: u}, nil
}
