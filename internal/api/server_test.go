package api

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestTheDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	doc := b.send("GET", "/openapi.json", "").is(http.StatusOK)
	if v := doc.get("openapi"); !strings.HasPrefix(v, "3.1") {
		t.Errorf("OpenAPI %s", v)
	}
	var parsed struct {
		Paths      map[string]map[string]struct{ Tags []string }
		Components struct{ Schemas map[string]json.RawMessage }
	}
	doc.into(&parsed)
	for path, operations := range parsed.Paths {
		for method, op := range operations {
			if len(op.Tags) != 1 {
				t.Errorf("%s %s has tags %q", method, path, op.Tags)
			}
		}
	}
	for _, ref := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(string(doc.body), -1) {
		if parsed.Components.Schemas[ref[1]] == nil {
			t.Errorf("schema %s is not there", ref[1])
		}
	}
	page := b.send("GET", "/docs", "").is(http.StatusOK)
	for path := range parsed.Paths {
		if !strings.Contains(string(page.body), `<span class="path">`+path+`</span>`) {
			t.Errorf("the page does not show %s", path)
		}
	}
	if regexp.MustCompile(`(?i)<script|(src|href)="?(https?:)?//|@import|url\(`).Match(page.body) {
		t.Error("the page loads something")
	}
	for _, c := range codes {
		if !strings.Contains(string(page.body), `id="`+string(c.code)+`"`) {
			t.Errorf("the page does not explain %s", c.code)
		}
	}
}
