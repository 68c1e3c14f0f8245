package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"precis/internal/api/wire"
	"precis/internal/store"
	"precis/internal/store/timeline"
)

// cutAfter is how long a stream whose key has ended may finish what it is writing to a client that does not read.
const cutAfter = 250 * time.Millisecond

// stream writes events until the client disconnects, its key stops working, or the server stops.
func (s *Server) stream(r *http.Request, out *stream, ref store.ConversationRef, after int64, events []timeline.Event) {
	ctx := r.Context()
	follower, leave := s.hub.follow(ref, after)
	defer leave()
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	unread := len(events) == eventsAtOnce
	ended := make(chan struct{})
	defer close(ended)
	defer context.AfterFunc(ctx, func() { out.cut(ended) })()
	for {
		for _, e := range events {
			if ctx.Err() != nil {
				return
			}
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
			if unread {
				events, unread = s.more(ctx, ref, after)
			}
		}
	}
}

// more reads the next events, and reports whether there may be others. While the database is not reachable there are
// none, and the next heartbeat tries again.
func (s *Server) more(ctx context.Context, ref store.ConversationRef,
	after int64,
) (events []timeline.Event, unread bool) {
	events, err := s.service.Events(ctx, ref, after, eventsAtOnce)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a stream's events cannot be read: trying again", "error", err)
	}
	return events, err != nil || len(events) == eventsAtOnce
}

// stream writes server-sent events. An error of a write is returned by the next flush.
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

// cut makes a write fail that still blocks after a while, unless the stream has ended.
func (s *stream) cut(ended <-chan struct{}) {
	wait := time.NewTimer(cutAfter)
	defer wait.Stop()
	select {
	case <-ended:
	case <-wait.C:
		_ = s.control.SetWriteDeadline(time.Now())
	}
}

func (s *stream) flush() error {
	if s.err == nil {
		s.err = s.control.Flush()
	}
	return s.err
}
