package transcript_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// tally has the counts of a file of an agent or a framework, from the index of the collection or from reading it.
type tally struct{ conversations, messages, calls, results, reasoning, compactions int }

var (
	reConversations = regexp.MustCompile(`\bconv (\d+)`)
	reMessages      = regexp.MustCompile(`\bmsgs (\d+)`)
)

// tallies reads a section of INDEX.md, by file.
func tallies(t *testing.T, section string) map[string]tally {
	t.Helper()
	file, _ := corpus.Open(t, "INDEX.md")
	b := file.Read(t)
	_, rest, _ := strings.Cut(string(b), "## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	out := map[string]tally{}
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		number := func(re *regexp.Regexp, group, otherwise int) int {
			m := re.FindStringSubmatch(cells[3])
			if m == nil {
				return otherwise
			}
			n, _ := strconv.Atoi(m[group])
			return n
		}
		out[strings.Trim(cells[1], " `")] = tally{
			number(reConversations, 1, 1), number(reMessages, 1, 0), number(reCalls, 1, 0), number(reCalls, 2, 0),
			number(reThink, 1, 0), number(reCompact, 1, 0),
		}
	}
	return out
}

// Files for which the index counts differently from the reader, and why.
var tallied = map[string]struct {
	tally
	why string
}{
	"devtools-generations-openpaw.json": {
		tally{5, 35, 8, 8, 14, 0},
		"the index counts the longest run alone",
	},
	"copilot-events.jsonl": {
		tally{1, 23, 13, 13, 4, 0},
		"here results are messages too, and two calls that no message asked for",
	},
	"openhands-output-2runs.jsonl": {
		tally{2, 114, 56, 55, 0, 0},
		"the system prompts stand beside the messages; two recalls are no results, one of them and two more no " +
			"messages",
	},
	"openhands-sdk-events.jsonl": {
		tally{1, 5, 2, 3, 2, 0},
		"five events are states of the program",
	},
	"cline-compaction-triplet/basic.compaction.json": {
		tally{1, 10, 0, 0, 0, 0},
		"its notices stand in the person's own messages, which stay that",
	},
	"cline-compaction-triplet/agentic.compaction.json": {
		tally{1, 2, 0, 0, 0, 1},
		"the summary is not one of the messages",
	},
	"roo-natural-condensed/api_conversation_history.json": {
		tally{1, 29, 0, 0, 0, 1},
		"the summary is not one of the messages",
	},
}

// agentSections are the folders of the collection and the format of their files.
var agentSections = map[string]transcript.Format{
	"vercel-ai-sdk": transcript.Vercel, "langchain-dumps": transcript.LangChain, "pi-agent-jsonl": transcript.Pi,
	"kimi-cli-context": transcript.Kimi, "copilot-cli": transcript.Copilot, "roo-cline": transcript.Roo,
	"openhands-events": transcript.OpenHands, "google-adk": transcript.ADK, "ms-agent-framework": transcript.MSAgent,
}

