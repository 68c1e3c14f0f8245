package transcript

import (
	"precis/pipeline"
)

// The Responses API of OpenAI: https://platform.openai.com/docs/api-reference/responses. A message here is one
// item of a request's input or of a response's output; what an item is stands in openai_items.go. Its files are
// request objects, response objects, arrays of items, and recorded requests with their responses.
//
// What only the vendor can read passes through unchanged: encrypted reasoning, and the compaction items of
// /responses/compact and of the compaction on the server. Such an item stands for everything that the model said
// before it, so a Compaction that keeps the item follows on each.

// sourceResponse is a response object on its own: its output is the conversation.
const sourceResponse = "response"

type responsesCodec struct{}

func (responsesCodec) Format() Format { return OpenAIResponses }

func (responsesCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(OpenAIResponses, native, decodeResponses)
}

// decodeResponses decodes an item that is known to be sound JSON.
func decodeResponses(native []byte) (pipeline.Message, error) {
	l := &layout{native: native}
	it, err := l.item(OpenAIResponses, root(native))
	if err != nil {
		return pipeline.Message{}, err
	}
	return l.itemMessage(it), nil
}

func (responsesCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := whole(m.Native); err != nil {
		return nil, parseError(OpenAIResponses, "%v", err)
	}
	l := &layout{native: m.Native}
	if _, err := l.item(OpenAIResponses, root(m.Native)); err != nil {
		return nil, err
	}
	return l.edit(edits, itemInput)
}

func (responsesCodec) Make(m pipeline.Made) ([]byte, error) { return madeItem(m) }

func (responsesCodec) address(p pipeline.Part) string { return itemAddress(p) }

// responsesAddress is where the vendor has the API.
const responsesAddress = "https://api.openai.com/v1/responses"

func detectResponses(s sketched) bool {
	if s.hasPrefix("[].uri", responsesAddress) || s.hasPrefix("uri", responsesAddress) {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		if !s.has(at+"input") || s.has(at+"messages", at+"contents") {
			continue
		}
		if itemsIn(s, at+"input[]") || s.has(at+"input[].role", at+"instructions", at+"previous_response_id") ||
			s.has(at+"model") && !s.has(at+"encoding_format", at+"dimensions", at+"voice") {
			return true
		}
	}
	return s.has("object=response", "object=response.compaction") && s.has("output") || itemsIn(s, "[]")
}

// itemsIn says whether an array has items that only this API has.
func itemsIn(s sketched, at string) bool {
	typ := at + ".type="
	return s.has(typ+"function_call_output", typ+"custom_tool_call", typ+"item_reference") ||
		s.has(typ+"function_call") && s.has(at+".call_id") || s.has(typ+"reasoning") && s.has(at+".summary") ||
		s.has(typ+"compaction") && s.has(at+".encrypted_content") || s.has(typ+"message") &&
		s.has(at+".content[].type=input_text", at+".content[].type=output_text")
}

func openResponses(s *stream, o Options) source {
	return openDocuments(s, o, dialect{
		format:   OpenAIResponses,
		arrays:   []string{"input"},
		outer:    []string{"output"},
		response: "output",
		decode:   decodeResponses,
		wrapper:  httpWrapper,
		clean:    untouched,
		envelope: recorded(responsesRequest),
		request:  responsesRequest,
		answer:   responsesAnswer,
		text:     responsesText,
		summary:  compactionItem,
		follows:  responsesFollows,
	})
}

// responsesRequest reads the facts of a request object, or of a response: that repeats what it was asked.
func responsesRequest(b []byte, v span, m *Meta) {
	m.Vendor = "openai"
	for key, f := range fields(b, v) {
		switch string(key) {
		case "model":
			m.Model = text(b, f.value)
		case "instructions":
			m.System = present(b, f.value)
		case "tools":
			if kind(b, f.value) == '[' && len(elements(b, f.value)) > 0 {
				m.Tools = f.value.of(b)
			}
		case "max_output_tokens":
			m.MaxTokens = number(b, f.value)
		case "previous_response_id", "conversation":
			m.Continued = m.Continued || kind(b, f.value) != 'n'
		case "object":
			if text(b, f.value) != "" {
				m.Source = sourceResponse
			}
		}
	}
	if m.Source != sourceResponse {
		return
	}
	// A file that is written of it is a request, whose input is what the vendor gave out.
	m.Envelope = newEnvelope(*m)
}

