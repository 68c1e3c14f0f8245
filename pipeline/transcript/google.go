package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// The generateContent API of Gemini: https://ai.google.dev/api/generate-content. A message is a Content. Its files are
// request objects, arrays of Contents, and recorded requests with their responses. Keys may be written as the API
// does (functionCall) or as its protocol buffers do (function_call): both are what the vendor takes.
//
// Calls mostly come without an id: pipeline.Pair goes by the tool's name then, in order.

type googleCodec struct{}

func (googleCodec) Format() Format { return Google }

func (googleCodec) Decode(native []byte) (pipeline.Message, error) {
	return decodeWhole(Google, native, decodeGoogle)
}

// decodeGoogle decodes a Content that is known to be sound JSON.
func decodeGoogle(native []byte) (pipeline.Message, error) {
	l, err := googleLayout(native)
	if err != nil {
		return pipeline.Message{}, err
	}
	return l.contentMessage(), nil
}

func (googleCodec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	return encodeWhole(Google, m, edits, googleLayout)
}

func (googleCodec) Make(m pipeline.Made) ([]byte, error) {
	role, part, err := googleMade(m)
	if err != nil {
		return nil, err
	}
	return wrapParts(role, [][]byte{part}), nil
}

func (googleCodec) address(p pipeline.Part) string { return googleAddress(p) }

func googleMade(m pipeline.Made) (role string, part []byte, err error) {
	switch m.Role {
	case pipeline.RoleTool:
		return "user", functionResponse(m.CallID, m.Name, rawjson.Quote(m.Text), m.IsError), nil
	case pipeline.RoleUser, pipeline.RoleAssistant:
		if strings.TrimSpace(m.Text) == "" {
			return "", nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes",
				m.Role)
		}
		if m.Role == pipeline.RoleAssistant {
			return "model", googleText(rawjson.Quote(m.Text)), nil
		}
		return "user", googleText(rawjson.Quote(m.Text)), nil
	}
	return "", nil, pipeline.Errorf(pipeline.Internal,
		"a message of role %s has no place among the contents of a request: the system instruction stands beside them",
		m.Role)
}

// googleText writes a text part; lit is its text as JSON.
func googleText(lit []byte) []byte {
	return fmt.Appendf(nil, `{"text":%s}`, lit)
}

// functionResponse writes the result of a call; output is what it gave, as JSON.
func functionResponse(id, name string, output []byte, isError bool) []byte {
	b := []byte(`{"functionResponse":{`)
	if id != "" {
		b = fmt.Appendf(b, `"id":%s,`, rawjson.Quote(id))
	}
	return fmt.Appendf(b, `"name":%s,"response":%s}}`, rawjson.Quote(name), googleOutput(output, isError))
}

// googleOutput writes what a function gave: the vendor asks for an object, with the key "output" or "error".
func googleOutput(output []byte, isError bool) []byte {
	key := `{"output":`
	if isError {
		key = `{"error":`
	}
	return append(append([]byte(key), output...), '}')
}

func wrapParts(role string, parts [][]byte) []byte {
	return fmt.Appendf(nil, `{"role":%s,"parts":[%s]}`, rawjson.Quote(role), rawjson.Join(parts))
}

// googleLayout reads {"role":…,"parts":[…]}, sound JSON.
func googleLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	v := rawjson.Root(native)
	if !v.IsObject() {
		return nil, parseError(Google, "it is no object")
	}
	var role, parts rawjson.Value
	v.Read(rawjson.Want{{"role", &role}, {"parts", &parts}})
	l.role = role.Text()
	switch l.role {
	case "", "user", "model", "function", "tool", "system":
	default:
		return nil, parseError(Google, "its role is not user or model")
	}
	switch parts.Kind() {
	case rawjson.Array:
	case rawjson.Missing, rawjson.Null:
		if role.IsMissing() {
			return nil, parseError(Google, "it has neither a role nor parts")
		}
		return l, nil
	default:
		return nil, parseError(Google, "its parts are no array")
	}
	nodes, err := l.googleParts(parts)
	l.nodes = nodes
	return l, err
}

