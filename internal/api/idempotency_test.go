package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"precis/internal/service"
	"precis/internal/testkit/scenario"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	body := `{"messages":[` + scenario.User("hello") + `]}`

	t.Run("OnceAndTheSameAnswer", func(t *testing.T) {
		b := b.on(t)
		first := b.send("POST", c+"/messages", body, idempotencyHeader, "append").is(200)
		if first.header.Get(replayedHeader) != "" {
			t.Error("the first answer says that it was kept")
		}
		again := b.send("POST", c+"/messages", body, idempotencyHeader, "append").is(200)
		if string(again.body) != string(first.body) || again.header.Get(replayedHeader) != "true" ||
			again.header.Get("Content-Type") != first.header.Get("Content-Type") {
			t.Errorf("%v %s, the first was %s", again.header, again.body, first.body)
		}
		if got := b.send("GET", c, "").get("head_seq"); got != "1" {
			t.Errorf("head %s", got)
		}
		// Without a key it is another request.
		b.send("POST", c+"/messages", body).is(200)
		if got := b.send("GET", c, "").get("head_seq"); got != "2" {
			t.Errorf("head %s", got)
		}
	})
	t.Run("Location", func(t *testing.T) {
		b := b.on(t)
		body := `{"format":"anthropic","model":{"vendor":"a","name":"b"}}`
		first := b.send("POST", "/v1/conversations", body, idempotencyHeader, "create").is(201)
		again := b.send("POST", "/v1/conversations", body, idempotencyHeader, "create").is(201)
		if first.get("id") != again.get("id") || again.header.Get("Location") != first.header.Get("Location") ||
			first.header.Get("Location") != "/v1/conversations/"+first.get("id") {
			t.Errorf("%s %v", again.body, again.header)
		}
	})
	t.Run("AnotherRequest", func(t *testing.T) {
		b := b.on(t)
		b.send("PUT", c+"/state/todo", `{"text":"a"}`, idempotencyHeader, "other").is(200)
		for _, r := range []reply{
			b.send("PUT", c+"/state/todo", `{"text":"b"}`, idempotencyHeader, "other"),
			b.send("PUT", c+"/state/plan", `{"text":"a"}`, idempotencyHeader, "other"),
			b.send("DELETE", c+"/state/todo", ``, idempotencyHeader, "other"),
		} {
			p := r.fails(http.StatusUnprocessableEntity, codeKeyReused)
			p.names(t, "header."+idempotencyHeader)
		}
		if got := b.send("GET", c+"/state/todo", "").get("text"); got != "a" {
			t.Errorf("text %q", got)
		}
	})
	t.Run("OfATenant", func(t *testing.T) {
		other := newBench(t, options{})
		one, two := other.newKey("one", false), other.newKey("two", false)
		body := `{"format":"anthropic","model":{"vendor":"a","name":"b"}}`
		a := other.send("POST", "/v1/conversations", body, idempotencyHeader, "k", "Authorization",
			"Bearer "+one).is(201)
		z := other.send("POST", "/v1/conversations", body, idempotencyHeader, "k", "Authorization",
			"Bearer "+two).is(201)
		if a.get("id") == z.get("id") || z.header.Get(replayedHeader) != "" {
			t.Error("one tenant got the other's answer")
		}
	})
	t.Run("FailuresAreTriedAgain", func(t *testing.T) {
		b := b.on(t)
		reply := b.send("POST", c+"/replies", `{}`).is(201).get("reply")
		b.send("POST", c+"/compactions", `{}`, idempotencyHeader, "compact").fails(409, service.CodeReplyOpen)
		b.send("POST", c+"/compactions", `{}`, idempotencyHeader, "compact").fails(409, service.CodeReplyOpen)
		b.send("POST", c+"/replies/"+reply+"/end", `{}`).is(200)
		b.send("POST", c+"/compactions", `{}`, idempotencyHeader, "compact").is(202)
		b.send("POST", c+"/compactions", `{"full":true}`, idempotencyHeader, "compact").fails(422, codeKeyReused)
	})
	t.Run("KeysThatAreNone", func(t *testing.T) {
		b := b.on(t)
		for _, key := range []string{"", strings.Repeat("x", 256), "\xff"} {
			p := b.send("POST", c+"/messages", body, idempotencyHeader, key).fails(422, service.CodeInvalid)
			p.names(t, "header."+idempotencyHeader)
		}
	})
	t.Run("ReadsTakeNone", func(t *testing.T) {
		b := b.on(t)
		for range 2 {
			if r := b.send("GET", c, "", idempotencyHeader, "read").is(200); r.header.Get(replayedHeader) != "" {
				t.Error("a read was kept")
			}
		}
	})
	t.Run("NoContent", func(t *testing.T) {
		b := b.on(t)
		b.send("PUT", c+"/state/mode", `{"text":"a"}`).is(200)
		b.send("DELETE", c+"/state/mode", ``, idempotencyHeader, "delete").is(204)
		r := b.send("DELETE", c+"/state/mode", ``, idempotencyHeader, "delete").is(204)
		if r.header.Get(replayedHeader) != "true" || len(r.body) > 0 {
			t.Errorf("%v %q", r.header, r.body)
		}
	})
}

// The same request from many clients at once is done once; all get its answer, or are told to come back for it.
func TestIdempotencyRace(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	for round := range 5 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		bodies := map[string]int{}
		for range 8 {
			wg.Go(func() {
				for {
					r, err := b.try("POST", c+"/messages", `{"messages":[`+scenario.User("x")+`]}`, idempotencyHeader,
						fmt.Sprint("k", round))
					if err != nil {
						t.Error(err)
						return
					}
					if r.status == http.StatusConflict {
						r.fails(409, codeKeyBusy)
						continue
					}
					mu.Lock()
					bodies[string(r.is(200).body)]++
					mu.Unlock()
					return
				}
			})
		}
		wg.Wait()
		if got := b.send("GET", c, "").get("head_seq"); got != fmt.Sprint(round+1) || len(bodies) != 1 {
			t.Fatalf("round %d: head %s, %d different answers", round, got, len(bodies))
		}
	}
}

// A server that dies between the effect of a request and its answer does not do it again; one that can be repeated
// without harm is.
func TestAnAnswerThatWasLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	body := `{"messages":[` + scenario.User("hello") + `]}`
	lose := func(key string) {
		t.Helper()
		tag, err := database(t, b).Exec(t.Context(),
			`UPDATE idempotency_keys SET answered_at = NULL, status = NULL, body = NULL WHERE key = $1`, key)
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%d rows, %v", tag.RowsAffected(), err)
		}
	}
	b.send("POST", c+"/messages", body, idempotencyHeader, "append").is(200)
	lose("append")
	b.send("POST", c+"/messages", body, idempotencyHeader, "append").fails(409, codeKeyLost)
	if got := b.send("GET", c, "").get("head_seq"); got != "1" {
		t.Errorf("head %s", got)
	}
	b.send("PUT", c+"/state/todo", `{"text":"a"}`, idempotencyHeader, "put").is(200)
	lose("put")
	b.send("PUT", c+"/state/todo", `{"text":"a"}`, idempotencyHeader, "put").is(200)
}
