package transcript

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"precis/pipeline"
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
		return "user", functionResponse(m.CallID, m.Name, quote(m.Text), m.IsError), nil
	case pipeline.RoleUser, pipeline.RoleAssistant:
		if strings.TrimSpace(m.Text) == "" {
			return "", nil, pipeline.Errorf(pipeline.Internal, "a made %s message has no text, which no vendor takes",
				m.Role)
		}
		if m.Role == pipeline.RoleAssistant {
			return "model", googleText(quote(m.Text)), nil
		}
		return "user", googleText(quote(m.Text)), nil
	}
	return "", nil, pipeline.Errorf(pipeline.Internal,
		"a message of role %s has no place among the contents of a request: the system instruction stands beside them",
		m.Role)
}

// googleText writes a text part; lit is its text as JSON.
func googleText(lit []byte) []byte {
	return append(append([]byte(`{"text":`), lit...), '}')
}

// functionResponse writes the result of a call; output is what it gave, as JSON.
func functionResponse(id, name string, output []byte, isError bool) []byte {
	b := []byte(`{"functionResponse":{`)
	if id != "" {
		b = append(append(append(b, `"id":`...), quote(id)...), ',')
	}
	b = append(append(b, `"name":`...), quote(name)...)
	b = append(append(b, `,"response":`...), googleOutput(output, isError)...)
	return append(b, "}}"...)
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
	b := append([]byte(`{"role":`), quote(role)...)
	b = append(append(b, `,"parts":[`...), bytes.Join(parts, []byte{','})...)
	return append(b, "]}"...)
}