// googleParts reads an array of parts, as a list of its own.
func (l *layout) googleParts(v rawjson.Value) ([]node, error) {
	l.entry = func(s string) []byte { return googleText(rawjson.Quote(s)) }
	els := v.Elements()
	row := l.addList(list{siblings: els, whole: v, parent: -1})
	nodes := make([]node, 0, len(els))
	for i, el := range els {
		n, err := l.googlePart(el)
		if err != nil {
			return nil, err
		}
		n.list, n.index = row, i
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// googlePart reads one part.
func (l *layout) googlePart(v rawjson.Value) (node, error) {
	if v.IsString() { // the client library takes a bare string
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: v.Text(), Raw: v.Raw()}, value: v,
			block: true,
		}, nil
	}
	if !v.IsObject() {
		return node{}, parseError(Google, "a part is no object")
	}
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.Raw()}}
	p := &n.part
	thought := false
	var txt rawjson.Value
	for key, f := range v.Fields() {
		switch rawjson.Camel(key) {
		case "text":
			txt = f.Value
		case "thought":
			thought = f.Value.IsTrue()
		case "functionCall":
			return l.functionCall(v, f.Value), nil
		case "functionResponse":
			return l.functionResponse(v, f.Value)
		case "inlineData", "fileData":
			googleMedia(p, f.Value)
			return n, nil
		case "executableCode", "toolCall":
			return l.googleVendorCall(v, rawjson.Camel(key), f.Value), nil
		case "codeExecutionResult", "toolResponse":
			return l.googleVendorResult(v, rawjson.Camel(key), f.Value), nil
		}
	}
	if s, ok := txt.Str(); ok {
		p.Kind, p.Text, n.value = pipeline.PartText, s, txt
		if thought {
			p.Kind, n.value = pipeline.PartReasoning, rawjson.Value{}
		}
	} else if thought {
		p.Kind = pipeline.PartReasoning
	}
	return n, nil
}

func (l *layout) functionCall(part, v rawjson.Value) node {
	n := node{part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "functionCall", Raw: part.Raw()}}
	if !v.IsObject() {
		return n
	}
	n.insert, n.key = v.End()-1, "args"
	for key, f := range v.Fields() {
		switch string(key) {
		case "id":
			n.part.CallID = f.Value.Text()
		case "name":
			n.part.Name = f.Value.Text()
		case "args":
			n.value = f.Value
			if !f.Value.IsNull() {
				n.part.Input = string(f.Value.Raw())
			}
		}
	}
	if v.IsEmpty() {
		n.insert = 0 // {} has nothing that a comma could follow
	}
	return n
}

func (l *layout) functionResponse(part, v rawjson.Value) (node, error) {
	n := node{part: pipeline.Part{Kind: pipeline.PartToolResult, Type: "functionResponse", Raw: part.Raw()}}
	if !v.IsObject() {
		return n, nil
	}
	var media rawjson.Value
	for key, f := range v.Fields() {
		switch string(key) {
		case "id":
			n.part.CallID = f.Value.Text()
		case "name":
			n.part.Name = f.Value.Text()
		case "response":
			n.value = f.Value
		case "parts":
			media = f.Value
		}
	}
	if !v.IsEmpty() {
		n.insert, n.key = v.End()-1, "response"
	}
	n.content, n.part.IsError = l.googleResponse(n.value)
	isError := n.part.IsError
	n.as = func(s string) ([]byte, error) { return googleOutput(rawjson.Quote(s), isError), nil }
	if !media.IsArray() {
		return n, nil
	}
	els := media.Elements()
	row := l.addList(list{siblings: els, whole: media, parent: -1})
	for i, el := range els {
		c, err := l.googlePart(el)
		if err != nil {
			return node{}, err
		}
		// Only media may stand there.
		c.list, c.index, c.wordless = row, i, true
		n.content = append(n.content, c)
	}
	return n, nil
}

// googleResponse reads what a function gave. Where that is a text under the usual key it is the text; any other
// object reads as its JSON.
func (l *layout) googleResponse(v rawjson.Value) (content []node, isError bool) {
	if !v.IsObject() {
		if s, ok := v.Str(); ok && s != "" {
			return []node{{
				part: pipeline.Part{Kind: pipeline.PartText, Text: s, Raw: v.Raw()}, list: -1, value: v,
				vacant: `""`, block: true,
			}}, false
		}
		return nil, false
	}
	keys, only := 0, rawjson.Value{}
	for key, f := range v.Fields() {
		keys++
		switch string(key) {
		case "error":
			isError, only = true, f.Value
		case "output", "result":
			only = f.Value
		}
	}
	switch {
	case keys == 0:
		return nil, false
	case keys == 1 && only.IsString():
		if only.IsEmpty() {
			return nil, isError
		}
		return []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: only.Text(), Raw: only.Raw()},
			list: -1, value: only, vacant: `""`, block: true,
		}}, isError
	}
	return []node{{
		part: pipeline.Part{Kind: pipeline.PartText, Text: string(v.Raw()), Raw: v.Raw()},
		list: -1, value: v, vacant: `{}`, block: true,
		as: func(s string) ([]byte, error) { return googleOutput(rawjson.Quote(s), isError), nil },
	}}, isError
}

