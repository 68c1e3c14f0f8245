package transcript_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
	"precis/pipeline/transcript/request"
)

// figures has the counts of a file, from the index of the collection or from reading it.
type figures struct{ calls, results, images, reasoning, compactions int }

var (
	reCalls   = regexp.MustCompile(`calls/results (\d+)/(\d+)`)
	reImages  = regexp.MustCompile(`\bimg (\d+)`)
	reThink   = regexp.MustCompile(`\bthink (\d+)`)
	reCompact = regexp.MustCompile(`\bcompact (\d+)`)
)

// index reads the figures of a section of INDEX.md, by file.
func index(t *testing.T, section string) map[string]figures {
	t.Helper()
	file, _ := corpus.Open(t, "INDEX.md")
	b := file.Read(t)
	_, rest, ok := strings.Cut(string(b), "## "+section+"\n")
	if !ok {
		t.Fatalf("INDEX.md has no section %s", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	out := map[string]figures{}
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		number := func(re *regexp.Regexp, group int) int {
			m := re.FindStringSubmatch(cells[3])
			if m == nil {
				return 0
			}
			n, _ := strconv.Atoi(m[group])
			return n
		}
		out[strings.Trim(cells[1], " `")] = figures{
			number(reCalls, 1), number(reCalls, 2), number(reImages, 1), number(reThink, 1), number(reCompact, 1),
		}
	}
	return out
}

// Files for which the index counts differently from the reader, and why.
var counted = map[string]struct {
	figures
	why string
}{
	"cc-sidechains-inline.jsonl":      {figures{calls: 11, results: 11}, "the index counts the subagents too"},
	"cc-zh-hant.jsonl":                {figures{calls: 31, results: 31, reasoning: 5}, "one result is written twice"},
	"raw-tool-result-images.json":     {figures{calls: 1, results: 1, images: 1}, "the index counts both requests"},
	"raw-document-tool-result.json":   {figures{calls: 1, results: 1, images: 1}, "the index counts both requests"},
	"raw-parallel-tool-calls.json":    {figures{calls: 4, results: 4}, "the index counts both requests"},
	"sweagent-ctf-web.traj":           {figures{}, "its commands stand in the text: there are no calls"},
	"openhands-llm-django-11149.json": {figures{calls: 50, results: 49}, "the recorded answer makes one call more"},
	"openhands-sdk-fncall.json":       {figures{calls: 6, results: 5}, "the recorded answer makes one call more"},
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	for section, format := range map[string]transcript.Format{
		"claude-code-jsonl":  transcript.ClaudeCode,
		"anthropic-messages": transcript.Anthropic,
		"openai-chat":        transcript.OpenAI,
	} {
		eachCorpusFile(t, section, index, func(t *testing.T, f corpus.File, expected figures) {
			if c, ok := counted[f.Name]; ok {
				expected = c.figures
			}
			data := f.Read(t)
			file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if file.Format != format {
				t.Fatalf("it is taken for %s", file.Format)
			}
			if got := count(file); got != expected {
				t.Errorf("counted %+v, the index says %+v", got, expected)
			}
			sameBytes(t, file, data)
			usage(t, file, data)
			written(t, file)
			asked(t, file, data)
		})
	}
}

func count(f transcript.File) figures {
	var n figures
	for _, c := range f.Conversations {
		n.compactions += len(c.Compactions)
		for _, m := range c.Messages {
			n.calls += len(m.Calls())
			n.results += len(m.Results())
			for _, p := range m.Parts {
				for _, q := range append([]pipeline.Part{p}, p.Content...) {
					switch q.Kind {
					case pipeline.PartImage, pipeline.PartFile:
						n.images++
					case pipeline.PartReasoning:
						n.reasoning++
					}
				}
			}
		}
	}
	return n
}

// sameBytes checks that every message has the bytes of the file, with no line lost or duplicated.
func sameBytes(t *testing.T, f transcript.File, data []byte) {
	t.Helper()
	codec, err := transcript.CodecFor(f.Format)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	check := func(c transcript.Conversation, m pipeline.Message) {
		back, err := codec.Decode(m.Native)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := codec.Encode(back, nil); err != nil || !bytes.Equal(out, m.Native) {
			t.Errorf("message %d does not come back: %v", m.Seq, err)
		}
		if len(back.Parts) != len(m.Parts) || back.Role != m.Role {
			t.Errorf("message %d is decoded as another", m.Seq)
		}
		for line := range bytes.SplitSeq(m.Native, []byte{'\n'}) {
			lines[string(line)]++
		}
		if c.Source == "" && f.Format != transcript.ClaudeCode && !bytes.Contains(data, m.Native) {
			t.Errorf("message %d differs from the file", m.Seq)
		}
	}
	for _, c := range f.Conversations {
		for _, m := range c.Messages {
			check(c, m)
		}
		for _, x := range c.Compactions {
			check(c, x.Summary)
		}
	}
	if f.Format != transcript.ClaudeCode {
		return
	}
	left := 0
	for _, it := range f.Notes {
		switch it.Note.Code {
		case transcript.NoteSidechain, transcript.NoteSynthetic, transcript.NoteDuplicate,
			transcript.NoteBranch:
			left += it.Note.Count
		}
	}
	for line := range bytes.SplitSeq(bytes.TrimSpace(data), []byte{'\n'}) {
		var r struct{ Type string }
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Type != "user" && r.Type != "assistant" {
			continue
		}
		key := string(bytes.TrimSpace(line))
		switch lines[key] {
		case 1:
			delete(lines, key)
		case 0:
			left--
		default:
			t.Errorf("a line belongs to %d messages", lines[key])
		}
	}
	if left != 0 || len(lines) != 0 {
		t.Errorf("%d lines are unaccounted for, %d are not from the file", -left, len(lines))
	}
}

// usage holds Claude Code's figures to one for each answer of the API.
func usage(t *testing.T, f transcript.File, data []byte) {
	t.Helper()
	if f.Format != transcript.ClaudeCode {
		return
	}
	ids := map[string]bool{}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		var r struct {
			IsSidechain bool
			Message     struct {
				ID, Model, Role string
				Usage           map[string]any
			}
		}
		if json.Unmarshal(line, &r) == nil && r.Message.Role == "assistant" && r.Message.Model != "<synthetic>" &&
			r.Message.Usage != nil && r.IsSidechain == f.Conversations[0].Sidechain {
			ids[r.Message.ID] = true
		}
	}
	// One file has an answer of zeros, for a request that was interrupted: no figure.
	zero := 0
	if strings.Contains(t.Name(), "cc-zh-hant") {
		zero = 1
	}
	c := f.Conversations[0]
	if len(c.Usage) != len(ids)-zero {
		t.Errorf("%d usage figures for %d answers", len(c.Usage), len(ids))
	}
	for _, u := range c.Usage {
		if m := c.Messages[u.Covers-1]; m.Role != pipeline.RoleAssistant || u.Used != u.Input+u.CacheRead+
			u.CacheCreation+u.Output {
			t.Errorf("usage %+v is tied to message %d of role %s", u.Usage, u.Covers, m.Role)
		}
	}
}

