package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"precis/internal/api/wire"
	"precis/internal/service"
)

// What is wrong with a body is said with the place of it.
// badRequest is a request that cannot be right. C in its path is a conversation.
type badRequest struct {
	name, method, path, body string
	status                   int
	location, says           string
}

var badRequests = []badRequest{
	{"NoJSON", "POST", "/v1/conversations", `{"format":`, 400, "body", "byte 10"},
	{"TwoValues", "POST", "/v1/conversations", `{} {}`, 400, "body", "byte"},
	{
		"Latin1", "POST", "C/messages", "{\"messages\":[{\"role\":\"user\",\"content\":\"caf\xe9\"}]}", 400,
		"body", "UTF-8 at byte 42",
	},
	{"List", "POST", "/v1/conversations", `[]`, 422, "body", "object"},
	{"Empty", "POST", "/v1/conversations", ``, 422, "body", "format"},
	{"Blank", "POST", "/v1/conversations", "          ", 422, "body", "format"},
	{
		"WrongType", "POST", "/v1/conversations", `{"format":7,"model":{"vendor":"a","name":"b"}}`, 422,
		"body.format", "string",
	},
	{
		"Nested", "POST", "/v1/conversations",
		`{"format":"anthropic","model":{"vendor":"a","name":"b","context_window":-1}}`, 422,
		"body.model.context_window", ">= 0",
	},
	{
		"Unknown", "POST", "/v1/conversations",
		`{"format":"anthropic","model":{"vendor":"a","name":"b"},"modle":1}`, 422, "body.modle", "unexpected",
	},
	{
		"Case", "POST", "/v1/conversations",
		`{"Format":"anthropic","format":"anthropic","model":{"vendor":"a","name":"b"}}`, 422, "body.Format",
		"unexpected",
	},
	{
		"NullWhereNeeded", "POST", "/v1/conversations", `{"format":null,"model":{"vendor":"a","name":"b"}}`, 422,
		"body.format", "string",
	},
	{
		"Settings", "POST", "/v1/conversations",
		`{"format":"anthropic","model":{"vendor":"a","name":"b"},"settings":[1]}`, 422, "body.settings", "object",
	},
	{"InAList", "POST", "C/messages", `{"messages":[],"meta":[{},{"id":7}]}`, 422, "body.meta[1].id", "string"},
	{"NotAList", "POST", "C/messages", `{"messages":{}}`, 422, "body.messages", "array"},
	{"BigNumber", "POST", "C/messages", `{"messages":[],"if_seq":1e30}`, 422, "body.if_seq", "number"},
	{"Fraction", "POST", "C/messages", `{"messages":[],"if_seq":1.5}`, 422, "body.if_seq", "integer"},
	{"HalfAPair", "POST", "C/compactions", `{"focus":"a\ud800b"}`, 422, "body.focus", "surrogate"},
	{"HalfAPairLow", "PUT", "C/state/todo", `{"text":"\udc00"}`, 422, "body.text", "surrogate"},
	{"Query", "GET", "C/messages?limit=0", ``, 422, "query.limit", ">= 1"},
	{"QueryNumber", "GET", "C/messages?after=x", ``, 422, "query.after", "integer"},
	{"QueryKind", "GET", "/v1/runs?error_kind=overflow", ``, 422, "query.error_kind", "input_tokens_exceeded"},
	{"QueryTime", "GET", "/v1/runs?since=yesterday", ``, 422, "query.since", ""},
	{"QueryEnum", "GET", "/v1/usage?group_by=week", ``, 422, "query.group_by", "tenant"},
	{"Include", "GET", "/v1/runs/x?include=everything", ``, 422, "query.include", "everything"},
	{"LastEvent", "GET", "C/events?after=-1", ``, 422, "query.after", ">= 0"},
}

func TestBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	for _, test := range badRequests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := b.on(t).send(test.method, strings.Replace(test.path, "C", c, 1), test.body)
			p := r.fails(test.status, service.CodeInvalid)
			p.names(t, test.location)
			if !strings.Contains(p.Detail, test.says) {
				t.Errorf("detail %q does not say %q", p.Detail, test.says)
			}
			if len(r.body) > 2000 {
				t.Errorf("the answer has %d bytes: it must not hold the request", len(r.body))
			}
		})
	}

	t.Run("ContentType", func(t *testing.T) {
		t.Parallel()
		b := b.on(t)
		for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", ";;"} {
			b.send("POST", "/v1/conversations", `{}`, "Content-Type", ct).fails(http.StatusUnsupportedMediaType,
				codeMediaType)
		}
		b.send("POST", "/v1/conversations", `{}`, "Content-Encoding", "gzip").fails(http.StatusUnsupportedMediaType,
			codeMediaType)
		b.send("POST", "/v1/conversations", `{}`, "Content-Type", "application/json; charset=utf-8").fails(422,
			service.CodeInvalid)
		b.send("POST", "/v1/conversations", `{}`, "Content-Type", "application/merge-patch+json").fails(422,
			service.CodeInvalid)
	})
	t.Run("Accept", func(t *testing.T) {
		t.Parallel()
		b := b.on(t)
		b.send("GET", c, "", "Accept", "text/html").fails(http.StatusNotAcceptable, codeNotAcceptable)
		for _, accept := range []string{"*/*", "text/html, application/json;q=0.5", "application/problem+json"} {
			b.send("GET", c, "", "Accept", accept).is(200)
		}
	})
	t.Run("NullIsLeftOut", func(t *testing.T) {
		t.Parallel()
		b := b.on(t)
		b.send("POST", "/v1/conversations", `{"id":null,"format":"anthropic","model":{"vendor":"a","name":"b",`+
			`"context_window":null},"system":null,"tools":null,"settings":null,"metadata":null}`).is(201)
	})
}

func TestLoneSurrogates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`"\ud83d\ude00"`: false, `"\uD83D\uDE00"`: false, `"\ud83d"`: true, `"\ude00\ud83d"`: true,
		`"\ud83d\ud83d\ude00"`: true, `"\\ud83d"`: false, `"\\\ud83d"`: true, `"\u0041\ufffd"`: false,
		`"\ud83d\\ude00"`: true, `"\ud83dx"`: true, `""`: false,
	} {
		if got := loneSurrogate([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
		// The standard library agrees: it puts U+FFFD in the place of half a pair.
		var decoded string
		if err := json.Unmarshal([]byte(text), &decoded); err != nil {
			t.Fatal(err)
		}
		if bad := strings.Contains(decoded, "\ufffd") && !strings.Contains(text, "fffd"); bad != want {
			t.Errorf("%s decodes to %q", text, decoded)
		}
	}
}

func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"a":1}],"meta":[{"id":"x"}],"if_seq":1}`, `{"messages":null}`, `{"meta":[null]}`,
		`{"usage":"\ud800"}`, `[]`, `{"messages":[1,"a",[],{}]}`,
	} {
		f.Add([]byte(seed))
	}
	s := New(Options{Service: &service.Service{}})
	f.Fuzz(func(t *testing.T, body []byte) {
		var p payload[wire.NewMessagesInput]
		errs := p.read(s.api.OpenAPI().Components.Schemas, body)
		if len(errs) == 0 && len(strings.TrimSpace(string(body))) > 0 && !json.Valid(body) {
			t.Errorf("%q was taken", body)
		}
		for i, m := range p.value.Messages {
			if len(errs) == 0 && !strings.Contains(string(body), string(m)) {
				t.Errorf("message %d, %q, is not in the body as it stands", i, m)
			}
		}
		_ = fmt.Sprint(errs)
	})
}
