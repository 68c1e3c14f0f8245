package pipeline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

// What an API takes is judged here from outside: messages in the API's own format, the whole way to the body of
// a request, and the strict validators of the test vendor.

// decoded makes messages out of their native forms, numbered from 1. A false metadata.synthetic or none is an
// ordinary message.
func decoded(t fataler, format transcript.Format, natives ...string) []pipeline.Message {
	t.Helper()
	codec, err := transcript.CodecFor(format)
	if err != nil {
		t.Fatal(err)
	}
	var ms []pipeline.Message
	for _, native := range natives {
		m, err := codec.Decode([]byte(native))
		if err != nil {
			t.Fatalf("%v in %s", err, native)
		}
		m.Seq = int64(len(ms) + 1)
		m.Tokens = pipeline.EstimateMessage(m)
		ms = append(ms, m)
	}
	return ms
}

// fataler is what a test and a property have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// sent gives the body that a context is sent in.
func sent(t fataler, format transcript.Format, c pipeline.Context) []byte {
	t.Helper()
	var b bytes.Buffer
	losses, err := convert.WriteFile(&b, format,
		transcript.Output{Meta: transcript.Meta{Format: format, Model: "model", MaxTokens: 1000}, Items: c.Items})
	if err != nil {
		t.Fatal(err)
	}
	if len(losses) > 0 {
		t.Fatalf("losses within one format: %+v", losses)
	}
	return b.Bytes()
}

// taken checks that the API takes the context, and gives the messages of the request.
func taken(t fataler, format transcript.Format, c pipeline.Context) []json.RawMessage {
	t.Helper()
	body := sent(t, format, c)
	validated(t, format, body)
	return messagesOf(t, body)
}

func validated(t fataler, format transcript.Format, body []byte) {
	t.Helper()
	validate := vendorserver.ValidateOpenAI
	if format == transcript.Anthropic {
		validate = vendorserver.ValidateAnthropic
	}
	if err := validate(body); err != nil {
		t.Fatalf("%v in\n%.5000s", err, body)
	}
}

func messagesOf(t fataler, body []byte) []json.RawMessage {
	t.Helper()
	var request struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	return request.Messages
}