// written writes each conversation as a context and validates it for the API.
func written(t *testing.T, f transcript.File) {
	t.Helper()
	for _, target := range []transcript.Format{transcript.Anthropic, transcript.OpenAI} {
		for _, c := range f.Conversations {
			vendor := string(f.Format)
			if f.Format == transcript.ClaudeCode {
				vendor = string(transcript.Anthropic)
			}
			context := must(pipeline.BuildContext(t.Context(), pipeline.ContextInput{
				Live: c.Messages, SummaryText: "<conversation_summary>\nearlier\n</conversation_summary>",
				Settings: pipeline.DefaultSettings(), Window: 200_000, Vendor: vendor,
			}))
			var b bytes.Buffer
			losses, err := convert.WriteFile(&b, target, transcript.Output{Meta: c.Meta, Items: context.Items})
			if err != nil {
				t.Fatal(err)
			}
			if target == f.Format && len(losses) > 0 {
				t.Errorf("written in its own format it loses %+v", losses)
			}
			validate := vendorserver.ValidateAnthropicRequest
			if target == transcript.OpenAI {
				validate = vendorserver.ValidateOpenAIRequest
			}
			if err := validate(b.Bytes(), vendorserver.ValidateOptions{}); err != nil {
				t.Errorf("as %s: %v", target, err)
			}
		}
	}
}

// asked builds, of each request that was recorded, the one that asks the agent's model for its summary: it begins
// with the same bytes, up to the end of the last message.
func asked(t *testing.T, f transcript.File, data []byte) {
	t.Helper()
	for _, c := range f.Conversations {
		messages := c.Messages
		switch c.Source {
		case "":
		case "recorded-http", "litellm-log": // the answer follows the request
			messages = messages[:len(messages)-1]
		default:
			continue
		}
		if f.Format == transcript.ClaudeCode {
			continue
		}
		codec, err := transcript.CodecFor(f.Format)
		if err != nil {
			t.Fatal(err)
		}
		instruction, err := codec.Make(pipeline.Made{Role: pipeline.RoleUser, Text: "Summarise."})
		if err != nil {
			t.Fatal(err)
		}
		r := request.Input{
			Format: f.Format, Envelope: c.Envelope, System: c.System, Tools: c.Tools,
			MaxTokens: 4096, Append: instruction,
		}
		for _, m := range messages {
			r.Messages = append(r.Messages, m.Native)
		}
		body, err := request.Build(r)
		if err != nil {
			t.Fatal(err)
		}
		end := bytes.Index(body, instruction)
		prefix := bytes.TrimRight(body[:end], ", \n\t")
		if len(prefix) < len(messages[len(messages)-1].Native) || !bytes.Contains(data, prefix) {
			t.Errorf("the prefix is not that of the request: %.300s", prefix)
		}
		if !json.Valid(body) {
			t.Errorf("it is not JSON: %.300s", body)
		}
	}
}
