package redact

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"precis/internal/testkit/corpus"
)

// maxHits is how many places are redacted in recorded sessions, in 100 kB of their texts. They hold next to no real
// credentials, so that this bounds the false hits.
const maxHits = 0.3

// TestCorpusHasFewHits redacts the texts of recorded sessions of real agents.
func TestCorpusHasFewHits(t *testing.T) {
	t.Parallel()
	bytes, hits := 0, 0
	for _, f := range corpus.Files(t, "") {
		if strings.HasSuffix(f.Name, ".md") || f.Size > 20<<20 {
			continue
		}
		for _, text := range textsIn(string(f.Read(t))) {
			spans, err := find(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			bytes, hits = bytes+len(text), hits+len(spans)
			for _, s := range spans {
				t.Logf("%s: %q in %q", f.Name, text[s.from:s.to], text[max(0, s.from-60):min(len(text), s.to+10)])
			}
		}
	}
	if !corpus.Given() {
		return
	}
	if bytes == 0 {
		t.Fatal("the recorded sessions have no text")
	}
	share := float64(hits) * 100_000 / float64(bytes)
	t.Logf("%d places in %d bytes: %.2f in 100 kB", hits, bytes, share)
	if share > maxHits {
		t.Errorf("%.2f places in 100 kB are redacted, more than %.2f", share, maxHits)
	}
}

// textsIn returns the strings of a JSON document or of JSON lines, or the text itself.
func textsIn(s string) []string {
	if !strings.HasPrefix(strings.TrimSpace(s), "{") && !strings.HasPrefix(strings.TrimSpace(s), "[") {
		return []string{s}
	}
	var out []string
	var visit func(v gjson.Result)
	visit = func(v gjson.Result) {
		switch {
		case v.Type == gjson.String:
			out = append(out, v.Str)
		case v.IsObject() || v.IsArray():
			v.ForEach(func(_, item gjson.Result) bool {
				visit(item)
				return true
			})
		}
	}
	gjson.ForEachLine(s, func(line gjson.Result) bool {
		visit(line)
		return true
	})
	return out
}
