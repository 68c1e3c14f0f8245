package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/api/wire"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/timeline"
)

const (
	// heartbeat is how often a stream without events says that it lives: proxies close silent connections after a
	// minute.
	heartbeat = 15 * time.Second
	// reconnectAfter is what a client is asked to wait before it comes back, in milliseconds.
	reconnectAfter = 1000
	// eventsAtOnce bounds one read of events.
	eventsAtOnce = 500
)

type eventsInput struct {
	ConversationPath
	After       int64  `query:"after" minimum:"0" doc:"Only events behind this number: for a first connection. A reconnecting one says so by Last-Event-ID."`
	LastEventID string `header:"Last-Event-ID" doc:"The id of the last event that the client has seen; browsers send it when they reconnect."`
}

func (s *Server) events() {
	registry := s.api.OpenAPI().Components.Schemas
	op := huma.Operation{
		OperationID: "follow-events", Method: http.MethodGet, Path: "/v1/conversations/{id}/events",
		Tags: []string{tagEvents}, Summary: "Follow what happens to a conversation",
		Description: "Server-sent events: every event from the first, or behind `Last-Event-ID`, then each as it " +
			"happens. A comment comes when nothing happened for a while. The stream ends when the server stops; " +
			"the client comes back with the id that it has seen.",
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
			return nil, problem(service.CodeInvalid, "Last-Event-ID is the number of an event of this stream, not %q",
				id).at("header.Last-Event-ID")
		}
		after = n
	}
	ref := in.ref(q)
	// The first read says whether the conversation is there, while an error can still be an answer.
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

// stream writes events until the client is gone, its key is taken back or the server stops.
func (s *Server) stream(r *http.Request, out *stream, ref store.ConversationRef, after int64, events []timeline.Event) {
	ctx := r.Context()
	follower, leave := s.hub.follow(ref, after)
	defer leave()
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	unread := len(events) == eventsAtOnce
	for {
		for _, e := range events {
			out.event(e)
			after = e.Seq
			beat.Reset(s.heartbeat)
		}
		if out.flush() != nil {
			return
		}
		if unread && len(events) > 0 {
			events, unread = s.more(ctx, ref, after)
			continue
		}
		events = nil
		select {
		case <-ctx.Done():
			return
		case <-s.stopping.Done():
			return
		case <-follower.news:
			events, unread = s.more(ctx, ref, after)
		case <-beat.C:
			out.comment("nothing new")
			if p := s.identify(r, &request{}); p != nil && p.Code == codeUnauthorized {
				return
			}
			if unread {
				events, unread = s.more(ctx, ref, after)
			}
		}
	}
}

// more reads the next events, and says whether there may be others. While the database is away there are none, and the
// next heartbeat looks again.
func (s *Server) more(ctx context.Context, ref store.ConversationRef,
	after int64,
) (events []timeline.Event, unread bool) {
	events, err := s.service.Events(ctx, ref, after, eventsAtOnce)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a stream's events cannot be read: trying again", "error", err)
	}
	return events, err != nil || len(events) == eventsAtOnce
}

// stream writes server-sent events. What goes wrong shows at the next flush.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *stream) start() {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	s.w.WriteHeader(http.StatusOK)
	s.print("retry: %d\n\n", reconnectAfter)
}

func (s *stream) event(e timeline.Event) {
	data := e.Data
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	encoded, err := json.Marshal(wire.Event{Seq: e.Seq, Kind: e.Kind, Run: e.Run, Created: e.Created.UTC(), Data: data})
	if err != nil {
		s.err = err
		return
	}
	s.print("id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, encoded)
}

func (s *stream) comment(text string) { s.print(": %s\n\n", text) }

func (s *stream) print(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format, args...)
	}
}

func (s *stream) flush() error {
	if s.err == nil {
		s.err = s.control.Flush()
	}
	return s.err
}
