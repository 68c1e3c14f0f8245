package transcript

import (
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

// The generateContent API of Gemini: https://ai.google.dev/api/generate-content. A message is a Content. Files are
// request objects, arrays of Contents, and recorded requests with their responses. Keys may be written as the API
// does (functionCall) or as its protocol buffers do (function_call): the vendor takes both.
//
// Most calls have no id. pipeline.Pair then matches them by the tool's name, in order.

type googleAPI struct{}

func (googleAPI) name() Format { return Google }

// read reads {"role":…,"parts":[…]}, valid JSON.
func (googleAPI) read(l *layout.Layout) error { return google.Read(l) }

func (googleAPI) message(l *layout.Layout) pipeline.Message { return google.Message(l) }

func (googleAPI) Make(m pipeline.Made) ([]byte, error) {
	role, part, err := google.Made(m)
	if err != nil {
		return nil, err
	}
	return google.Wrap(role, [][]byte{part}), nil
}

func (googleAPI) address(p pipeline.Part) string { return google.Address(p) }

func (googleAPI) detect(s rawjson.Outline) bool {
	if s.HasPrefix("[].uri", google.Files) || s.HasPrefix("uri", google.Files) {
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

func (f googleAPI) open(s *jsonstream.Reader, o Options) source {
	return openDocuments(s, o, dialect{
		format:   f,
		arrays:   []string{"contents"},
		outer:    []string{"history"},
		bare:     func(s rawjson.Outline) bool { return s.Has("[].parts") },
		wrapper:  f.wrapper,
		clean:    untouched,
		envelope: f.envelope,
		request:  f.request,
		answer:   f.answer,
		text:     f.plainText,
	})
}

// sourceChat is the form in which Gemini CLI saves a chat, also in its tests of compression: an object with the
// contents under "history".
const sourceChat = "gemini-chat"

func (googleAPI) wrapper(b []byte, outer rawjson.Value, arrayKey string) string {
	if arrayKey == "history" {
		return sourceChat
	}
	return httpWrapper(b, outer, arrayKey)
}

func (f googleAPI) envelope(b []byte, outer rawjson.Value, m *Meta) {
	m.Vendor = "google"
	if m.Source == sourceChat {
		m.ID = outer.Get("scenarioId").Text()
		m.Envelope = m.NewEnvelope()
		return
	}
	recorded(f.request)(b, outer, m)
	// The model is part of the address: …/models/NAME:generateContent.
	if _, rest, ok := strings.Cut(outer.Get("uri").Text(), "/models/"); ok && m.Model == "" {
		m.Model, _, _ = strings.Cut(rest, ":")
	}
}

// request reads model, system instruction, tools and limits of a request object.
func (f googleAPI) request(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "google"
	library := false
	for key, field := range v.Fields() {
		switch rawjson.Camel(key) {
		case "model":
			m.Model = strings.TrimPrefix(field.Value.Text(), "models/")
		case "systemInstruction":
			m.System = field.Value.Present()
		case "tools":
			m.Tools = field.Value.Present()
		case "generationConfig":
			m.MaxTokens = field.Value.GetCamel("maxOutputTokens").Count()
		case "cachedContent":
			m.Continued = field.Value.IsString()
		case "maxOutputTokens":
			m.MaxTokens = field.Value.Count()
		case "config": // the client library takes the same keys, in an object beside the contents
			if library = field.Value.IsObject(); library {
				f.request(b, field.Value, m)
			}
		}
	}
	if library {
		m.Envelope = m.NewEnvelope()
	}
}

// plainText finds contents that are a plain string, as the client library takes them.
func (googleAPI) plainText(b []byte, v rawjson.Value) (at rawjson.Value, message []byte) {
	at, ok := v.Lookup("contents")
	if !ok || !at.IsString() {
		return rawjson.Value{}, nil
	}
	return at, google.Wrap("user", [][]byte{google.Text(at.Raw())})
}

// answer returns the content of a response's first candidate as the next request would contain it.
func (f googleAPI) answer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	usage := f.usage(v.GetCamel("usageMetadata"),
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
	if m, err := decode(f, native); err != nil || len(m.Parts) == 0 {
		return nil, nil
	}
	if _, ok := rawjson.Root(native).Lookup("role"); !ok {
		native = rawjson.Apply(native, rawjson.Insert(1, []byte(`"role":"model",`)))
	}
	return [][]byte{native}, usage
}

// usage reads a usage object. It returns nil if the object is empty.
func (googleAPI) usage(at rawjson.Value, model string) *Usage {
	if !at.IsObject() {
		return nil
	}
	u := Usage{Model: model}
	prompt := 0
	for key, field := range at.Fields() {
		switch rawjson.Camel(key) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			prompt += field.Value.Count()
		case "cachedContentTokenCount":
			u.CacheRead = field.Value.Count()
		case "candidatesTokenCount", "thoughtsTokenCount":
			u.Output += field.Value.Count()
		case "totalTokenCount":
			u.Used = field.Value.Count()
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