// googleMedia reads inlineData or fileData.
func googleMedia(p *pipeline.Part, v rawjson.Value) {
	p.Kind = pipeline.PartFile
	if !v.IsObject() {
		return
	}
	var data rawjson.Value
	for key, f := range v.Fields() {
		switch rawjson.Camel(key) {
		case "mimeType":
			p.MediaType = f.Value.Text()
		case "displayName":
			p.Name = f.Value.Text()
		case "data":
			data = f.Value
		}
	}
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Kind = pipeline.PartImage
	}
	if !data.IsMissing() {
		binaryPart(p, data.Text())
	}
}

// googleAddress is where an image or a file is.
func googleAddress(p pipeline.Part) string {
	if len(p.Raw) == 0 {
		return ""
	}
	v := rawjson.Root(p.Raw)
	if at, ok := v.LookupCamel("inlineData"); ok {
		return base64URL(p.MediaType, at.GetCamel("data").Text())
	}
	at, _ := v.LookupCamel("fileData")
	uri := at.GetCamel("fileUri").Text()
	if strings.HasPrefix(uri, googleFiles) {
		return "" // what was uploaded there can be read there alone
	}
	return uri
}

// googleFiles is where files stand that were uploaded to the vendor.
const googleFiles = "https://generativelanguage.googleapis.com/"

// What the vendor runs itself comes as a call and a result in the model's own content.
func (l *layout) googleVendorCall(part rawjson.Value, typ string, v rawjson.Value) node {
	p := pipeline.Part{
		Kind: pipeline.PartToolCall, Type: typ, Name: "code_execution", Input: string(v.Raw()),
		Raw: part.Raw(),
	}
	if typ == "toolCall" {
		p.Name, p.CallID = v.GetCamel("toolType").Text(), v.Get("id").Text()
		if args, ok := v.Lookup("args"); ok {
			p.Input = string(args.Raw())
		}
	}
	return node{part: p, fixed: true}
}

func (l *layout) googleVendorResult(part rawjson.Value, typ string, v rawjson.Value) node {
	p := pipeline.Part{Kind: pipeline.PartToolResult, Type: typ, Name: "code_execution", Raw: part.Raw()}
	said, _ := v.Lookup("output")
	if typ == "toolResponse" {
		p.Name, p.CallID = v.GetCamel("toolType").Text(), v.Get("id").Text()
		said, _ = v.Lookup("response")
	} else {
		outcome := v.Get("outcome").Text()
		p.IsError = outcome != "" && outcome != "OUTCOME_OK"
	}
	n := node{part: p, fixed: true}
	if s := cmp.Or(said.Text(), string(said.Raw())); s != "" {
		n.content = []node{{
			fixed: true, list: -1,
			part: pipeline.Part{Kind: pipeline.PartText, Text: s, Raw: said.Raw()},
		}}
	}
	return n
}

// How the environment message of Gemini CLI begins, now and before version 0.20, and what the program says under the
// user's name to make the model go on.
var (
	geminiEnvironment = []string{
		"<session_context>",
		"This is the Gemini CLI. We are setting up the context for our chat.",
	}
	geminiContinue = "System: Please continue."
)

// contentMessage gives what the layout of a Content says.
func (l *layout) contentMessage() pipeline.Message {
	switch l.role {
	case "":
		l.role = "user"
	case "model":
		l.role = string(pipeline.RoleAssistant)
	case "function":
		l.role = string(pipeline.RoleTool)
	}
	m := l.message()
	if m.Role == pipeline.RoleUser && len(m.Parts) > 0 && m.Parts[0].Kind == pipeline.PartText {
		s := strings.TrimSpace(m.Parts[0].Text)
		switch {
		case slices.ContainsFunc(geminiEnvironment, func(with string) bool { return strings.HasPrefix(s, with) }):
			m.Kind = pipeline.KindUserInfo
		case s == geminiContinue && len(m.Parts) == 1:
			m.Kind = pipeline.KindSynthetic
		}
	}
	return m
}

func detectGoogle(s rawjson.Outline) bool {
	if s.HasPrefix("[].uri", googleFiles) || s.HasPrefix("uri", googleFiles) {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		if s.Has(at+"contents[].parts", at+"contents[].role") ||
			s.Has(at+"contents") && s.Has(at+"systemInstruction", at+"system_instruction", at+"generationConfig",
				at+"config", at+"model") {
			return true
		}
	}
	return s.Has("[].parts") && (s.Has("[].role=model") || s.Has("[].role=user", "[].parts[].text") &&
		!s.Has("[].info", "[].id"))
}

