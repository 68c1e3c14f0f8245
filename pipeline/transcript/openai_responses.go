package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
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
	it, err := l.item(OpenAIResponses, rawjson.Root(native))
	if err != nil {
		return pipeline.Message{}, err
	}
	return l.itemMessage(it), nil
}

func (responsesCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := rawjson.Check(m.Native); err != nil {
		return nil, parseError(OpenAIResponses, "%v", err)
	}
	l := &layout{native: m.Native}
	if _, err := l.item(OpenAIResponses, rawjson.Root(m.Native)); err != nil {
		return nil, err
	}
	return l.edit(edits, itemInput)
}

func (responsesCodec) Make(m pipeline.Made) ([]byte, error) { return madeItem(m) }

func (responsesCodec) address(p pipeline.Part) string { return itemAddress(p) }

// responsesAddress is where the vendor has the API.
const responsesAddress = "https://api.openai.com/v1/responses"

func detectResponses(s rawjson.Outline) bool {
	if s.HasPrefix("[].uri", responsesAddress) || s.HasPrefix("uri", responsesAddress) {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		if !s.Has(at+"input") || s.Has(at+"messages", at+"contents") {
			continue
		}
		if itemsIn(s, at+"input[]") || s.Has(at+"input[].role", at+"instructions", at+"previous_response_id") ||
			s.Has(at+"model") && !s.Has(at+"encoding_format", at+"dimensions", at+"voice") {
			return true
		}
	}
	return s.Has("object=response", "object=response.compaction") && s.Has("output") || itemsIn(s, "[]")
}

// itemsIn says whether an array has items that only this API has.
func itemsIn(s rawjson.Outline, at string) bool {
	typ := at + ".type="
	return s.Has(typ+"function_call_output", typ+"custom_tool_call", typ+"item_reference") ||
		s.Has(typ+"function_call") && s.Has(at+".call_id") || s.Has(typ+"reasoning") && s.Has(at+".summary") ||
		s.Has(typ+"compaction") && s.Has(at+".encrypted_content") || s.Has(typ+"message") &&
		s.Has(at+".content[].type=input_text", at+".content[].type=output_text")
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
func responsesRequest(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "openai"
	for key, f := range v.Fields() {
		switch string(key) {
		case "model":
			m.Model = f.Value.Text()
		case "instructions":
			m.System = f.Value.Present()
		case "tools":
			if f.Value.IsArray() && !f.Value.IsEmpty() {
				m.Tools = f.Value.Raw()
			}
		case "max_output_tokens":
			m.MaxTokens = f.Value.Count()
		case "previous_response_id", "conversation":
			m.Continued = m.Continued || !f.Value.IsNull()
		case "object":
			if f.Value.Text() != "" {
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
	v := rawjson.Root(response)
	output, ok := v.Lookup("output")
	if !ok || !output.IsArray() {
		return nil, nil
	}
	compaction := v.Get("object").Text() == "response.compaction"
	var items [][]byte
	for _, el := range output.Elements() {
		if el.IsObject() && (!compaction || isCompaction(el)) {
			items = append(items, el.Raw())
		}
	}
	usage, ok := v.Lookup("usage")
	if !ok || compaction {
		return items, nil
	}
	return items, responsesUsage(usage, v.Get("model").Text())
}

// responsesUsage reads a usage object, nil when it says nothing.
func responsesUsage(at rawjson.Value, model string) *Usage {
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

// responsesText finds an input that is a plain string, and gives the message that it stands for.
func responsesText(b []byte, v rawjson.Value) (at rawjson.Value, message []byte) {
	at, ok := v.Lookup("input")
	if !ok || !at.IsString() {
		return rawjson.Value{}, nil
	}
	return at, fmt.Appendf(nil, `{"role":"user","content":%s}`, at.Raw())
}

// responsesFollows says how a request of a log goes on from an earlier one: with previous_response_id, the key that
// cut names, it holds only what is new; with the compaction item of the earlier response it holds that and what is
// new.
func responsesFollows(request []byte, v rawjson.Value, messages []rawMessage, response []byte) (cut string, ok bool) {
	r := rawjson.Root(response)
	if previous := v.Get("previous_response_id").Text(); previous != "" {
		return "previous_response_id", previous == r.Get("id").Text()
	}
	output, found := r.Lookup("output")
	if len(messages) == 0 || !found || !output.IsArray() {
		return "", false
	}
	for _, el := range output.Elements() {
		if isCompaction(el) && rawjson.Same(el.Raw(), messages[0].native) {
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
func httpWrapper(b []byte, outer rawjson.Value, _ string) string {
	if b == nil {
		return ""
	}
	if v, ok := outer.Lookup("request"); ok && v.IsObject() {
		return sourceHTTP
	}
	return ""
}

// untouched is for messages that were taken by their API already.
func untouched(_ string, native []byte, _ bool) cleaned { return cleaned{native: native} }

// recorded makes the envelope of a recorded request.
func recorded(request func(b []byte, v rawjson.Value, m *Meta)) func(b []byte, outer rawjson.Value, m *Meta) {
	return func(b []byte, outer rawjson.Value, m *Meta) {
		v, _ := outer.Lookup("request")
		m.Envelope = v.Raw()
		request(b, v, m)
	}
}
