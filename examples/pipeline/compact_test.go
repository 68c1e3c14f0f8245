package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/internal/testkit/exampletest"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// session is a request for OpenAI's chat completions: an agent that repaired a build.
var session = `{"model":"gpt-4.1","messages":[
	{"role":"system","content":"You are a careful engineer."},
	{"role":"user","content":"Find out why the build fails. Never touch the vendored code."},
	{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
		"function":{"name":"bash","arguments":"{\"command\":\"make\"}"}}]},
	{"role":"tool","tool_call_id":"call_1","content":"` + strings.Repeat("a line of the log\\n", 300) + `"},
	{"role":"assistant","content":"internal/retry/retry_test.go fails: TestRetry has a race."},
	{"role":"user","content":"Mend it."}
]}`

// small returns settings for a window that is small enough for the example.
func small() pipeline.Settings {
	s := pipeline.DefaultSettings()
	s.Trigger.Fraction = 0.5
	return s
}

// All stages: a summary replaces the older part, the user's last message stays byte for byte, and a limit that the
// summary left out is appended.
func ExampleCompact() {
	model := Model{
		Summarizer: pipeline.Summarizer{
			Kind: pipeline.SummarizerExternal, Vendor: "openai", Model: "gpt-4.1",
			Window: 1_000_000, MaxOutput: 32_000,
		},
		Ask: func(r pipeline.SummaryRequest, maxOutput int) (pipeline.Answer, error) {
			fmt.Printf("asked with %q, for at most %d tokens\n", r.Prompt.Name, maxOutput)
			return pipeline.Answer{Text: "<summary>The build fails in internal/retry/retry_test.go: TestRetry has " +
				"a race.</summary>", Finish: pipeline.FinishStop}, nil
		},
	}
	var out strings.Builder
	done, err := Compact(context.Background(), strings.NewReader(session), &out, 2000, small(), model)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("due by", done.Decision.Kind)
	fmt.Printf("%d messages summarized, %d kept, smaller: %t\n", done.Summarized, done.Kept, done.After < done.Before)
	fmt.Printf("put back: %q\n", done.Checked.ConstraintsMissing)

	compacted, err := transcript.Read(strings.NewReader(out.String()), transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range compacted.Conversations[0].Messages {
		fmt.Printf("%s: %.60q\n", m.Role, m.Parts[0].Text)
	}
	// Output:
	// asked with "general", for at most 8192 tokens
	// due by tokens
	// 4 messages summarized, 1 kept, smaller: true
	// put back: ["Never touch the vendored code."]
	// system: "You are a careful engineer."
	// user: "<conversation_summary>\nThis session continues an earlier one"
	// user: "Mend it."
}

// Without a model, or with one that gives nothing usable, the digest is used: it needs no network and cannot fail.
func ExampleCompact_digest() {
	refuses := Model{
		Summarizer: pipeline.Summarizer{
			Kind: pipeline.SummarizerExternal, Vendor: "openai", Model: "gpt-4.1",
			Window: 1_000_000, MaxOutput: 32_000,
		},
		Ask: func(pipeline.SummaryRequest, int) (pipeline.Answer, error) {
			return pipeline.Answer{Text: "I can't help with that.", Finish: pipeline.FinishRefusal}, nil
		},
	}
	var out strings.Builder
	done, err := Compact(context.Background(), strings.NewReader(session), &out, 2000, small(), refuses)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pipeline.KindOf(done.Refused))
	fmt.Println(strings.Contains(out.String(), "Never touch the vendored code."),
		strings.Contains(out.String(), "make"), done.After < done.Before)
	// Output:
	// refused
	// true true true
}

// Trimming alone, as for every request: no model, and the messages stay as they are.
func Example_trim() {
	file, err := transcript.Read(strings.NewReader(session), transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := pipeline.DefaultSettings()
	s.ToolResultKeepTurns = 1
	built, err := pipeline.BuildContext(context.Background(), pipeline.ContextInput{
		Live: file.Conversations[0].Messages, Settings: s,
		Window: 128_000, Vendor: "openai",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d tool result became a preview, %t\n", built.Stats.Trimmed.ToolResults,
		built.Stats.Trimmed.SavedTokens > 0)
	// Output:
	// 1 tool result became a preview, true
}

// A context that is small enough is returned unchanged.
func TestNotDueIsUnchanged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	done, err := Compact(t.Context(), strings.NewReader(session), &out, 200_000, pipeline.DefaultSettings(), Model{})
	if err != nil || done.Decision.Fired || done.After != done.Before || strings.TrimSpace(out.String()) != session {
		t.Errorf("%+v, %v\n%s", done.Decision, err, out.String())
	}
}

// The program's model call against a scripted vendor: it sends a request that the vendor accepts.
func TestAsksAnthropic(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer vendorserver.Answer
		kind   pipeline.ErrorKind
	}{
		"Summary": {answer: vendorserver.Answer{Text: exampletest.Summary}},
		"Cut": {
			answer: vendorserver.Answer{Text: "<summary>The first", Finish: "max_tokens"},
			kind:   pipeline.OutputTooLong,
		},
		"Refusal": {answer: vendorserver.Answer{Text: "No.", Finish: "refusal"}, kind: pipeline.Refused},
		"Overloaded": {
			answer: vendorserver.Answer{Error: &vendorserver.Error{Status: 529}},
			kind:   pipeline.ServerError,
		},
		"Gone": {answer: vendorserver.Answer{Close: true}, kind: pipeline.Network},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := vendorserver.New(t, vendorserver.Script{
				Key:     "test-key",
				Answers: []vendorserver.Answer{tt.answer},
			})
			done, err := Compact(t.Context(), strings.NewReader(session), io.Discard, 2000, small(),
				anthropic(vendor.URL, "test-key", "claude-sonnet-4-5"))
			if err != nil || done.After >= done.Before {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := pipeline.KindOf(done.Refused); done.Refused != nil && got != tt.kind ||
				(done.Refused != nil) != (tt.kind != "") {
				t.Errorf("refused as %q (%v), want %q", got, done.Refused, tt.kind)
			}
			if n := len(vendor.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Sessions of many agents are compacted with the library alone and become smaller, in their own format.
func TestRecordedSessions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"claude-code-jsonl/cc-parallel-tools.jsonl", "codex-rollout-jsonl/codex-exec-automation.jsonl",
		"openai-chat/sweagent-ctf-web.traj", "anthropic-messages/raw-parallel-tool-calls.json",
		"gemini-cli/gemini-contents-127.json",
	} {
		file, ok := corpus.Open(t, name)
		if !ok {
			return
		}
		var out, report strings.Builder
		if err := run(t.Context(), file.Path, 10_000, Model{}, &out, &report); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again, err := transcript.Read(strings.NewReader(out.String()), transcript.Options{}); err != nil ||
			len(again.Conversations) == 0 {
			t.Errorf("%s: the output cannot be read: %v", name, err)
		}
	}
}
