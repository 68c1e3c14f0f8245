package transcript

import (
	"strings"

	"precis/pipeline"
)

// The files in which agents keep their chat-completions messages. The name of each is the one that Meta.Source
// has.
const (
	sourceTau          = "tau-bench"      // [{task_id,…,traj:[messages]}]
	sourceMiniSWE      = "mini-swe-agent" // {info,messages,trajectory_format}
	sourceSWE          = "swe-agent"      // {trajectory,history,…}
	sourceLiteLLM      = "litellm-log"    // JSONL of {type:"request",request_params} and {type:"response",response}
	sourceOpenHands    = "openhands"      // {messages,response,args,kwargs}
	sourceOpenHandsSDK = "openhands-sdk"  // {messages,tools,kwargs,response,context_window,…}
)

func openOpenAI(s *stream, o Options) source {
	return openDocuments(s, o, dialect{
		format:   OpenAI,
		decode:   decodeOpenAI,
		wrapper:  openAIWrapper,
		clean:    cleanOpenAI,
		envelope: openAIEnvelope,
		request:  openAIRequest,
		answer:   openAIAnswer,
	})
}

func openAIWrapper(b []byte, outer span, arrayKey string) string {
	switch arrayKey {
	case "traj":
		return sourceTau
	case "history":
		return sourceSWE
	}
	if b == nil {
		return sourceUnknown
	}
	keys := map[string]byte{}
	for key, f := range fields(b, outer) {
		keys[string(key)] = kind(b, f.value)
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := keys[n]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case has("request_params"):
		return sourceLiteLLM
	case keys["request"] == '{':
		return sourceHTTP
	case has("trajectory_format"), has("info", "instance_id"):
		return sourceMiniSWE
	case keys["response"] == '{' && has("context_window"), keys["response"] == '{' && has("latency_sec"):
		return sourceOpenHandsSDK
	case keys["response"] == '{' && has("kwargs"):
		return sourceOpenHands
	}
	return ""
}

// openAIEnvelope makes the request object of a wrapped conversation. Where the wrapper holds a request it is
// that one, without what the client library keeps for itself; else it is put together of what is known.
func openAIEnvelope(b []byte, outer span, m *Meta) {
	m.Vendor = "openai"
	switch m.Source {
	case sourceLiteLLM, sourceHTTP:
		v, ok := get(b, outer, "request_params")
		if !ok {
			v, _ = get(b, outer, "request")
		}
		openAIRequest(b, v, m)
		m.Envelope = v.of(b)
		if m.Source == sourceLiteLLM {
			m.Envelope, _ = dropKeys(b, v, func(key string, value span) bool {
				switch key {
				case "api_key", "api_version", "api_base", "base_url", "fallbacks", "custom_llm_provider",
					"num_retries", "timeout", "metadata":
					return true
				}
				return kind(b, value) == 'n'
			})
		}
		return
	case sourceTau:
		m.ID = joinID(text(b, first(get(b, outer, "task_id"))), numeral(b, first(get(b, outer, "task_id"))),
			"trial", numeral(b, first(get(b, outer, "trial"))))
	case sourceMiniSWE:
		m.ID = text(b, first(get(b, outer, "instance_id")))
		m.Model = text(b, first(dig(b, outer, "info", "config", "model", "model_name")))
	case sourceSWE:
		m.ID = text(b, first(dig(b, outer, "replay_config", "problem_statement", "id")))
		if name := text(b, first(dig(b, outer, "replay_config", "agent", "model", "name"))); name != "replay" &&
			name != "human" {
			m.Model = name // the other two are stand-ins of the agent's
		}
	case sourceOpenHands, sourceOpenHandsSDK:
		m.Model = text(b, first(dig(b, outer, "response", "model")))
		if v, ok := get(b, outer, "tools"); ok && kind(b, v) == '[' {
			m.Tools = v.of(b)
		} else if v, ok := dig(b, outer, "kwargs", "tools"); ok && kind(b, v) == '[' {
			m.Tools = v.of(b)
		}
		for _, key := range []string{"max_completion_tokens", "max_tokens"} {
			if v, ok := dig(b, outer, "kwargs", key); ok {
				m.MaxTokens = number(b, v)
			}
		}
	}
	m.Envelope = newEnvelope(*m)
}

// newEnvelope is a request object made of what is known of a conversation.
func newEnvelope(m Meta) []byte {
	out := []byte{'{'}
	if m.Model != "" {
		out = append(append(out, `"model":`...), modelName(m.Format, m.Model)...)
		out = append(out, ',')
	}
	out = append(append(out, quote(messagesKey(m.Format))...), `:[]`...)
	if m.Tools != nil {
		out = append(append(out, `,"tools":`...), m.Tools...)
	}
	return append(out, '}')
}

// numeral is a number as it is written, "" for anything else.
func numeral(b []byte, v span) string {
	if kind(b, v) != '0' {
		return ""
	}
	return string(v.of(b))
}

func joinID(words ...string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, "-")
}

// cleanOpenAI makes a message of a wrapper into one that the API takes. Messages of plain requests, and of logs
// of requests, were taken by their API already: they stay as they are. answered says that the agent has spoken
// before.
func cleanOpenAI(source string, native []byte, answered bool) cleaned {
	c := cleaned{native: native}
	v := root(native)
	if extra, ok := get(native, v, "extra"); ok && source == sourceUnknown && kind(native, extra) == '{' {
		source = sourceMiniSWE
	}
	switch source {
	case "", sourceUnknown, sourceLiteLLM, sourceHTTP:
		return c
	case sourceMiniSWE:
		if role := text(native, first(get(native, v, "role"))); role == "exit" {
			c.role, c.skip = role, "the agent's own record of how the run ended is no message of the API"
			return c
		}
		if response, ok := dig(native, v, "extra", "response"); ok && kind(native, response) == '{' {
			c.usage = openAIUsage(native, response)
		}
	case sourceSWE:
		c.native = sweResult(native, v)
		// Where the agent has no tool calls its observations are user messages; demonstrations are too. Only the
		// first, which is called an observation as well, has the task.
		demo, _ := get(native, v, "is_demo")
		if text(native, first(get(native, v, "role"))) == "user" && (answered || kind(native, demo) == 't') {
			c.kind = pipeline.KindSynthetic
		}
	}
	c.native, c.cut = tidy(c.native)
	return c
}

// sweResult gives a result of SWE-agent 1.x the key that the API wants: it lists the one id that it answers.
func sweResult(native []byte, v span) []byte {
	for key, f := range fields(native, v) {
		if string(key) != "tool_call_ids" || kind(native, f.value) != '[' {
			continue
		}
		if ids := elements(native, f.value); len(ids) == 1 {
			pair := append([]byte(`"tool_call_id": `), ids[0].of(native)...)
			return apply(native, []splice{{f.pair, pair}})
		}
	}
	return native
}