func calling(text string, ids ...string) string {
	var calls []string
	for _, id := range ids {
		calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}`, id))
	}
	return fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, text, strings.Join(calls, ","))
}

// OpenAI wants every result directly behind the message that calls, also where the agent wrote several
// messages in a row.
func TestOpenAITakesMessagesInARow(t *testing.T) {
	t.Parallel()
	result := func(id string) string {
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"RESULT-%s"}`, id, id)
	}
	const ask, say = `{"role":"user","content":"ASK"}`, `{"role":"assistant","content":"SAY"}`
	for _, tt := range []struct {
		name     string
		messages []string
		want     string // of each message, its role or the id that it answers
	}{
		{
			"never answered, and the agent went on",
			[]string{ask, calling("null", "a"), say, ask},
			"user assistant a assistant user",
		},
		{
			"never answered, twice",
			[]string{ask, calling("null", "a"), calling("null", "b"), ask},
			"user assistant a assistant b user",
		},
		{
			"answered behind another message",
			[]string{ask, calling("null", "a"), say, result("a"), say},
			"user assistant a assistant assistant",
		},
		{
			"answered behind another call",
			[]string{ask, calling("null", "a", "b"), calling(`"x"`, "c"), result("c"), result("b"), result("a")},
			"user assistant b a assistant c",
		},
		{
			"one of them lost",
			[]string{ask, calling("null", "a"), calling("null", "b"), result("b"), say},
			"user assistant a assistant b assistant",
		},
		{
			"the user in between",
			[]string{ask, calling("null", "a"), say, ask, result("a")},
			"user assistant a assistant user",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := must(pipeline.BuildContext(t.Context(), pipeline.ContextInput{
				Live: decoded(t, transcript.OpenAI, tt.messages...), Settings: pipeline.DefaultSettings(),
				Vendor: "openai",
			}))
			var got []string
			for _, raw := range taken(t, transcript.OpenAI, c) {
				var m struct {
					Role       string
					ToolCallID string `json:"tool_call_id"`
					Content    any
				}
				if err := json.Unmarshal(raw, &m); err != nil {
					t.Fatal(err)
				}
				word := m.Role
				if m.Role == "tool" {
					word = m.ToolCallID
					recorded := slices.Contains(tt.messages, result(word))
					if recorded != (m.Content == "RESULT-"+word) {
						t.Errorf("the result of %s is %q", word, m.Content)
					}
				}
				got = append(got, word)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// genOpenAI draws messages of chat completions, each valid by itself, in any order.
func genOpenAI() *rapid.Generator[[]string] {
	id := rapid.SampledFrom([]string{"a", "b", "c"})
	text := rapid.SampledFrom([]string{
		`""`, `" "`, `"said"`, `[{"type":"text","text":"part"}]`,
		`[{"type":"text","text":""},{"type":"text","text":"x"}]`,
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		switch rapid.SampledFrom([]string{"user", "assistant", "calls", "calls", "tool", "tool", "tool"}).Draw(t,
			"kind") {
		case "user":
			return `{"role":"user","content":` + text.Draw(t, "content") + `}`
		case "assistant":
			return `{"role":"assistant","content":` + text.Draw(t, "content") + `}`
		case "calls":
			content := rapid.OneOf(rapid.Just("null"), text).Draw(t, "content")
			return calling(content, rapid.SliceOfNDistinct(id, 1, 3, rapid.ID[string]).Draw(t, "ids")...)
		}
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id.Draw(t, "id"), text.Draw(t, "content"))
	}), 1, 9)
}

// genAnthropic draws messages of Anthropic's, each valid by itself but for blank texts, in any order. Every call has
// an id of its own, as that API demands; which of them has a result, and where, is left to chance.
func genAnthropic() *rapid.Generator[[]string] {
	said := rapid.SampledFrom([]string{
		`{"type":"text","text":"said"}`, `{"type":"text","text":" \n"}`,
		`{"type":"text","text":""}`,
	})
	list := func(role string, blocks []string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	return rapid.Custom(func(t *rapid.T) []string {
		calls, searches := 0, 0
		results := func(most int) (blocks []string) {
			// The newest calls most of all, now and then one that is still to come.
			ids := rapid.SliceOfNDistinct(rapid.IntRange(max(calls-3, 0), calls), 1, most, rapid.ID[int]).Draw(t, "ids")
			for _, id := range ids {
				content := rapid.SampledFrom([]string{
					`"found"`, `""`, `[{"type":"text","text":"found"}]`, `[{"type":"text","text":""}]`, `[]`,
					`[{"type":"text","text":" "},{"type":"text","text":"three words found"}]`,
				}).Draw(t, "content")
				blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}`, id,
					content))
			}
			return blocks
		}
		block := func() string {
			switch rapid.SampledFrom([]string{"text", "text", "call", "call", "thinking", "search", "found"}).Draw(t,
				"block") {
			case "call":
				calls++
				return fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"f","input":{}}`, calls-1)
			case "thinking":
				return `{"type":"thinking","thinking":"hm","signature":"c2ln"}`
			case "search":
				searches++
				return fmt.Sprintf(
					`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{"query":"q"}}`,
					searches-1)
			case "found":
				return fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":[]}`,
					max(searches-1, 0))
			}
			return said.Draw(t, "text")
		}
		var all []string
		for range rapid.IntRange(1, 9).Draw(t, "messages") {
			switch rapid.SampledFrom([]string{"user", "assistant", "assistant", "results", "results", "both"}).Draw(t,
				"kind") {
			case "assistant":
				var blocks []string
				for range rapid.IntRange(1, 4).Draw(t, "blocks") {
					blocks = append(blocks, block())
				}
				all = append(all, list("assistant", blocks))
			case "results":
				all = append(all, list("user", results(3)))
			case "both":
				all = append(all, list("user", append(results(2), said.Draw(t, "text"))))
			default:
				all = append(all, rapid.SampledFrom([]string{
					`{"role":"user","content":"ask"}`,
					list("user", []string{`{"type":"text","text":"ask"}`}),
				}).Draw(t, "user"))
			}
		}
		return all
	})
}

// The context of any conversation is a request that its API takes.
func TestContextIsTaken(t *testing.T) {
	t.Parallel()
	for format, natives := range map[transcript.Format]*rapid.Generator[[]string]{
		transcript.OpenAI: genOpenAI(), transcript.Anthropic: genAnthropic(),
	} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				in := pipeline.ContextInput{
					Live: decoded(t, format, natives.Draw(t, "natives")...), Settings: pipeline.DefaultSettings(),
					Vendor: string(format), Window: 1000,
					Valve:     rapid.SampledFrom([]pipeline.TailValve{"", pipeline.TailValveHeadTail}).Draw(t, "valve"),
					ValveUpTo: 5,
				}
				in.Settings.MaxInputTokens = rapid.SampledFrom([]int{0, 0, 30, 60}).Draw(t, "input budget")
				in.Settings.MaxToolResultTokens = rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "result cap")
				if rapid.Bool().Draw(t, "marker") {
					in.SummaryText = pipeline.SummaryText(pipeline.SummaryTextInput{Summary: "SUM"})
					in.Enrichments = []pipeline.Enrichment{{Key: "todo", Text: "one"}}
				}
				if c := must(pipeline.BuildContext(t.Context(),
					in)); len(c.Items) > 0 { // blanks alone leave nothing to send
					taken(t, format, c)
				}
			})
		})
	}
}
