package api

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/internal/service"
	"precis/internal/store/segments"
	"precis/internal/testkit/scenario"
)

// TestMemoryOverHTTP reads and searches what a compaction covered, and leaves notes. Each step needs those before it.
func TestMemoryOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.key = b.newKey("default", true)
	stranger := b.newKey("mallory", true)
	b.create("a/b c", "")
	c := "/v1/conversations/" + url.PathEscape("a/b c")
	t.Run("Empty", func(t *testing.T) {
		b := b.on(t)
		b.send("GET", c+"/segments", "").is(200).has(fields{"segments": "[]", "next": ""})
		b.send("GET", c+"/segments/INDEX.md", "").fails(404, service.CodeNotFound)
	})
	b.add(c, scenario.User("Where is foo_bar/baz.go?"), scenario.Assistant("In lib, see 壓縮對話 and 1,234.56"),
		scenario.User("Thanks, number 7"), scenario.Assistant("ok"))
	b.send("POST", c+"/markers", `{"summary":`+scenario.User("SUM")+`,"covers_to":2}`).is(201)
	for _, step := range []struct {
		name string
		do   func(b *bench, conversation string)
	}{
		{"Segments", readSegments}, {"Notes", addNotes}, {"Pages", pageThroughSegments}, {"Search", searchMemory},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(b.on(t), c) })
	}
	t.Run("OtherTenant", func(t *testing.T) {
		b := b.on(t)
		b.key = stranger
		for _, path := range []string{"/segments", "/segments/segment_0001.md", "/segments/plan.md", "/search?q=foo"} {
			b.send("GET", c+path, "").fails(404, service.CodeNotFound)
		}
		b.send("POST", c+"/segments", `{"text":"x"}`).fails(404, service.CodeNotFound)
	})
}

func readSegments(b *bench, c string) {
	b.send("GET", c+"/segments", "").is(200).has(fields{
		"segments.0.name": "INDEX.md", "segments.1.name": "segment_0001.md", "segments.1.kind": "segment",
		"segments.1.covers_to": "2", "segments.1.request": "Where is foo_bar/baz.go?",
	})
	b.send("GET", c+"/segments/segment_0001.md", "").is(200).
		holds("<message seq=\"1\" role=\"user\">\nWhere is foo_bar/baz.go?\n</message>", "text")
	b.send("GET", c+"/segments/INDEX.md", "").is(200).holds("- segment_0001.md: messages 1 to 2", "text")
}

func addNotes(b *bench, c string) {
	note := b.send("POST", c+"/segments", `{"name":"plan.md","text":"first foo_bar, then the rest"}`).is(201).
		has(fields{"kind": "note"})
	if got := note.header.Get("Location"); got != c+"/segments/plan.md" {
		b.t.Errorf("Location is %s", got)
	}
	b.send("GET", note.header.Get("Location"), "").is(200)
	b.send("POST", c+"/segments", `{"name":"plan.md","text":"first foo_bar, then the rest"}`).is(200)
	b.send("POST", c+"/segments", `{"name":"plan.md","text":"other"}`).fails(409, service.CodeConflict)
	b.send("POST", c+"/segments", `{"name":"plan.md","text":"other","replace":true}`).is(200).has(fields{"bytes": "5"})
	for body, field := range map[string]string{
		`{"name":"segment_0001.md","text":"x"}`:         "body.name",
		`{"name":"INDEX.md","text":"x","replace":true}`: "body.name",
		`{"name":"../x","text":"x"}`:                    "body.name",
		`{"text":"  "}`:                                 "body.text",
		`{}`:                                            "body",
		`{"text":7}`:                                    "body.text",
	} {
		b.send("POST", c+"/segments", body).fails(422, service.CodeInvalid).names(b.t, field)
	}
	b.send("POST", c+"/segments", `{"text":"`+strings.Repeat("x", segments.MaxNoteBytes+1)+`"}`).
		fails(413, service.CodeTooLarge).names(b.t, "body.text")
	for range 2 { // the same request with the same key leaves one note
		b.send("POST", c+"/segments", `{"text":"unnamed"}`, idempotencyHeader, "k1").is(201).
			has(fields{"name": "note_0001.md"})
	}
}

func pageThroughSegments(b *bench, c string) {
	var got []string
	for cursor, more := "", true; more; more = cursor != "" {
		page := b.send("GET", c+"/segments?limit=1&cursor="+cursor, "").is(200)
		got = append(got, page.get("segments", 0, "name"))
		cursor = page.get("next")
	}
	want := []string{"INDEX.md", "segment_0001.md", "note_0001.md", "plan.md"}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("entries (-want +got):\n%s", diff)
	}
	b.send("GET", c+"/segments?cursor=nope", "").fails(422, service.CodeInvalid)
}

func searchMemory(b *bench, c string) {
	type hit struct {
		Seq                    int64
		Role, Segment, Snippet string
		Covered, Note          bool
	}
	for query, want := range map[string]hit{
		"foo_bar/baz.go": {1, "user", "segment_0001.md", "Where is **foo_bar/baz.go**?", true, false},
		"對話":             {2, "assistant", "segment_0001.md", "In lib, see 壓縮**對話** and 1,234.56", true, false},
		"1,234.56":       {2, "assistant", "segment_0001.md", "In lib, see 壓縮對話 and **1,234.56**", true, false},
		`"number 7"`:     {3, "user", "", "Thanks, **number 7**", false, false},
		"other":          {0, "", "plan.md", "**other**", false, true},
		"hank":           {3, "user", "", "T**hank**s, number 7", false, false},
	} {
		var found struct{ Hits []hit }
		r := b.send("GET", c+"/search?q="+url.QueryEscape(query), "").is(200).into(&found)
		if diff := cmp.Diff([]hit{want}, found.Hits); diff != "" {
			b.t.Errorf("hits of %q (-want +got):\n%s", query, diff)
			continue
		}
		inWords := query == "hank"
		if ranked := r.get("hits", 0, "rank") != "0"; ranked == inWords {
			b.t.Errorf("rank of %q: %s", query, r.body)
		}
	}
	b.send("GET", c+"/search?q=absent", "").is(200).has(fields{"hits": "[]"})
	for query, field := range map[string]string{
		"": "query.q", "q=": "query.q", "q=-x": "query.q", "q=x&cursor=y": "query.cursor", "q=x&limit=0": "query.limit",
	} {
		b.send("GET", c+"/search?"+query, "").fails(422, service.CodeInvalid).names(b.t, field)
	}
}
