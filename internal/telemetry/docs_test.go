package telemetry

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDocsListEveryMetricWithItsLabels(t *testing.T) {
	t.Parallel()
	tel := start(t, Options{Service: "test"})
	m := tel.Metrics()
	m.RunEnded(t.Context(), RunEnd{
		Outcome: "applied", Stage: "reassemble", Summarizer: "self", Trigger: "tokens",
		TokensBefore: 10, TokensAfter: 5, Took: time.Second,
	})
	m.StageEnded(t.Context(), "slim", "ok", "", time.Second)
	m.ModelCalled(t.Context(), ModelCall{Vendor: "openai", Summarizer: "openai/m", Took: time.Second, Input: 1})
	want := map[string]string{}
	sample := regexp.MustCompile(`(?m)^(precis_[a-z_]+)\{([^}]*)\}`)
	for _, s := range sample.FindAllStringSubmatch(scrape(t, tel), -1) {
		name := s[1]
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			name = strings.TrimSuffix(name, part)
		}
		labels := regexp.MustCompile(`[a-z_]+="`).FindAllString(s[2], -1)
		labels = slices.DeleteFunc(labels, func(l string) bool { return l == `le="` })
		slices.Sort(labels)
		want[name] = strings.Join(labels, "")
	}
	if len(want) < 8 {
		t.Fatalf("only %v are counted", slices.Collect(maps.Keys(want)))
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range regexp.MustCompile(
		"(?m)^- `(precis_[a-z_]+)` \\(([^)]*)\\):").FindAllStringSubmatch(string(page), -1) {
		labels := strings.Fields(strings.ReplaceAll(row[2], "`", ""))
		slices.Sort(labels)
		got[row[1]] = strings.Join(labels, `="`) + `="`
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the metrics and labels of docs/operations.md (- counted, + documented):\n%s", diff)
	}
}
