package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/timeline"
	"precis/internal/testkit/scenario"
)

// following is an open stream of events.
type following struct {
	t      *testing.T
	events chan wire.Event
	// comments counts heartbeats; ended is closed when the server has ended the stream.
	comments chan string
	ended    chan struct{}
	stop     context.CancelFunc
}

func (b *bench) follow(path string, headers ...string) *following {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.key != "" {
		req.Header.Set("Authorization", "Bearer "+b.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("status %d, type %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	f := &following{
		t: b.t, events: make(chan wire.Event, 1000), comments: make(chan string, 1000),
		ended: make(chan struct{}), stop: cancel,
	}
	b.t.Cleanup(cancel)
	go func() {
		defer close(f.ended)
		defer func() { _ = res.Body.Close() }()
		f.read(bufio.NewScanner(res.Body))
	}()
	return f
}

func (f *following) read(lines *bufio.Scanner) {
	var id, event, data string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			data = value
		case "":
			if value != "" {
				f.comments <- value
				continue
			}
			if data == "" {
				continue
			}
			var e wire.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil || fmt.Sprint(e.Seq) != id ||
				string(e.Kind) != event {
				f.t.Errorf("event %s %s %s, %v", id, event, data, err)
			}
			f.events <- e
			id, event, data = "", "", ""
		}
	}
}

func (f *following) next() wire.Event {
	f.t.Helper()
	select {
	case e := <-f.events:
		return e
	case <-time.After(20 * time.Second):
		f.t.Fatal("no event came")
	}
	return wire.Event{}
}

func (b *bench) event(ref store.ConversationRef, n int) {
	b.t.Helper()
	for i := range n {
		if _, err := b.Store.Timeline.Append(b.t.Context(), ref,
			timeline.Event{
				Kind: timeline.Warning,
				Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"<&>"}`, i)),
			}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	ref := store.ConversationRef{Tenant: store.DefaultTenant, ID: "c"}
	b.event(ref, 2)

	all := b.follow(c + "/events")
	for want := int64(1); want <= 2; want++ {
		if e := all.next(); e.Seq != want || e.Kind != timeline.Warning || e.Created.IsZero() ||
			!strings.Contains(string(e.Data), `"n"`) {
			t.Errorf("%+v", e)
		}
	}
	later := b.follow(c+"/events", "Last-Event-ID", "2")
	b.event(ref, 1)
	for _, f := range []*following{all, later} {
		if e := f.next(); e.Seq != 3 {
			t.Errorf("event %d, want 3", e.Seq)
		}
	}

	t.Run("Resume", func(t *testing.T) {
		b := b.on(t)
		later.stop()
		<-later.ended
		b.event(ref, 3)
		again := b.follow(c+"/events?after=1", "Last-Event-ID", "3") // what the client has seen counts more
		for want := int64(4); want <= 6; want++ {
			if e := again.next(); e.Seq != want {
				t.Errorf("event %d, want %d", e.Seq, want)
			}
		}
		if e := b.follow(c + "/events?after=5").next(); e.Seq != 6 {
			t.Errorf("event %d, want 6", e.Seq)
		}
	})
	t.Run("ManyAtOnce", func(t *testing.T) {
		b := b.on(t)
		busy := store.ConversationRef{Tenant: store.DefaultTenant, ID: "busy"}
		path := b.create("busy", "")
		b.event(busy, 2*eventsAtOnce+7)
		f := b.follow(path + "/events")
		for want := int64(1); want <= 2*eventsAtOnce+7; want++ {
			if e := f.next(); e.Seq != want {
				t.Fatalf("event %d, want %d", e.Seq, want)
			}
		}
	})
	t.Run("Heartbeat", func(t *testing.T) {
		select {
		case <-all.comments:
		case <-time.After(10 * time.Second):
			t.Error("a silent stream says nothing")
		}
	})
	t.Run("Refused", func(t *testing.T) {
		b := b.on(t)
		b.send("GET", "/v1/conversations/unknown/events", "").fails(404, service.CodeNotFound)
		p := b.send("GET", c+"/events", "", "Last-Event-ID", "x").fails(422, service.CodeInvalid)
		p.names(t, "header.Last-Event-ID")
	})
	t.Run("NobodyFollows", func(t *testing.T) {
		// What looks for events ends with the last follower.
		quiet := newBench(t, options{})
		path := quiet.create("c", "")
		f := quiet.follow(path + "/events")
		running := func() bool {
			quiet.server.hub.mu.Lock()
			defer quiet.server.hub.mu.Unlock()
			return quiet.server.hub.stop != nil
		}
		within(t, 5*time.Second, "the hub looks", running)
		f.stop()
		within(t, 5*time.Second, "the hub rests", func() bool { return !running() })
	})
}

// A thousand followers of many conversations cost one query a look.
func TestManyFollowers(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	const conversations, each = 20, 50
	var followers []*follower
	for i := range conversations {
		b.create(fmt.Sprint("c", i), "")
		for range each {
			f, leave := b.server.hub.follow(store.ConversationRef{Tenant: store.DefaultTenant, ID: fmt.Sprint("c", i)},
				0)
			defer leave()
			followers = append(followers, f)
		}
	}
	b.event(store.ConversationRef{Tenant: store.DefaultTenant, ID: "c7"}, 1)
	for i, f := range followers {
		if i/each == 7 {
			select {
			case <-f.news:
			case <-time.After(10 * time.Second):
				t.Fatal("a follower was not told")
			}
			continue
		}
		select {
		case <-f.news:
			t.Fatalf("a follower of c%d was told of c7's event", i/each)
		default:
		}
	}
}

func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	t.Run("WithTheServer", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, options{})
		f := b.follow(b.create("c", "") + "/events")
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-f.ended:
		case <-time.After(10 * time.Second):
			t.Error("the stream outlives the server")
		}
	})
	t.Run("WithTheKey", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, options{})
		b.key = b.newKey("default", false)
		f := b.follow(b.create("c", "") + "/events")
		for _, k := range must(b.Store.Keys.List(t.Context(), "default")) {
			if err := b.Store.Keys.Revoke(t.Context(), "default", k.ID); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-f.ended:
		case <-time.After(10 * time.Second):
			t.Error("the stream outlives its key")
		}
	})
	t.Run("AtTheLimit", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, options{config: func(c *config.Config) { c.HTTP.MaxEventStreams = 1 }})
		path := b.create("c", "") + "/events"
		f := b.follow(path)
		b.send("GET", path, "").fails(429, codeRateLimited)
		f.stop()
		<-f.ended
		within(t, 5*time.Second, "the place is free again", func() bool {
			b.server.limits.mu.Lock()
			defer b.server.limits.mu.Unlock()
			return b.server.limits.tenants[store.DefaultTenant].streams == 0
		})
		b.follow(path)
	})
}

// A compaction as a follower sees it.
func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{worker: true})
	c := b.create("c", "")
	b.add(c, scenario.Turns(3, 400)...)
	f := b.follow(c + "/events")
	run := b.send("POST", c+"/compactions", `{"wait_seconds":60,"summarizer":"digest"}`).is(200).get("id")
	b.send("DELETE", c+"/marker", "").is(200)
	var kinds []timeline.Kind
	for !slices.Contains(kinds, timeline.Undone) {
		e := f.next()
		if e.Run != run {
			t.Errorf("event %+v is of another run than %s", e, run)
		}
		kinds = append(kinds, e.Kind)
	}
	if kinds[0] != timeline.Trigger || !slices.Contains(kinds, timeline.Applied) {
		t.Errorf("events %q", kinds)
	}
}
