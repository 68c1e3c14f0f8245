package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"precis/internal/service"
	"precis/internal/store/segments"
	"precis/internal/testkit/scenario"
)

// What a compaction covered is read and searched over HTTP, notes are left, and another tenant meets none of it.
func TestMemoryOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.key = b.newKey("default", true)
	stranger := b.newKey("mallory", true)
	b.create("a/b c", "")
	c := "/v1/conversations/" + url.PathEscape("a/b c")
	if got := b.send("GET", c+"/segments", "").is(200); got.get("segments") != "[]" || got.get("next") != "" {
		t.Errorf("%s", got.body)
	}
	b.send("GET", c+"/segments/INDEX.md", "").fails(404, service.CodeNotFound)
	b.add(c, scenario.User("Where is foo_bar/baz.go?"), scenario.Assistant("In lib, see 壓縮對話 and 1,234.56"),
		scenario.User("Thanks, number 7"), scenario.Assistant("ok"))
	b.send("POST", c+"/markers", `{"summary":`+scenario.User("SUM")+`,"covers_to":2}`).is(201)

	list := b.send("GET", c+"/segments", "").is(200)
	if list.get("segments", 0, "name") != "INDEX.md" || list.get("segments", 1, "name") != "segment_0001.md" ||
		list.get("segments", 1, "covers_to") != "2" ||
		list.get("segments", 1, "request") != "Where is foo_bar/baz.go?" ||
		list.get("segments", 1, "kind") != "segment" {
		t.Errorf("%s", list.body)
	}
	if got := b.send("GET", c+"/segments/segment_0001.md", "").is(200); !strings.Contains(got.get("text"),
		"<message seq=\"1\" role=\"user\">\nWhere is foo_bar/baz.go?\n</message>") {
		t.Errorf("%s", got.body)
	}
	if got := b.send("GET", c+"/segments/INDEX.md", "").is(200); !strings.Contains(got.get("text"),
		"- segment_0001.md: messages 1 to 2") {
		t.Errorf("%s", got.body)
	}

	// Notes.
	note := b.send("POST", c+"/segments", `{"name":"plan.md","text":"first foo_bar, then the rest"}`).is(201)
	if note.get("kind") != "note" || note.header.Get("Location") != c+"/segments/plan.md" {
		t.Errorf("%v %s", note.header, note.body)
	}
	b.send("GET", note.header.Get("Location"), "").is(200)
	b.send("POST", c+"/segments", `{"name":"plan.md","text":"first foo_bar, then the rest"}`).is(200)
	b.send("POST", c+"/segments", `{"name":"plan.md","text":"other"}`).fails(409, service.CodeConflict)
	if got := b.send("POST", c+"/segments",
		`{"name":"plan.md","text":"other","replace":true}`).is(200); got.get("bytes") != "5" {
		t.Errorf("%s", got.body)
	}
	for body, field := range map[string]string{
		`{"name":"segment_0001.md","text":"x"}`:         "body.name",
		`{"name":"INDEX.md","text":"x","replace":true}`: "body.name", `{"name":"../x","text":"x"}`: "body.name",
		`{"text":"  "}`: "body.text", `{}`: "body", `{"text":7}`: "body.text",
	} {
		p := b.send("POST", c+"/segments", body).fails(422, service.CodeInvalid)
		p.names(t, field)
	}
	large := b.send("POST", c+"/segments", `{"text":"`+strings.Repeat("x", segments.MaxNoteBytes+1)+`"}`).fails(413,
		service.CodeTooLarge)
	large.names(t, "body.text")
	// The same request with the same key leaves one note.
	var names []string
	for range 2 {
		names = append(names, b.send("POST", c+"/segments", `{"text":"unnamed"}`, "Idempotency-Key",
			"k1").is(201).get("name"))
	}
	if names[0] != "note_0001.md" || names[1] != names[0] {
		t.Errorf("%v", names)
	}
	cursor, seen := "", 0
	for {
		page := b.send("GET", c+"/segments?limit=1&cursor="+cursor, "").is(200)
		seen++
		if cursor = page.get("next"); cursor == "" {
			break
		}
	}
	if seen != 4 {
		t.Errorf("%d pages", seen)
	}
	b.send("GET", c+"/segments?cursor=nope", "").fails(422, service.CodeInvalid)

	// Search.
	for q, want := range map[string]string{
		"foo_bar/baz.go": `1 user true segment_0001.md Where is **foo_bar/baz.go**?`,
		"對話":             `2 assistant true segment_0001.md In lib, see 壓縮**對話** and 1,234.56`,
		"1,234.56":       `2 assistant true segment_0001.md In lib, see 壓縮對話 and **1,234.56**`,
		`"number 7"`:     `3 user false  Thanks, **number 7**`,
		"other":          `0  false plan.md **other**`,
		"hank":           `3 user false  T**hank**s, number 7`,
	} {
		got := b.send("GET", c+"/search?q="+url.QueryEscape(q), "").is(200)
		var found struct {
			Match string
			Hits  []struct {
				Seq                    int64
				Role, Segment, Snippet string
				Covered, Note          bool
				Rank                   float64
			}
		}
		got.into(&found)
		if len(found.Hits) != 1 {
			t.Errorf("%q: %s", q, got.body)
			continue
		}
		h := found.Hits[0]
		if line := fmt.Sprint(h.Seq, " ", h.Role, " ", h.Covered, " ", h.Segment, " ", h.Snippet); line != want ||
			(h.Rank > 0) != (q != "hank") || h.Note != (q == "other") {
			t.Errorf("%q: %s %v", q, line, h)
		}
	}
	if got := b.send("GET", c+"/search?q=absent", "").is(200); got.get("hits") != "[]" {
		t.Errorf("%s", got.body)
	}
	for query, field := range map[string]string{
		"": "query.q", "q=": "query.q", "q=-x": "query.q",
		"q=x&cursor=y": "query.cursor", "q=x&limit=0": "query.limit",
	} {
		p := b.send("GET", c+"/search?"+query, "").fails(422, service.CodeInvalid)
		p.names(t, field)
	}

	b.key = stranger
	for _, try := range []struct{ method, path, body string }{
		{"GET", "/segments", ""},
		{"GET", "/segments/segment_0001.md", ""},
		{"GET", "/segments/plan.md", ""},
		{"POST", "/segments", `{"text":"x"}`},
		{"GET", "/search?q=foo", ""},
	} {
		b.send(try.method, c+try.path, try.body).fails(404, service.CodeNotFound)
	}
}