// camel gives a key as the API writes it.
func camel(key []byte) string {
	if bytes.IndexByte(key, '_') < 0 {
		return string(key)
	}
	words := strings.Split(string(key), "_")
	for i, w := range words {
		if i > 0 && w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// getCamel is get for a key that may be written in either way.
func getCamel(b []byte, v span, key string) (span, bool) {
	var found span
	ok := false
	if kind(b, v) != '{' {
		return found, false
	}
	for k, f := range fields(b, v) {
		if camel(k) == key {
			found, ok = f.value, true
		}
	}
	return found, ok
}

// googleLayout reads {"role":…,"parts":[…]}, sound JSON.
func googleLayout(native []byte) (*layout, error) {
	l := &layout{native: native}
	b, v := native, root(native)
	if kind(b, v) != '{' {
		return nil, parseError(Google, "it is no object")
	}
	var role, parts span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "role":
			role = f.value
		case "parts":
			parts = f.value
		}
	}
	l.role = text(b, role)
	switch l.role {
	case "", "user", "model", "function", "tool", "system":
	default:
		return nil, parseError(Google, "its role is not user or model")
	}
	switch kind(b, parts) {
	case '[':
	case 0, 'n':
		if role.empty() {
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
func (l *layout) googleParts(v span) ([]node, error) {
	l.entry = func(s string) []byte { return googleText(quote(s)) }
	els := elements(l.native, v)
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
func (l *layout) googlePart(v span) (node, error) {
	b := l.native
	if kind(b, v) == '"' { // the client library takes a bare string
		return node{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(v.of(b)), Raw: v.of(b)}, value: v,
			block: true,
		}, nil
	}
	if kind(b, v) != '{' {
		return node{}, parseError(Google, "a part is no object")
	}
	n := node{block: true, part: pipeline.Part{Kind: pipeline.PartOpaque, Raw: v.of(b)}}
	p := &n.part
	thought := false
	var txt span
	for key, f := range fields(b, v) {
		switch camel(key) {
		case "text":
			txt = f.value
		case "thought":
			thought = kind(b, f.value) == 't'
		case "functionCall":
			return l.functionCall(v, f.value), nil
		case "functionResponse":
			return l.functionResponse(v, f.value)
		case "inlineData", "fileData":
			googleMedia(p, b, f.value)
			return n, nil
		case "executableCode", "toolCall":
			return l.googleVendorCall(v, camel(key), f.value), nil
		case "codeExecutionResult", "toolResponse":
			return l.googleVendorResult(v, camel(key), f.value), nil
		}
	}
	if s, ok := str(b, txt); ok {
		p.Kind, p.Text, n.value = pipeline.PartText, s, txt
		if thought {
			p.Kind, n.value = pipeline.PartReasoning, span{}
		}
	} else if thought {
		p.Kind = pipeline.PartReasoning
	}
	return n, nil
}

func (l *layout) functionCall(part, v span) node {
	b := l.native
	n := node{part: pipeline.Part{Kind: pipeline.PartToolCall, Type: "functionCall", Raw: part.of(b)}}
	if kind(b, v) != '{' {
		return n
	}
	n.insert, n.key = v.end-1, "args"
	for key, f := range fields(b, v) {
		switch string(key) {
		case "id":
			n.part.CallID = text(b, f.value)
		case "name":
			n.part.Name = text(b, f.value)
		case "args":
			n.value = f.value
			if kind(b, f.value) != 'n' {
				n.part.Input = string(f.value.of(b))
			}
		}
	}
	if skipSpace(b, v.start+1) == v.end-1 {
		n.insert = 0 // {} has nothing that a comma could follow
	}
	return n
}

func (l *layout) functionResponse(part, v span) (node, error) {
	b := l.native
	n := node{part: pipeline.Part{Kind: pipeline.PartToolResult, Type: "functionResponse", Raw: part.of(b)}}
	if kind(b, v) != '{' {
		return n, nil
	}
	var media span
	for key, f := range fields(b, v) {
		switch string(key) {
		case "id":
			n.part.CallID = text(b, f.value)
		case "name":
			n.part.Name = text(b, f.value)
		case "response":
			n.value = f.value
		case "parts":
			media = f.value
		}
	}
	if skipSpace(b, v.start+1) != v.end-1 {
		n.insert, n.key = v.end-1, "response"
	}
	n.content, n.part.IsError = l.googleResponse(n.value)
	isError := n.part.IsError
	n.as = func(s string) ([]byte, error) { return googleOutput(quote(s), isError), nil }
	if kind(b, media) != '[' {
		return n, nil
	}
	els := elements(b, media)
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
func (l *layout) googleResponse(v span) (content []node, isError bool) {
	b := l.native
	if kind(b, v) != '{' {
		if s, ok := str(b, v); ok && s != "" {
			return []node{{
				part: pipeline.Part{Kind: pipeline.PartText, Text: s, Raw: v.of(b)}, list: -1, value: v,
				vacant: `""`, block: true,
			}}, false
		}
		return nil, false
	}
	keys, only := 0, span{}
	for key, f := range fields(b, v) {
		keys++
		switch string(key) {
		case "error":
			isError, only = true, f.value
		case "output", "result":
			only = f.value
		}
	}
	switch {
	case keys == 0:
		return nil, false
	case keys == 1 && kind(b, only) == '"':
		if only.end-only.start == 2 {
			return nil, isError
		}
		return []node{{
			part: pipeline.Part{Kind: pipeline.PartText, Text: unquote(only.of(b)), Raw: only.of(b)},
			list: -1, value: only, vacant: `""`, block: true,
		}}, isError
	}
	return []node{{
		part: pipeline.Part{Kind: pipeline.PartText, Text: string(v.of(b)), Raw: v.of(b)},
		list: -1, value: v, vacant: `{}`, block: true,
		as: func(s string) ([]byte, error) { return googleOutput(quote(s), isError), nil },
	}}, isError
}

// googleMedia reads inlineData or fileData.
func googleMedia(p *pipeline.Part, b []byte, v span) {
	p.Kind = pipeline.PartFile
	if kind(b, v) != '{' {
		return
	}
	var data span
	for key, f := range fields(b, v) {
		switch camel(key) {
		case "mimeType":
			p.MediaType = text(b, f.value)
		case "displayName":
			p.Name = text(b, f.value)
		case "data":
			data = f.value
		}
	}
	if strings.HasPrefix(p.MediaType, "image/") {
		p.Kind = pipeline.PartImage
	}
	if !data.empty() {
		binaryPart(p, text(b, data))
	}
}

// googleAddress is where an image or a file is.
func googleAddress(p pipeline.Part) string {
	if len(p.Raw) == 0 {
		return ""
	}
	b, v := []byte(p.Raw), root(p.Raw)
	if at, ok := getCamel(b, v, "inlineData"); ok {
		return base64URL(p.MediaType, text(b, first(getCamel(b, at, "data"))))
	}
	at, _ := getCamel(b, v, "fileData")
	uri := text(b, first(getCamel(b, at, "fileUri")))
	if strings.HasPrefix(uri, googleFiles) {
		return "" // what was uploaded there can be read there alone
	}
	return uri
}

// googleFiles is where files stand that were uploaded to the vendor.
const googleFiles = "https://generativelanguage.googleapis.com/"

// What the vendor runs itself comes as a call and a result in the model's own content.
func (l *layout) googleVendorCall(part span, typ string, v span) node {
	b := l.native
	p := pipeline.Part{
		Kind: pipeline.PartToolCall, Type: typ, Name: "code_execution", Input: string(v.of(b)),
		Raw: part.of(b),
	}
	if typ == "toolCall" {
		p.Name, p.CallID = text(b, first(getCamel(b, v, "toolType"))), text(b, first(get(b, v, "id")))
		if args, ok := get(b, v, "args"); ok {
			p.Input = string(args.of(b))
		}
	}
	return node{part: p, fixed: true}
}

func (l *layout) googleVendorResult(part span, typ string, v span) node {
	b := l.native
	p := pipeline.Part{Kind: pipeline.PartToolResult, Type: typ, Name: "code_execution", Raw: part.of(b)}
	said, _ := get(b, v, "output")
	if typ == "toolResponse" {
		p.Name, p.CallID = text(b, first(getCamel(b, v, "toolType"))), text(b, first(get(b, v, "id")))
		said, _ = get(b, v, "response")
	} else {
		outcome := text(b, first(get(b, v, "outcome")))
		p.IsError = outcome != "" && outcome != "OUTCOME_OK"
	}
	n := node{part: p, fixed: true}
	if s := cmp.Or(text(b, said), string(said.of(b))); s != "" {
		n.content = []node{{
			fixed: true, list: -1,
			part: pipeline.Part{Kind: pipeline.PartText, Text: s, Raw: said.of(b)},
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

func detectGoogle(s sketched) bool {
	if s.hasPrefix("[].uri", googleFiles) || s.hasPrefix("uri", googleFiles) {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		if s.has(at+"contents[].parts", at+"contents[].role") ||
			s.has(at+"contents") && s.has(at+"systemInstruction", at+"system_instruction", at+"generationConfig",
				at+"config", at+"model") {
			return true
		}
	}
	return s.has("[].parts") && (s.has("[].role=model") || s.has("[].role=user", "[].parts[].text") &&
		!s.has("[].info", "[].id"))
}

func openGoogle(s *stream, o Options) source {
	return openDocuments(s, o, dialect{
		format:   Google,
		arrays:   []string{"contents"},
		outer:    []string{"history"},
		bare:     func(s sketched) bool { return s.has("[].parts") },
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

func googleWrapper(b []byte, outer span, arrayKey string) string {
	if arrayKey == "history" {
		return sourceChat
	}
	return httpWrapper(b, outer, arrayKey)
}

func googleEnvelopeOf(b []byte, outer span, m *Meta) {
	m.Vendor = "google"
	if m.Source == sourceChat {
		m.ID = text(b, first(get(b, outer, "scenarioId")))
		m.Envelope = newEnvelope(*m)
		return
	}
	recorded(googleRequest)(b, outer, m)
	// The model stands in the address: …/models/NAME:generateContent.
	if _, rest, ok := strings.Cut(text(b, first(get(b, outer, "uri"))), "/models/"); ok && m.Model == "" {
		m.Model, _, _ = strings.Cut(rest, ":")
	}
}

// googleRequest reads the facts of a request object.
func googleRequest(b []byte, v span, m *Meta) {
	m.Vendor = "google"
	library := false
	for key, f := range fields(b, v) {
		switch camel(key) {
		case "model":
			m.Model = strings.TrimPrefix(text(b, f.value), "models/")
		case "systemInstruction":
			m.System = present(b, f.value)
		case "tools":
			m.Tools = present(b, f.value)
		case "generationConfig":
			m.MaxTokens = number(b, first(getCamel(b, f.value, "maxOutputTokens")))
		case "cachedContent":
			m.Continued = kind(b, f.value) == '"'
		case "maxOutputTokens":
			m.MaxTokens = number(b, f.value)
		case "config": // the client library is given the same, in an object beside the contents
			if library = kind(b, f.value) == '{'; library {
				googleRequest(b, f.value, m)
			}
		}
	}
	if library {
		m.Envelope = newEnvelope(*m)
	}
}

// googlePlainText finds contents that are a plain string, as the client library takes them.
func googlePlainText(b []byte, v span) (at span, message []byte) {
	at, ok := get(b, v, "contents")
	if !ok || kind(b, at) != '"' {
		return span{}, nil
	}
	return at, wrapParts("user", [][]byte{googleText(at.of(b))})
}

// googleAnswer gives the content of a response's first candidate as the next request would hold it.
func googleAnswer(response []byte) ([][]byte, *Usage) {
	v := root(response)
	usage := googleUsage(response, first(getCamel(response, v, "usageMetadata")),
		text(response, first(getCamel(response, v, "modelVersion"))))
	candidates, ok := get(response, v, "candidates")
	if !ok || kind(response, candidates) != '[' {
		return nil, nil
	}
	els := elements(response, candidates)
	if len(els) == 0 {
		return nil, nil
	}
	content, ok := get(response, els[0], "content")
	if !ok || kind(response, content) != '{' {
		return nil, nil
	}
	native := content.of(response)
	if m, err := decodeGoogle(native); err != nil || len(m.Parts) == 0 {
		return nil, nil
	}
	if _, ok := get(native, root(native), "role"); !ok {
		native = apply(native, []splice{{span{1, 1}, []byte(`"role":"model",`)}})
	}
	return [][]byte{native}, usage
}

// googleUsage reads a usage object, nil when it says nothing.
func googleUsage(b []byte, at span, model string) *Usage {
	if kind(b, at) != '{' {
		return nil
	}
	u := Usage{Model: model}
	prompt := 0
	for key, f := range fields(b, at) {
		switch camel(key) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			prompt += number(b, f.value)
		case "cachedContentTokenCount":
			u.CacheRead = number(b, f.value)
		case "candidatesTokenCount", "thoughtsTokenCount":
			u.Output += number(b, f.value)
		case "totalTokenCount":
			u.Used = number(b, f.value)
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
	return quote(model)
}

func (r Request) googleEnvelope(w *envelopeWriter) {
	if s := plainText(r.System); strings.TrimSpace(s) != "" {
		key := w.spelled("systemInstruction")
		if plainText(w.value(key)) != s {
			b := append([]byte(`{"parts":[`), googleText(quote(s))...)
			w.set(key, append(b, "]}"...))
		}
	}
	if r.MaxTokens <= 0 {
		return
	}
	limit := decimal(r.MaxTokens)
	key := w.spelled("generationConfig")
	at, ok := w.have[key]
	switch {
	case !ok || kind(w.e, at) != '{':
		w.set(key, append(append([]byte(`{"maxOutputTokens":`), limit...), '}'))
	case first(getCamel(w.e, at, "maxOutputTokens")).empty():
		pair := append([]byte(`"maxOutputTokens":`), limit...)
		if skipSpace(w.e, at.start+1) != at.end-1 {
			pair = append(pair, ',')
		}
		w.all = append(w.all, splice{span{at.start + 1, at.start + 1}, pair})
	}
}

// spelled gives the key as the envelope writes it.
func (w *envelopeWriter) spelled(key string) string {
	for have := range w.have {
		if have != key && camel([]byte(have)) == key {
			return have
		}
	}
	return key
}

// unforceGoogle takes back a forced call and a forced schema.
func unforceGoogle(w *envelopeWriter) {
	e := w.e
	calling, _ := getCamel(e, w.have[w.spelled("toolConfig")], "functionCallingConfig")
	if mode, ok := get(e, calling, "mode"); ok && strings.EqualFold(text(e, mode), "any") {
		w.all = append(w.all, splice{mode, []byte(`"AUTO"`)})
		if names, ok := getCamel(e, calling, "allowedFunctionNames"); ok && kind(e, names) == '[' {
			w.all = append(w.all, splice{names, []byte("[]")})
		}
	}
	at := w.have[w.spelled("generationConfig")]
	if kind(e, at) != '{' {
		return
	}
	for key, f := range fields(e, at) {
		switch camel(key) {
		case "responseMimeType":
			w.all = append(w.all, splice{f.value, []byte(`"text/plain"`)})
		case "responseSchema", "responseJsonSchema":
			w.all = append(w.all, splice{f.value, []byte("null")})
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
	to, ok := get(a, root(a), "parts")
	from, found := get(b, root(b), "parts")
	if !ok || !found || kind(a, to) != '[' || kind(b, from) != '[' || len(elements(b, from)) == 0 {
		return a
	}
	more := b[from.start+1 : from.end-1]
	if len(elements(a, to)) > 0 {
		more = append([]byte{','}, more...)
	}
	at := to.end - 1
	return apply(a, []splice{{span{at, at}, more}})
}
