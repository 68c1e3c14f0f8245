package transcript

import (
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/anthropic"
)

// The Messages API of Anthropic: https://docs.claude.com/en/api/messages. Its files are request objects, and
// arrays of recorded requests with their responses.

const sourceHTTP = "recorded-http"

type anthropicAPI struct{}

func (anthropicAPI) name() Format { return Anthropic }

// read reads {"role":…,"content":…}, valid JSON.
func (anthropicAPI) read(l *layout.Layout) error {
	return anthropic.Read(l, rawjson.Root(l.Native), -1, 0)
}

func (anthropicAPI) message(l *layout.Layout) pipeline.Message { return l.Message() }

func (anthropicAPI) Make(m pipeline.Made) ([]byte, error) {
	role, blocks, err := anthropic.Made(m)
	if err != nil {
		return nil, err
	}
	return anthropic.Wrap(role, [][]byte{blocks}), nil
}

func (f anthropicAPI) detect(s rawjson.Outline) bool {
	if s.HasPrefix("[].uri", "https://api.anthropic.com/") || s.HasPrefix("uri", "https://api.anthropic.com/") ||
		s.Has("[].request.anthropic_version") {
		return true
	}
	for _, at := range []string{"", "[].request.", "request."} {
		messages := at + "messages"
		switch {
		case !s.Has(messages):
			// The tools and the system prompt before the messages may be longer than the outline.
			if s.Has(at+"tools[].input_schema") || s.Has(at+"system") && s.Has(at+"max_tokens") {
				return true
			}
		case s.Has(messages+"[].role") && !hasMessages(s, messages):
		case apiOf(s, at, messages) == Anthropic:
			return true
		}
	}
	return hasMessages(s, "") && apiOf(s, "", "") == Anthropic
}

func (f anthropicAPI) open(s *jsonstream.Reader, o Options) source {
	return openDocuments(s, o, dialect{
		format:   f,
		wrapper:  httpWrapper,
		clean:    untouched,
		envelope: recorded(f.request),
		request:  f.request,
		answer:   f.answer,
		summary:  f.compaction,
	})
}

// compaction returns the summary at the beginning of an assistant message after a compaction by the vendor, which
// ignores everything before that block from then on. The block itself stays in its message, unchanged.
func (anthropicAPI) compaction(m pipeline.Message, _ bool) (pipeline.Message, bool) {
	if m.Role != pipeline.RoleAssistant || len(m.Parts) == 0 || m.Parts[0].Type != "compaction" {
		return m, false
	}
	raw := m.Parts[0].Raw
	content, ok := rawjson.Root(raw).Lookup("content")
	if said := content.Text(); !ok || strings.TrimSpace(said) == "" {
		m.Kind = pipeline.KindSummary
		return m, true // encrypted
	}
	block := fmt.Appendf(nil, `{"type":"text","text":%s}`, content.Raw())
	summary, err := decode(anthropicAPI{}, anthropic.Wrap("user", [][]byte{block}))
	if err != nil {
		return m, false
	}
	summary.Kind = pipeline.KindSummary
	return summary, true
}

// request reads model, system prompt, tools and limits of a request object.
func (anthropicAPI) request(b []byte, v rawjson.Value, m *Meta) {
	m.Vendor = "anthropic"
	for key, field := range v.Fields() {
		switch string(key) {
		case "model":
			m.Model = field.Value.Text()
		case "system":
			m.System = field.Value.Present()
		case "tools":
			m.Tools = field.Value.Present()
		case "max_tokens":
			m.MaxTokens = field.Value.Count()
		}
	}
}

// answer makes a response object into the message that the next request would contain: only its role and its content.
func (f anthropicAPI) answer(response []byte) ([][]byte, *Usage) {
	v := rawjson.Root(response)
	if role := v.Get("role"); role.Text() != "assistant" {
		return nil, nil
	}
	if content := v.Get("content"); !content.IsArray() ||
		content.IsEmpty() {
		return nil, nil
	}
	usage := f.usage(v.Get("usage"),
		v.Get("model").Text())
	native, _ := v.KeepKeys("role", "content")
	return [][]byte{native}, usage
}

// usage reads a usage object. It returns nil if there is none or it is empty. The four figures sum up to the context:
// input_tokens does not include tokens from the cache.
func (anthropicAPI) usage(at rawjson.Value, model string) *Usage {
	if !at.IsObject() {
		return nil
	}
	u := Usage{Model: model}
	for key, field := range at.Fields() {
		switch string(key) {
		case "input_tokens":
			u.Input = field.Value.Count()
		case "cache_read_input_tokens":
			u.CacheRead = field.Value.Count()
		case "cache_creation_input_tokens":
			u.CacheCreation = field.Value.Count()
		case "output_tokens":
			u.Output = field.Value.Count()
		}
	}
	if u.Used = u.Input + u.CacheRead + u.CacheCreation + u.Output; u.Used == 0 {
		return nil
	}
	return &u
}
