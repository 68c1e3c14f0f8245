package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

// The files in which agents store chat-completions messages, by their name in Meta.Source.
const (
	sourceTau          = "tau-bench"      // [{task_id,…,traj:[messages]}]
	sourceMiniSWE      = "mini-swe-agent" // {info,messages,trajectory_format}
	sourceSWE          = "swe-agent"      // {trajectory,history,…}
	sourceLiteLLM      = "litellm-log"    // JSONL of {type:"request",request_params} and {type:"response",response}
	sourceOpenHands    = "openhands"      // {messages,response,args,kwargs}
	sourceOpenHandsSDK = "openhands-sdk"  // {messages,tools,kwargs,response,context_window,…}
)

func (f openAIChat) open(s *jsonstream.Reader, o Options) source {
	return openDocuments(s, o, dialect{
		format:   f,
		wrapper:  f.wrapper,
		clean:    f.clean,
		envelope: f.envelope,
		request:  f.request,
		answer:   f.answer,
	})
}

func (openAIChat) wrapper(b []byte, outer rawjson.Value, arrayKey string) string {
	switch arrayKey {
	case "traj":
		return sourceTau
	case "history":
		return sourceSWE
	}
	if b == nil {
		return sourceUnknown
	}
	keys := map[string]rawjson.Kind{}
	for key, field := range outer.Fields() {
		keys[string(key)] = field.Value.Kind()
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
	case keys["request"] == rawjson.Object:
		return sourceHTTP
	case has("trajectory_format"), has("info", "instance_id"):
		return sourceMiniSWE
	case keys["response"] == rawjson.Object && has("context_window"),
		keys["response"] == rawjson.Object && has("latency_sec"):
		return sourceOpenHandsSDK
	case keys["response"] == rawjson.Object && has("kwargs"):
		return sourceOpenHands
	}
	return ""
}

// envelope makes the request object of a wrapped conversation. If the wrapper contains a request, it is that one
// without the keys of the client library, else a new one from the metadata.
func (f openAIChat) envelope(b []byte, outer rawjson.Value, m *Meta) {
	m.Vendor = "openai"
	switch m.Source {
	case sourceLiteLLM, sourceHTTP:
		v, ok := outer.Lookup("request_params")
		if !ok {
			v = outer.Get("request")
		}
		f.request(b, v, m)
		m.Envelope = v.Raw()
		if m.Source == sourceLiteLLM {
			m.Envelope, _ = v.DropKeys(func(key string, value rawjson.Value) bool {
				switch key {
				case "api_key", "api_version", "api_base", "base_url", "fallbacks", "custom_llm_provider",
					"num_retries", "timeout", "metadata":
					return true
				}
				return value.IsNull()
			})
		}
		return
	case sourceTau:
		m.ID = joinID(outer.Get("task_id").Text(), outer.Get("task_id").Numeral(),
			"trial", outer.Get("trial").Numeral())
	case sourceMiniSWE:
		m.ID = outer.Get("instance_id").Text()
		m.Model = outer.Get("info", "config", "model", "model_name").Text()
	case sourceSWE:
		m.ID = outer.Get("replay_config", "problem_statement", "id").Text()
		if name := outer.Get("replay_config", "agent", "model", "name").Text(); name != "replay" &&
			name != "human" {
			m.Model = name // the other two are placeholders of the agent
		}
	case sourceOpenHands, sourceOpenHandsSDK:
		m.Model = outer.Get("response", "model").Text()
		if v, ok := outer.Lookup("tools"); ok && v.IsArray() {
			m.Tools = v.Raw()
		} else if v, ok := outer.Lookup("kwargs", "tools"); ok && v.IsArray() {
			m.Tools = v.Raw()
		}
		for _, key := range []string{"max_completion_tokens", "max_tokens"} {
			if v, ok := outer.Lookup("kwargs", key); ok {
				m.MaxTokens = v.Count()
			}
		}
	}
	m.Envelope = m.NewEnvelope()
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

// clean makes a message of a wrapper into one that the API takes. Messages of plain requests, and of logs of
// requests, were accepted by their API before: they stay as they are. answered is true after the first message of the
// agent.
func (f openAIChat) clean(source string, native []byte, answered bool) cleaned {
	c := cleaned{native: native}
	v := rawjson.Root(native)
	if extra, ok := v.Lookup("extra"); ok && source == sourceUnknown && extra.IsObject() {
		source = sourceMiniSWE
	}
	switch source {
	case "", sourceUnknown, sourceLiteLLM, sourceHTTP:
		return c
	case sourceMiniSWE:
		if role := v.Get("role").Text(); role == "exit" {
			c.role, c.skip = role, "the agent's own record of how the run ended, not a message of the API"
			return c
		}
		if response, ok := v.Lookup("extra", "response"); ok && response.IsObject() {
			c.usage = f.usage(response)
		}
	case sourceSWE:
		c.native = f.sweResult(native, v)
		// For an agent without tool calls, observations and demonstrations are user messages. Only the first
		// observation has the task.
		demo := v.Get("is_demo")
		if v.Get("role").Text() == "user" && (answered || demo.IsTrue()) {
			c.kind = pipeline.KindSynthetic
		}
	}
	c.native, c.cut = f.tidy(c.native)
	return c
}

// sweResult adds the key that the API requires to a result of SWE-agent 1.x, which has a list with the only id that
// it answers.
func (openAIChat) sweResult(native []byte, v rawjson.Value) []byte {
	for key, field := range v.Fields() {
		if string(key) != "tool_call_ids" || !field.Value.IsArray() {
			continue
		}
		if ids := field.Value.Elements(); len(ids) == 1 {
			pair := fmt.Appendf(nil, `"tool_call_id": %s`, ids[0].Raw())
			return field.Pair.With(pair)
		}
	}
	return native
}