// responsesAnswer gives the items of a response as the next input would hold them. Of a compaction's it is the
// compaction item alone: the messages beside it repeat what was said before. The usage of that is what the
// compaction cost, and no size of a context.
func responsesAnswer(response []byte) ([][]byte, *Usage) {
	v := root(response)
	output, ok := get(response, v, "output")
	if !ok || kind(response, output) != '[' {
		return nil, nil
	}
	compaction := text(response, first(get(response, v, "object"))) == "response.compaction"
	var items [][]byte
	for _, el := range elements(response, output) {
		if kind(response, el) == '{' && (!compaction || isCompaction(response, el)) {
			items = append(items, el.of(response))
		}
	}
	usage, ok := get(response, v, "usage")
	if !ok || compaction {
		return items, nil
	}
	return items, responsesUsage(response, usage, text(response, first(get(response, v, "model"))))
}

// responsesUsage reads a usage object, nil when it says nothing.
func responsesUsage(b []byte, at span, model string) *Usage {
	if kind(b, at) != '{' {
		return nil
	}
	u := Usage{Model: model, Output: number(b, first(get(b, at, "output_tokens")))}
	input := number(b, first(get(b, at, "input_tokens")))
	u.CacheRead = number(b, first(dig(b, at, "input_tokens_details", "cached_tokens")))
	u.Input = max(input-u.CacheRead, 0)
	if u.Used = number(b, first(get(b, at, "total_tokens"))); u.Used == 0 {
		u.Used = input + u.Output
	}
	if u.Used == 0 {
		return nil
	}
	return &u
}

// responsesText finds an input that is a plain string, and gives the message that it stands for.
func responsesText(b []byte, v span) (at span, message []byte) {
	at, ok := get(b, v, "input")
	if !ok || kind(b, at) != '"' {
		return span{}, nil
	}
	return at, append(append([]byte(`{"role":"user","content":`), at.of(b)...), '}')
}

// responsesFollows says how a request of a log goes on from an earlier one: with previous_response_id, the key that
// cut names, it holds only what is new; with the compaction item of the earlier response it holds that and what is
// new.
func responsesFollows(request []byte, v span, messages []rawMessage, response []byte) (cut string, ok bool) {
	r := root(response)
	if previous := text(request, first(get(request, v, "previous_response_id"))); previous != "" {
		return "previous_response_id", previous == text(response, first(get(response, r, "id")))
	}
	output, found := get(response, r, "output")
	if len(messages) == 0 || !found || kind(response, output) != '[' {
		return "", false
	}
	for _, el := range elements(response, output) {
		if isCompaction(response, el) && sameJSON(el.of(response), messages[0].native) {
			return "", true
		}
	}
	return "", false
}

// compactionItem gives the summary that a compaction item is of what the model said before it. Where it has said
// nothing there is nothing: /responses/compact gives user messages and the item behind them, and all of it is the
// context.
func compactionItem(m pipeline.Message, answered bool) (pipeline.Message, bool) {
	if !answered || len(m.Parts) != 1 || m.Parts[0].Type != "compaction" {
		return m, false
	}
	m.Kind = pipeline.KindSummary
	return m, true
}

// httpWrapper knows recorded requests.
func httpWrapper(b []byte, outer span, _ string) string {
	if b == nil {
		return ""
	}
	if v, ok := get(b, outer, "request"); ok && kind(b, v) == '{' {
		return sourceHTTP
	}
	return ""
}

// untouched is for messages that were taken by their API already.
func untouched(_ string, native []byte, _ bool) cleaned { return cleaned{native: native} }

// recorded makes the envelope of a recorded request.
func recorded(request func(b []byte, v span, m *Meta)) func(b []byte, outer span, m *Meta) {
	return func(b []byte, outer span, m *Meta) {
		v, _ := get(b, outer, "request")
		m.Envelope = v.of(b)
		request(b, v, m)
	}
}
