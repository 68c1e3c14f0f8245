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

// appendBody is a request that is sent twice.
var appendBody = `{"messages":[` + scenario.User("hello") + `]}`

func TestIdempotency(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	for _, test := range []struct {
		name string
		do   func(b *bench, conversation string)
	}{
		{"OnceAndTheSameAnswer", sendKeyedTwice},
		{"Location", keepLocation},
		{"AnotherRequest", reuseKey},
		{"OfATenant", useKeyInTwoTenants},
		{"FailuresAreTriedAgain", retryKeyedFailure},
		{"KeysThatAreNone", sendInvalidKeys},
		{"ReadsTakeNone", sendKeyedRead},
		{"NoContent", deleteTwice},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(b.on(t), c) })
	}
}

func sendKeyedTwice(b *bench, c string) {
	first := b.send("POST", c+"/messages", appendBody, idempotencyHeader, "append").is(200)
	if first.header.Get(replayedHeader) != "" {
		b.t.Error("the first answer says that it was kept")
	}
	again := b.send("POST", c+"/messages", appendBody, idempotencyHeader, "append").is(200)
	if string(again.body) != string(first.body) || again.header.Get(replayedHeader) != "true" ||
		again.header.Get("Content-Type") != first.header.Get("Content-Type") {
		b.t.Errorf("%v %s, the first was %s", again.header, again.body, first.body)
	}
	if got := b.send("GET", c, "").get("head_seq"); got != "1" {
		b.t.Errorf("head %s", got)
	}
	// Without a key it is another request.
	b.send("POST", c+"/messages", appendBody).is(200)
	if got := b.send("GET", c, "").get("head_seq"); got != "2" {
		b.t.Errorf("head %s", got)
	}
}

func keepLocation(b *bench, _ string) {
	body := `{"format":"anthropic","model":{"vendor":"a","name":"b"}}`
	first := b.send("POST", "/v1/conversations", body, idempotencyHeader, "create").is(201)
	again := b.send("POST", "/v1/conversations", body, idempotencyHeader, "create").is(201)
	if first.get("id") != again.get("id") || again.header.Get("Location") != first.header.Get("Location") ||
		first.header.Get("Location") != "/v1/conversations/"+first.get("id") {
		b.t.Errorf("%s %v", again.body, again.header)
	}
}

func reuseKey(b *bench, c string) {
	b.send("PUT", c+"/state/todo", `{"text":"a"}`, idempotencyHeader, "other").is(200)
	for _, r := range []reply{
		b.send("PUT", c+"/state/todo", `{"text":"b"}`, idempotencyHeader, "other"),
		b.send("PUT", c+"/state/plan", `{"text":"a"}`, idempotencyHeader, "other"),
		b.send("DELETE", c+"/state/todo", ``, idempotencyHeader, "other"),
	} {
		p := r.fails(http.StatusUnprocessableEntity, codeKeyReused)
		p.names(b.t, "header."+idempotencyHeader)
	}
	if got := b.send("GET", c+"/state/todo", "").get("text"); got != "a" {
		b.t.Errorf("text %q", got)
	}
}

func useKeyInTwoTenants(b *bench, _ string) {
	other := newBench(b.t, options{})
	one, two := other.newKey("one", false), other.newKey("two", false)
	body := `{"format":"anthropic","model":{"vendor":"a","name":"b"}}`
	a := other.send("POST", "/v1/conversations", body, idempotencyHeader, "k", "Authorization",
		"Bearer "+one).is(201)
	z := other.send("POST", "/v1/conversations", body, idempotencyHeader, "k", "Authorization",
		"Bearer "+two).is(201)
	if a.get("id") == z.get("id") || z.header.Get(replayedHeader) != "" {
		b.t.Error("one tenant got the other's answer")
	}
}

func retryKeyedFailure(b *bench, c string) {
	reply := b.send("POST", c+"/replies", `{}`).is(201).get("reply")
	b.send("POST", c+"/compactions", `{}`, idempotencyHeader, "compact").fails(409, service.CodeReplyOpen)
	b.send("POST", c+"/compactions", `{}`, idempotencyHeader, "compact").fails(409, service.CodeReplyOpen)
	b.send("POST", c+"/replies/"+reply+"/end", `{}`).is(200)
	b.send("POST", c+"/compactions", `{}`, idempotencyHeader, "compact").is(202)
	b.send("POST", c+"/compactions", `{"full":true}`, idempotencyHeader, "compact").fails(422, codeKeyReused)
}

func sendInvalidKeys(b *bench, c string) {
	for _, key := range []string{"", strings.Repeat("x", 256), "\xff"} {
		p := b.send("POST", c+"/messages", appendBody, idempotencyHeader, key).fails(422, service.CodeInvalid)
		p.names(b.t, "header."+idempotencyHeader)
	}
}

func sendKeyedRead(b *bench, c string) {
	for range 2 {
		if r := b.send("GET", c, "", idempotencyHeader, "read").is(200); r.header.Get(replayedHeader) != "" {
			b.t.Error("a read was kept")
		}
	}
}

func deleteTwice(b *bench, c string) {
	b.send("PUT", c+"/state/mode", `{"text":"a"}`).is(200)
	b.send("DELETE", c+"/state/mode", ``, idempotencyHeader, "delete").is(204)
	r := b.send("DELETE", c+"/state/mode", ``, idempotencyHeader, "delete").is(204)
	if r.header.Get(replayedHeader) != "true" || len(r.body) > 0 {
		b.t.Errorf("%v %q", r.header, r.body)
	}
}

// TestIdempotencyRace sends the same request from many clients at once: one executes, the others get its answer, or
// a problem that says to try again.
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

// TestAnAnswerThatWasLost loses the answer of a request as a crash would: the request is not executed again, unless
// executing it twice changes nothing.
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