func TestAgentCorpus(t *testing.T) {
	t.Parallel()
	for section, format := range agentSections {
		eachCorpusFile(t, section, tallies, func(t *testing.T, f corpus.File, expected tally) {
			if c, ok := tallied[f.Name]; ok {
				expected = c.tally
			}
			data := f.Read(t)
			file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
			if strings.HasSuffix(f.Name, "ui_messages.json") {
				if err == nil || !strings.Contains(err.Error(), "api_conversation_history.json") {
					t.Errorf("the log of a window is read: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if file.Format != format {
				t.Fatalf("it is taken for %s", file.Format)
			}
			if got := tallyOf(file); got != expected {
				t.Errorf("counted %+v, the index says %+v", got, expected)
			}
			sameBytes(t, file, data)
			paired(t, file)
			for _, c := range file.Conversations {
				for _, window := range []int{4000, 20_000, 200_000} {
					compacted(t, c, window)
				}
			}
		})
	}
}

func tallyOf(f transcript.File) tally {
	n := count(f)
	out := tally{len(f.Conversations), 0, n.calls, n.results, n.reasoning, n.compactions}
	for _, c := range f.Conversations {
		out.messages += len(c.Messages)
	}
	return out
}

// paired checks that as many calls and results pair as the index counts.
func paired(t *testing.T, f transcript.File) {
	t.Helper()
	orphans, unanswered := 0, 0
	for _, c := range f.Conversations {
		p := pipeline.Pair(c.Messages)
		orphans += len(p.Orphans)
		unanswered += len(p.Unanswered)
		for _, u := range c.Usage {
			if u.Covers < 1 || u.Covers > len(c.Messages) {
				t.Errorf("usage %+v is tied to message %d of %d", u.Usage, u.Covers, len(c.Messages))
			}
		}
	}
	n := count(f)
	if n.calls-unanswered != n.results-orphans {
		t.Errorf("%d calls less %d are not %d results less %d", n.calls, unanswered, n.results, orphans)
	}
	if orphans > 1 { // one file is cut off at its front
		t.Errorf("%d results have no call", orphans)
	}
}

// compacted compacts a conversation without a model, writes it in its own format and as requests, and checks each of
// them.
func compacted(t *testing.T, c transcript.Conversation, window int) {
	t.Helper()
	for i := range c.Messages {
		c.Messages[i].Tokens = pipeline.EstimateMessage(c.Messages[i])
	}
	s := pipeline.DefaultSettings()
	p := must(pipeline.PartitionMessages(t.Context(), pipeline.PartitionInput{
		Messages: c.Messages,
		Settings: s, Window: window,
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
	in := pipeline.ContextInput{Live: live, Settings: s, Window: window}
	if p.Nothing == "" {
		summary, _, err := pipeline.VerifySummary(t.Context(), "1. Primary request and intent: go on", source, live)
		if err != nil {
			t.Fatal(err)
		}
		in.SummaryText = pipeline.SummaryText(pipeline.SummaryTextInput{
			Summary:  summary,
			UnderWay: pipeline.UnderWay(c.Messages), TailKept: len(p.Tail) > 0,
		})
	}
	context := must(pipeline.BuildContext(t.Context(), in))
	out := transcript.Output{Meta: c.Meta, Items: context.Items, Trigger: "auto", TokensBefore: 1234}

	var same bytes.Buffer
	losses, err := convert.WriteFile(&same, c.Format, out)
	if err != nil || len(losses) > 0 {
		t.Fatalf("window %d: %v, losses %+v", window, err, losses)
	}
	back, err := transcript.Read(bytes.NewReader(same.Bytes()), transcript.Options{})
	if err != nil || back.Format != c.Format || len(back.Conversations) != 1 {
		t.Fatalf("window %d: read back as %s, %d conversations: %v\n%.300s", window, back.Format,
			len(back.Conversations), err, same.Bytes())
	}
	again(t, fmt.Sprintf("window %d", window), context.Items, back.Conversations[0])

	for target, validate := range map[transcript.Format]func([]byte, vendorserver.ValidateOptions) error{
		transcript.Anthropic:       vendorserver.ValidateAnthropicRequest,
		transcript.OpenAI:          vendorserver.ValidateOpenAIRequest,
		transcript.OpenAIResponses: vendorserver.ValidateOpenAIResponsesRequest,
		transcript.Google:          vendorserver.ValidateGoogleRequest,
	} {
		// A context is built for one API, because its content depends on what the API takes.
		in.Vendor = string(target)
		out.Items = must(pipeline.BuildContext(t.Context(), in)).Items
		var b bytes.Buffer
		if _, err := convert.WriteFile(&b, target, out); err != nil {
			t.Fatalf("window %d, to %s: %v", window, target, err)
		}
		if err := validate(b.Bytes(), vendorserver.ValidateOptions{}); err != nil {
			t.Errorf("window %d, as %s: %v", window, target, err)
		}
		// A context that was built for the format's own file can be converted as well.
		out.Items = context.Items
		b.Reset()
		if _, err := convert.WriteFile(&b, target, out); err != nil {
			t.Fatalf("window %d, to %s: %v", window, target, err)
		}
		if err := validate(b.Bytes(), vendorserver.ValidateOptions{}); err != nil {
			t.Errorf("window %d, from its own form, as %s: %v", window, target, err)
		}
	}
}

// again checks that a written file contains the context: its summary, and its messages in order with their content.
func again(t *testing.T, name string, items []pipeline.ContextItem, back transcript.Conversation) {
	t.Helper()
	var want, got []string
	summaries := 0
	for _, it := range items {
		switch {
		case it.Message != nil && len(it.Edits) == 0 && it.Message.Kind != pipeline.KindSummary:
			want = append(want, pipeline.RenderMessage(*it.Message))
		case it.Made != nil && it.Made.Kind == pipeline.KindSummary:
			summaries++
		}
	}
	at := 0
	for _, m := range back.Messages {
		if m.Kind == pipeline.KindSummary {
			summaries--
			continue
		}
		got = append(got, pipeline.RenderMessage(m))
	}
	summaries -= len(back.Compactions)
	for _, w := range want {
		for at < len(got) && got[at] != w {
			at++
		}
		if at == len(got) {
			t.Errorf("%s: a message is not in the file that was written: %.100q", name, w)
			return
		}
		at++
	}
	if summaries > 0 {
		t.Errorf("%s: the summary is not in the file that was written", name)
	}
}
