package workflows_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"precis"
	"precis/internal/conversation"
	"precis/internal/store/runs"
	"precis/internal/testkit/corpus"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// Every real transcript compacts, with a model and with the digest; what comes out passes the strict validator
// of its API, and the tail is the same bytes.
func TestEveryRealTranscriptCompacts(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{
		"claude-code-jsonl", "anthropic-messages", "openai-chat", "openai-responses", "codex-rollout-jsonl",
		"gemini-cli", "gemini-compression-evals", "provider-compaction", "claude-stream-json", "vercel-ai-sdk",
		"langchain-dumps", "pi-agent-jsonl", "kimi-cli-context", "copilot-cli", "roo-cline", "openhands-events",
		"google-adk", "ms-agent-framework",
	} {
		for _, f := range corpus.Files(t, dir) {
			if strings.HasSuffix(f.Name, "ui_messages.json") { // what a window showed: refused
				continue
			}
			t.Run(dir+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				walk(t, f.Path)
			})
		}
	}
}

func walk(t *testing.T, path string) {
	s := scenario.New(t, vendorserver.Script{Compatible: true, Default: &vendorserver.Answer{Text: good}})
	s.StartWorker()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	decoder, err := transcript.NewDecoder(file, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	imported, err := conversation.ImportFile(t.Context(), s.Store, decoder,
		conversation.ImportOptions{Tenant: scenario.Tenant, TrustCompactions: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, im := range imported.Conversations {
		ref := im.Conversation.Ref
		// A compaction of the vendor's that cannot be read is imported with a digest, which the run replaces by a
		// summary of the messages beneath it.
		before, err := conversation.LoadBeneathDigest(t.Context(), s.Store, ref, conversation.InstallationOf(s.Config),
			0)
		if err != nil {
			t.Fatal(err)
		}
		summarizer := "openai/gpt-4.1"
		if i%2 == 1 {
			summarizer = "anthropic/claude-sonnet-4-5"
		}
		run := s.Compact(ref, runs.Request{Summarizer: summarizer, Full: false})
		if run.Outcome != precis.OutcomeApplied && run.Outcome != precis.OutcomeSkipped {
			t.Fatalf("conversation %d: %s %s %s\n%s", i, run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
		}
		if run.Outcome == precis.OutcomeSkipped && run.Reason != pipeline.NothingAllProtected &&
			run.Reason != pipeline.NothingAlreadyCompacted {
			t.Errorf("conversation %d: skipped: %s", i, run.Reason)
		}
		t.Logf("%d: %d messages, %s %s by %s, %d → %d tokens, %d in the tail", i, im.Messages, run.Outcome, run.Reason,
			run.Facts.Summarizer,
			run.Facts.TokensBefore, run.Facts.TokensAfter, len(s.View(ref).Tail))
		after := s.View(ref)
		checkTail(t, before, after)
		checkOutput(t, im, after)
	}
}

// checkTail compares the messages after the marker with what was stored: byte for byte, all of them.
func checkTail(t *testing.T, before, after conversation.View) {
	t.Helper()
	stored := map[int64]string{}
	for _, m := range before.Messages {
		stored[m.Seq] = string(m.Native)
	}
	tail := 0
	for _, m := range after.Messages {
		if stored[m.Seq] != string(m.Native) {
			t.Errorf("message %d changed", m.Seq)
		}
		tail++
	}
	if after.Marker == nil || len(before.Messages) == 0 {
		return
	}
	if last := before.Messages[len(before.Messages)-1].Seq; after.Marker.CoversTo < last && tail == 0 {
		t.Error("the tail is missing")
	}
	// What the model sees of the last turn is the stored bytes, but for what trimming is for.
	current, err := after.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range current.Items {
		if it.Message != nil && len(it.Edits) == 0 && stored[it.Message.Seq] != string(it.Message.Native) {
			t.Errorf("message %d of the context changed", it.Message.Seq)
		}
	}
}

// checkOutput writes the context in the file's own format and as a request, and validates both.
func checkOutput(t *testing.T, im conversation.Imported, after conversation.View) {
	t.Helper()
	current, err := after.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	output := transcript.Output{Meta: im.Meta, Items: current.Items}
	var same bytes.Buffer
	if _, err := convert.WriteFile(&same, im.Meta.Format, output); err != nil {
		t.Fatal(err)
	}
	switch im.Meta.Format {
	case transcript.Anthropic:
		validate(t, vendorserver.ValidateAnthropicRequest, same.Bytes())
	case transcript.OpenAI:
		validate(t, vendorserver.ValidateOpenAIRequest, same.Bytes())
	case transcript.OpenAIResponses:
		validate(t, vendorserver.ValidateOpenAIResponsesRequest, same.Bytes())
	case transcript.Google:
		validate(t, vendorserver.ValidateGoogleRequest, same.Bytes())
	case transcript.ClaudeStream: // written as a request
		validate(t, vendorserver.ValidateAnthropicRequest, same.Bytes())
	default: // a session
		again, err := transcript.Read(bytes.NewReader(same.Bytes()), transcript.Options{})
		if err != nil || len(again.Conversations) != 1 {
			t.Fatalf("the written session cannot be read: %v", err)
		}
	}
	for to, check := range map[transcript.Format]func([]byte, vendorserver.ValidateOptions) error{
		transcript.Anthropic:       vendorserver.ValidateAnthropicRequest,
		transcript.OpenAI:          vendorserver.ValidateOpenAIRequest,
		transcript.OpenAIResponses: vendorserver.ValidateOpenAIResponsesRequest,
		transcript.Google:          vendorserver.ValidateGoogleRequest,
	} {
		var other bytes.Buffer
		if _, err := convert.WriteFile(&other, to, output); err != nil {
			t.Fatal(err)
		}
		validate(t, check, other.Bytes())
	}
}

func validate(t *testing.T, check func([]byte, vendorserver.ValidateOptions) error, body []byte) {
	t.Helper()
	body = bytes.TrimSpace(body)
	if err := check(body, vendorserver.ValidateOptions{}); err != nil {
		t.Errorf("the request is not valid: %v\n%s", err, head(body))
	}
	var request struct{ Messages, Input, Contents []json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil || len(request.Messages)+len(request.Input)+
		len(request.Contents) == 0 {
		t.Errorf("no messages: %v", err)
	}
}

func head(b []byte) string { return fmt.Sprintf("%.400s", strings.ToValidUTF8(string(b), "?")) }