func openGoogle(s *stream, o Options) source {
	return openDocuments(s, o, dialect{
		format:   Google,
		arrays:   []string{"contents"},
		outer:    []string{"history"},
		bare:     func(s rawjson.Outline) bool { return s.Has("[].parts") },
		decode:   decodeGoogle,
		wrapper:  googleWrapper,
		clean:    untouched,
		envelope: googleEnvelopeOf,
		request:  googleRequest,
		answer:   googleAnswer,
		text:     googlePlainText,
	})
}

// sourceChat is what Gemini CLI saves of a chat, and what its own tests of compression hold one in: an object with
// the contents under "history".
const sourceChat = "gemini-chat"

func googleWrapper(b []byte, outer rawjson.Value, arrayKey string) string {
	if arrayKey == "history" {
		return sourceChat
	}
	return httpWrapper(b, outer, arrayKey)
}

func googleEnvelopeOf(b []byte, outer rawjson.Value, m *Meta) {
	m.Vendor = "google"
	if m.Source == sourceChat {
		m.ID = outer.Get("scenarioId").Text()
		m.Envelope = newEnvelope(*m)
		return
	}
	recorded(googleRequest)(b, outer, m)
	// The model stands in the address: …/models/NAME:generateContent.
	if _, rest, ok := strings.Cut(outer.Get("uri").Text(), "/models/"); ok && m.Model == "" {
		m.Model, _, _ = strings.Cut(rest, ":")
	}
}

// googleRequest reads the facts of a request object.
func googleRequest(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "google"
	library := false
	for key, f := range v.Fields() {
		switch rawjson.Camel(key) {
		case "model":
			m.Model = strings.TrimPrefix(f.Value.Text(), "models/")
		case "systemInstruction":
			m.System = f.Value.Present()
		case "tools":
			m.Tools = f.Value.Present()
		case "generationConfig":
			m.MaxTokens = f.Value.GetCamel("maxOutputTokens").Count()
		case "cachedContent":
			m.Continued = f.Value.IsString()
		case "maxOutputTokens":
			m.MaxTokens = f.Value.Count()
		case "config": // the client library is given the same, in an object beside the contents
			if library = f.Value.IsObject(); library {
				googleRequest(b, f.Value, m)
			}
		}
	}
	if library {
		m.Envelope = newEnvelope(*m)
	}
}

// googlePlainText finds contents that are a plain string, as the client library takes them.
func googlePlainText(b []byte, v rawjson.Value) (at rawjson.Value, message []byte) {
	at, ok := v.Lookup("contents")
	if !ok || !at.IsString() {
		return rawjson.Value{}, nil
	}
	return at, wrapParts("user", [][]byte{googleText(at.Raw())})
}

// googleAnswer gives the content of a response's first candidate as the next request would hold it.
func googleAnswer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	usage := googleUsage(v.GetCamel("usageMetadata"),
		v.GetCamel("modelVersion").Text())
	candidates, ok := v.Lookup("candidates")
	if !ok || !candidates.IsArray() {
		return nil, nil
	}
	els := candidates.Elements()
	if len(els) == 0 {
		return nil, nil
	}
	content, ok := els[0].Lookup("content")
	if !ok || !content.IsObject() {
		return nil, nil
	}
	native := content.Raw()
	if m, err := decodeGoogle(native); err != nil || len(m.Parts) == 0 {
		return nil, nil
	}
	if _, ok := rawjson.Root(native).Lookup("role"); !ok {
		native = rawjson.Apply(native, rawjson.Insert(1, []byte(`"role":"model",`)))
	}
	return [][]byte{native}, usage
}

// googleUsage reads a usage object, nil when it says nothing.
func googleUsage(at rawjson.Value, model string) *Usage {
	if !at.IsObject() {
		return nil
	}
	u := Usage{Model: model}
	prompt := 0
	for key, f := range at.Fields() {
		switch rawjson.Camel(key) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			prompt += f.Value.Count()
		case "cachedContentTokenCount":
			u.CacheRead = f.Value.Count()
		case "candidatesTokenCount", "thoughtsTokenCount":
			u.Output += f.Value.Count()
		case "totalTokenCount":
			u.Used = f.Value.Count()
		}
	}
	u.Input = max(prompt-u.CacheRead, 0)
	if u.Used == 0 {
		u.Used = prompt + u.Output
	}
	if u.Used == 0 {
		return nil
	}
	return &u
}

// ---- requests

// modelName is a model's name as JSON, as a request of the format has it.
func modelName(f Format, model string) []byte {
	if f == Google && !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return rawjson.Quote(model)
}

