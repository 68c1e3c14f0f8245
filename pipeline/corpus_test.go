package pipeline_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
	apirequest "precis/pipeline/transcript/request"
)

// TestCorpusCompacts compacts real transcripts in several ways, without a model: every one has to come out as
// a request that its API takes, with what stays verbatim in the bytes that it had.
func TestCorpusCompacts(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"claude-code-jsonl", "anthropic-messages", "openai-chat"} {
		for _, recorded := range corpus.Files(t, section) {
			t.Run(section+"/"+recorded.Name, func(t *testing.T) {
				t.Parallel()
				file, err := transcript.Read(bytes.NewReader(recorded.Read(t)), transcript.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i, c := range file.Conversations {
					if i == 3 {
						break // some files hold a hundred of a kind
					}
					compactInAllWays(t, c)
				}
			})
		}
	}
}

// compactInAllWays compacts a conversation for windows of several sizes, with and without its last turn and valve.
func compactInAllWays(t *testing.T, c transcript.Conversation) {
	t.Helper()
	for j := range c.Messages {
		c.Messages[j].Tokens = pipeline.EstimateMessage(c.Messages[j])
	}
	for _, window := range []int{8000, 60_000, 200_000} {
		for _, full := range []bool{false, true} {
			for _, valve := range []pipeline.TailValve{pipeline.TailValveNone, pipeline.TailValveHeadTail} {
				compact(t, c, window, full, valve)
			}
		}
	}
}

func compact(t *testing.T, c transcript.Conversation, window int, full bool, valve pipeline.TailValve) {
	t.Helper()
	name := fmt.Sprintf("window %d full %v valve %q", window, full, valve)
	s := pipeline.DefaultSettings()
	p := must(pipeline.PartitionMessages(t.Context(), pipeline.PartitionInput{
		Messages: c.Messages, Settings: s, Full: full,
		Window: window,
	}))
	var live, source []pipeline.Message
	for _, list := range [][]int{p.System, p.UserInfo, p.Carried, p.Tail} {
		for _, i := range list {
			live = append(live, c.Messages[i])
		}
	}
	for _, i := range p.ToSummarize {
		source = append(source, c.Messages[i])
	}
	in := pipeline.ContextInput{
		Live: live, Settings: s, Window: window, Vendor: string(transcript.Anthropic),
		Valve: valve, ValveUpTo: c.Messages[len(c.Messages)-1].Seq,
	}
	if c.Format == transcript.OpenAI {
		in.Vendor = string(transcript.OpenAI)
	}
	if p.Nothing == "" {
		summary, found, err := pipeline.VerifySummary(t.Context(), "1. Primary request and intent: go on", source, live)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Misattributed)+len(found.UnsupportedIdentifiers) > 0 {
			t.Errorf("%s: a summary that says nothing is flagged: %+v", name, found)
		}
		in.SummaryText = pipeline.SummaryText(pipeline.SummaryTextInput{
			Summary: summary, UnderWay: pipeline.UnderWay(c.Messages), TailKept: len(p.Tail) > 0,
			Repeated: len(p.Carried),
		})
	}
	context := must(pipeline.BuildContext(t.Context(), in))

	if valve == pipeline.TailValveNone {
		untouched(t, name, c, context)
	}
	// claude-code is a file's format and no API's.
	target, validate := transcript.Anthropic, vendorserver.ValidateAnthropic
	if c.Format == transcript.OpenAI {
		target, validate = transcript.OpenAI, vendorserver.ValidateOpenAI
	}
	out, err := convert.Conversation(c.Meta, context.Items, target)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	body, err := apirequest.Build(apirequest.Input{
		Format: target, Envelope: out.Meta.Envelope, System: out.Meta.System, Tools: out.Meta.Tools, Model: "model",
		MaxTokens: 1000, Messages: out.Messages, Summarized: in.SummaryText != "",
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := validate(body); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// untouched checks that what stays verbatim is written with the bytes that it had. Tool results are another
// matter: trimming leaves binaries out of them. So are blank text blocks, which Anthropic's models write and
// its API refuses.
func untouched(t *testing.T, name string, c transcript.Conversation, context pipeline.Context) {
	t.Helper()
	codec, err := transcript.CodecFor(c.Format)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range context.Items {
		m := item.Message
		if m == nil || len(m.Results()) > 0 {
			continue
		}
		if slices.ContainsFunc(item.Edits, func(e pipeline.Edit) bool {
			return e.Op == pipeline.EditDrop && strings.TrimSpace(m.Parts[e.Part].Text) == ""
		}) {
			continue
		}
		if native, err := codec.Encode(*m, item.Edits); err != nil || !bytes.Equal(native, m.Native) {
			t.Errorf("%s: message %d was changed (%v): %+v", name, m.Seq, err, item.Edits)
		}
	}
}
