package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/responses"
)

// The Responses API of OpenAI: https://platform.openai.com/docs/api-reference/responses. A message is one item of a
// request's input or of a response's output; package wire/responses reads items. Files are request objects, response
// objects, arrays of items, and recorded requests with their responses.
//
// Items that only the vendor can read stay unchanged: encrypted reasoning, and the compaction items of
// /responses/compact and of the compaction on the server. A compaction item replaces everything that the model said
// before it, so the reader emits a Compaction that keeps the item after each.

// sourceResponse is a response object on its own: its output is the conversation.
const sourceResponse = "response"

type openAIResponses struct{}

func (openAIResponses) name() Format { return OpenAIResponses }

func (openAIResponses) read(l *layout.Layout) error { return responses.Read(l, rawjson.Root(l.Native)) }

func (openAIResponses) message(l *layout.Layout) pipeline.Message { return responses.Message(l) }

func (openAIResponses) Make(m pipeline.Made) ([]byte, error) { return responses.Made(m) }

func (openAIResponses) address(p pipeline.Part) string { return responses.Address(p) }

// responsesAddress is the address of the vendor's API.
const responsesAddress = "https://api.openai.com/v1/responses"

func (f openAIResponses) detect(s rawjson.Outline) bool {
	if s.HasPrefix("[].uri", responsesAddress) || s.HasPrefix("uri", responsesAddress) {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		if !s.Has(at+"input") || s.Has(at+"messages", at+"contents") {
			continue
		}
		if f.itemsIn(s, at+"input[]") || s.Has(at+"input[].role", at+"instructions", at+"previous_response_id") ||
			s.Has(at+"model") && !s.Has(at+"encoding_format", at+"dimensions", at+"voice") {
			return true
		}
	}
	return s.Has("object=response", "object=response.compaction") && s.Has("output") || f.itemsIn(s, "[]")
}

// itemsIn reports whether an array has items that only this API uses.
func (openAIResponses) itemsIn(s rawjson.Outline, at string) bool {
	typ := at + ".type="
	return s.Has(typ+"function_call_output", typ+"custom_tool_call", typ+"item_reference") ||
		s.Has(typ+"function_call") && s.Has(at+".call_id") || s.Has(typ+"reasoning") && s.Has(at+".summary") ||
		s.Has(typ+"compaction") && s.Has(at+".encrypted_content") || s.Has(typ+"message") &&
		s.Has(at+".content[].type=input_text", at+".content[].type=output_text")
}

func (f openAIResponses) open(s *jsonstream.Reader, o Options) source {
	return openDocuments(s, o, dialect{
		format:   f,
		arrays:   []string{"input"},
		outer:    []string{"output"},
		response: "output",
		wrapper:  httpWrapper,
		clean:    untouched,
		envelope: recorded(f.request),
		request:  f.request,
		answer:   f.answer,
		text:     f.plainText,
		summary:  f.compaction,
		follows:  f.follows,
	})
}

// request reads model, instructions, tools and limits of a request object, or of a response, which repeats them.
func (openAIResponses) request(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "openai"
	for key, field := range v.Fields() {
		switch string(key) {
		case "model":
			m.Model = field.Value.Text()
		case "instructions":
			m.System = field.Value.Present()
		case "tools":
			if field.Value.IsArray() && !field.Value.IsEmpty() {
				m.Tools = field.Value.Raw()
			}
		case "max_output_tokens":
			m.MaxTokens = field.Value.Count()
		case "previous_response_id", "conversation":
			m.Continued = m.Continued || !field.Value.IsNull()
		case "object":
			if field.Value.Text() != "" {
				m.Source = sourceResponse
			}
		}
	}
	if m.Source != sourceResponse {
		return
	}
	// The file that is written from it is a request whose input is the vendor's output.
	m.Envelope = m.NewEnvelope()
}

// answer returns the items of a response as the next input would contain them. For the response of a compaction it
// returns only the compaction item, because the messages beside it repeat earlier ones, and no usage, because that is
// the cost of the compaction and not the size of a context.
func (f openAIResponses) answer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	output, ok := v.Lookup("output")
	if !ok || !output.IsArray() {
		return nil, nil
	}
	compaction := v.Get("object").Text() == "response.compaction"
	var items [][]byte
	for _, el := range output.Elements() {
		if el.IsObject() && (!compaction || responses.IsCompaction(el)) {
			items = append(items, el.Raw())
		}
	}
	usage, ok := v.Lookup("usage")
	if !ok || compaction {
		return items, nil
	}
	return items, f.usage(usage, v.Get("model").Text())
}

// usage reads a usage object. It returns nil if the object is empty.
func (openAIResponses) usage(at rawjson.Value, model string) *Usage {
	if !at.IsObject() {
		return nil
	}
	u := Usage{Model: model, Output: at.Get("output_tokens").Count()}
	input := at.Get("input_tokens").Count()
	u.CacheRead = at.Get("input_tokens_details", "cached_tokens").Count()
	u.Input = max(input-u.CacheRead, 0)
	if u.Used = at.Get("total_tokens").Count(); u.Used == 0 {
		u.Used = input + u.Output
	}
	if u.Used == 0 {
		return nil
	}
	return &u
}

// plainText finds an input that is a plain string, and returns the message that it means.
func (openAIResponses) plainText(b []byte, v rawjson.Value) (at rawjson.Value, message []byte) {
	at, ok := v.Lookup("input")
	if !ok || !at.IsString() {
		return rawjson.Value{}, nil
	}
	return at, fmt.Appendf(nil, `{"role":"user","content":%s}`, at.Raw())
}

// follows reports how a request of a log continues an earlier one: with previous_response_id, the key that
// cut names, it holds only what is new; with the compaction item of the earlier response it holds that and what is
// new.
func (openAIResponses) follows(request []byte, v rawjson.Value, messages []rawMessage,
	response []byte,
) (cut string, ok bool) {
	r := rawjson.Root(response)
	if previous := v.Get("previous_response_id").Text(); previous != "" {
		return "previous_response_id", previous == r.Get("id").Text()
	}
	output, found := r.Lookup("output")
	if len(messages) == 0 || !found || !output.IsArray() {
		return "", false
	}
	for _, el := range output.Elements() {
		if responses.IsCompaction(el) && rawjson.Same(el.Raw(), messages[0].native) {
			return "", true
		}
	}
	return "", false
}

// compaction returns the summary in a compaction item, for the messages before it. If the model has said nothing
// before, it returns nil: the output of /responses/compact is user messages followed by the item, and all of it is
// the context.
func (openAIResponses) compaction(m pipeline.Message, answered bool) (pipeline.Message, bool) {
	if !answered || len(m.Parts) != 1 || m.Parts[0].Type != "compaction" {
		return m, false
	}
	m.Kind = pipeline.KindSummary
	return m, true
}

// httpWrapper names the wrapper of recorded requests.
func httpWrapper(b []byte, outer rawjson.Value, _ string) string {
	if b == nil {
		return ""
	}
	if v, ok := outer.Lookup("request"); ok && v.IsObject() {
		return sourceHTTP
	}
	return ""
}

// untouched returns messages that their API has already accepted, unchanged.
func untouched(_ string, native []byte, _ bool) cleaned { return cleaned{native: native} }

// recorded makes the envelope of a recorded request.
func recorded(request func(b []byte, v rawjson.Value, m *Meta)) func(b []byte, outer rawjson.Value, m *Meta) {
	return func(b []byte, outer rawjson.Value, m *Meta) {
		v := outer.Get("request")
		m.Envelope = v.Raw()
		request(b, v, m)
	}
}
