package runreport

import (
	"testing"

	"precis/internal/api/wire"
	"precis/internal/store/runs"
)

// What a model was sent is shown in the form in which it was sent: two texts, or a whole body in the vendor's own form.
func TestPrompted(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"u"}]}`
	for _, tt := range []struct{ summarizer, data, system, user, body string }{
		{"openai/small", `{"system":"s","user":"u","prompt_name":"general"}`, "s", "u", ""},
		{"openai/small", `{"user":"all in one"}`, "", "all in one", ""},
		{"self", body, "", "", body},
		{"native", body, "", "", body},
	} {
		l := loader{texts: &wire.RunTexts{}}
		if err := l.prompt(runs.Attempt{Call: 4, Summarizer: tt.summarizer}, []byte(tt.data)); err != nil {
			t.Errorf("%s: %v", tt.summarizer, err)
			continue
		}
		if p := l.texts.Prompts[0]; p.System != tt.system || p.User != tt.user || p.Body != tt.body || p.Call != 4 {
			t.Errorf("%s: %+v", tt.summarizer, p)
		}
	}
	l := loader{texts: &wire.RunTexts{}}
	if err := l.prompt(runs.Attempt{Summarizer: "openai/small"}, []byte("{")); err == nil {
		t.Error("a damaged input is no error")
	}
}