func (r Request) googleEnvelope(w *envelopeWriter) {
	if s := plainText(r.System); strings.TrimSpace(s) != "" {
		key := w.spelled("systemInstruction")
		if plainText(w.value(key)) != s {
			b := fmt.Appendf(nil, `{"parts":[%s`, googleText(rawjson.Quote(s)))
			w.set(key, append(b, "]}"...))
		}
	}
	if r.MaxTokens <= 0 {
		return
	}
	limit := rawjson.Decimal(r.MaxTokens)
	key := w.spelled("generationConfig")
	at, ok := w.have[key]
	switch {
	case !ok || !at.IsObject():
		w.set(key, fmt.Appendf(nil, `{"maxOutputTokens":%s}`, limit))
	case at.GetCamel("maxOutputTokens").IsMissing():
		pair := fmt.Appendf(nil, `"maxOutputTokens":%s`, limit)
		if !at.IsEmpty() {
			pair = append(pair, ","...)
		}
		w.all = append(w.all, rawjson.Insert(at.Start()+1, pair))
	}
}

// spelled gives the key as the envelope writes it.
func (w *envelopeWriter) spelled(key string) string {
	for have := range w.have {
		if have != key && rawjson.Camel([]byte(have)) == key {
			return have
		}
	}
	return key
}

// unforceGoogle takes back a forced call and a forced schema.
func unforceGoogle(w *envelopeWriter) {
	calling, _ := w.have[w.spelled("toolConfig")].LookupCamel("functionCallingConfig")
	if mode, ok := calling.Lookup("mode"); ok && strings.EqualFold(mode.Text(), "any") {
		w.all = append(w.all, mode.Replace([]byte(`"AUTO"`)))
		if names, ok := calling.LookupCamel("allowedFunctionNames"); ok && names.IsArray() {
			w.all = append(w.all, names.Replace([]byte("[]")))
		}
	}
	at := w.have[w.spelled("generationConfig")]
	if !at.IsObject() {
		return
	}
	for key, f := range at.Fields() {
		switch rawjson.Camel(key) {
		case "responseMimeType":
			w.all = append(w.all, f.Value.Replace([]byte(`"text/plain"`)))
		case "responseSchema", "responseJsonSchema":
			w.all = append(w.all, f.Value.Replace([]byte("null")))
		}
	}
}

// joinContents puts contents together where the API wants one: the results of a step stand in one content, as many
// as there are calls, and a content that calls follows one of the user's. Results that were made stand behind those
// that are stored. Everything else stays as it is, bytes and all.
func joinContents(messages [][]byte) ([][]byte, error) {
	out := make([][]byte, 0, len(messages))
	var last shape
	for _, native := range messages {
		s, err := shapeOf(native)
		if err != nil {
			return nil, err
		}
		n := len(out)
		join := n > 0 && (last.model && s.model && (s.calls || last.calls) || !last.model && !s.model && last.results &&
			s.results)
		switch {
		case !join:
			out = append(out, native)
			last = s
			continue
		case !s.model && last.made && !s.made:
			out[n-1] = joinParts(native, out[n-1])
		default:
			out[n-1] = joinParts(out[n-1], native)
		}
		last.calls, last.results, last.made = last.calls || s.calls, last.results || s.results, last.made && s.made
	}
	return out, nil
}

// shape is what matters of a content for its place among others.
type shape struct{ model, calls, results, made bool }

func shapeOf(native []byte) (shape, error) {
	m, err := googleCodec{}.Decode(native)
	if err != nil {
		return shape{}, err
	}
	s := shape{
		model: m.Role == pipeline.RoleAssistant, calls: len(m.Calls()) > 0,
		results: m.Role != pipeline.RoleAssistant && len(m.Results()) > 0,
	}
	// A result of ours for a call without an id has none either; what a program gives mostly has.
	s.made = s.results && len(m.Parts) == 1 && m.Parts[0].IsError &&
		bytes.HasPrefix(native, []byte(`{"role":"user","parts":[{"functionResponse":{"name":`))
	return s, nil
}

// joinParts appends the parts of b to those of a.
func joinParts(a, b []byte) []byte {
	to, ok := rawjson.Root(a).Lookup("parts")
	from, found := rawjson.Root(b).Lookup("parts")
	if !ok || !found || !to.IsArray() || !from.IsArray() || from.IsEmpty() {
		return a
	}
	more := b[from.Start()+1 : from.End()-1]
	if !to.IsEmpty() {
		more = fmt.Appendf(nil, ",%s", more)
	}
	at := to.End() - 1
	return rawjson.Apply(a, rawjson.Insert(at, more))
}
