package contract

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
)

func TestNumbersOfEarlierBuildsAreRead(t *testing.T) {
	t.Parallel()
	skipped := []pipeline.SkippedSummarizer{{Model: "openai/gpt-5", Reason: "no API key"}}
	resolved := ResolvedSummarizers{{
		Spec:       pipeline.SummarizerSpec{Model: "openai/gpt-5", ContextWindow: 1000},
		Summarizer: pipeline.Summarizer{Vendor: "openai", Model: "gpt-5", Window: 1000},
	}}
	want := SummarizerNotes{
		Skipped:   skipped,
		NotNative: []pipeline.SkippedSummarizer{{Model: "anthropic/claude", Reason: "too small"}},
		Given: Given{
			Self: &Permission{Why: "no API key"}, Breakers: &OpenBreakers{}, Summarizers: &resolved,
			Native: []NativeAbility{{Vendor: "anthropic", Model: "claude", Form: "anthropic"}},
		},
	}
	now, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"today": string(now),
		"up to migration 13": `{
			"ladder": null, "skipped openai/gpt-5": "no API key", "explicit anthropic/claude": "too small",
			"given": {
				"self": {"allowed": false, "why": "no API key"}, "breakers": {},
				"native anthropic/claude": {"form": "anthropic"},
				"summarizers": {"openai/gpt-5 1000 0": {"summarizer": {"vendor": "openai", "model": "gpt-5", "window": 1000}}}
			}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got SummarizerNotes
			if err := json.Unmarshal([]byte(data), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the notes differ (-want +got):\n%s", diff)
			}
		})
	}
}
