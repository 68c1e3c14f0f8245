package api

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/api/wire"
	"precis/internal/service"
)

const (
	// heartbeat is how often a stream without events sends a comment: proxies close silent connections after a
	// minute.
	heartbeat = 15 * time.Second
	// reconnectAfter is how long a client should wait before it reconnects, in milliseconds.
	reconnectAfter = 1000
	// eventsAtOnce is the maximum number of events of one read.
	eventsAtOnce = 500
)

type eventsInput struct {
	ConversationPath
	After       int64  `query:"after" minimum:"0" doc:"Only events after this number, for a first connection. A client that reconnects sends Last-Event-ID."`
	LastEventID string `header:"Last-Event-ID" limit:"cursor" doc:"The id of the last event that the client received. Browsers send it when they reconnect."`
}

func (s *Server) events() {
	registry := s.api.OpenAPI().Components.Schemas
	op := huma.Operation{
		OperationID: "follow-events", Method: http.MethodGet, Path: "/v1/conversations/{id}/events",
		Tags: []string{tagEvents}, Summary: "Follow what happens to a conversation",
		Description: "Server-sent events: every event from the first, or after `Last-Event-ID`, then each as it " +
			"happens. When nothing happens for a while the server sends a comment. The stream ends when the " +
			"server stops; " +
			"the client reconnects with the last id that it received.",
	}
	register(s, op, traits{stream: true}, s.followEvents)
	operationAt(s.api.OpenAPI(), op).Responses["200"] = &huma.Response{
		Description: "The stream. Each event's data is one Event.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: registry.Schema(reflect.TypeFor[wire.Event](),
			true, "")}},
	}
}

func (s *Server) followEvents(ctx context.Context, q *request, in *eventsInput) (*huma.StreamResponse, error) {
	after := in.After
	if id := strings.TrimSpace(in.LastEventID); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return nil, problem(service.CodeInvalid,
				"Last-Event-ID is %q: it must be the id of an event of this stream",
				id).at("header.Last-Event-ID")
		}
		after = n
	}
	ref := in.ref(q)
	// The first read finds out whether the conversation exists, while the answer can still be a problem document.
	first, err := s.service.Events(ctx, ref, after, eventsAtOnce)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		stream := stream{w: w, control: http.NewResponseController(w)}
		stream.start()
		s.stream(r, &stream, ref, after, first)
	}}, nil
}
