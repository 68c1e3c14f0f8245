package service_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"precis/internal/service"
)

// answers are an assistant's message in each format.
var answers = map[string]string{
	"anthropic": `{"role":"assistant","content":"a"}`, "openai": `{"role":"assistant","content":"a"}`,
	"openai-responses": `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`,
	"google":           `{"role":"model","parts":[{"text":"a"}]}`, "vercel": `{"role":"assistant","content":"a"}`,
}

// docs/integrate.md shows what each vendor reports, and what is counted of it.
func TestUsageIsCountedAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "integrate.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(
		"(?m)^- `([a-z-]+)`, ([0-9]+) tokens:\n  `(\\{.*\\})`$").FindAllStringSubmatch(string(page), -1)
	if len(rows) != len(answers) {
		t.Fatalf("%d rows are on the page, %d formats are known here", len(rows), len(answers))
	}
	s := newService(t)
	for _, row := range rows {
		n := window(128_000)
		n.Format = row[1]
		ref := create(t, s, n, "")
		reply, err := s.OpenReply(t.Context(), ref, 0, service.ContextRequest{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.EndReply(t.Context(), ref, reply.ID,
			service.ReplyEnd{Messages: []json.RawMessage{[]byte(answers[row[1]])}, Usage: []byte(row[3])})
		if err != nil || got.Estimated || fmt.Sprint(got.UsedTokens) != row[2] {
			t.Errorf("%s: %d tokens are counted, estimated %t, %v; the page says %s", row[1], got.UsedTokens,
				got.Estimated, err, row[2])
		}
	}
}
