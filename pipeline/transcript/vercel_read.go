package transcript

import (
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

func (vercel) detect(s rawjson.Outline) bool {
	if s.Has("steps[].run_id") && s.Has("steps[].input") {
		return true
	}
	for _, at := range []string{"[]", "messages[]", "prompt[]"} {
		if s.Has(at+".role") && !s.Has(at+".ts") &&
			s.Has(at+".content[].type=tool-call", at+".content[].type=tool-result",
				at+".content[].type=reasoning", at+".providerOptions", at+".content[].providerOptions",
				at+".content[].toolCallId") {
			return true
		}
	}
	return s.Has("prompt[].role", "model_id") && s.Has("messages[].role", "prompt[].role") &&
		s.Has("providerOptions", "toolChoice", "tools[].inputSchema")
}

// vercelPaths are the paths of the messages in a file.
var vercelPaths = []string{"messages", "prompt", ""}

func (vercel) open(s *jsonstream.Reader, o Options) source {
	if sk := rawjson.OutlineOf(s.Window()); sk.Has("steps[].run_id", "runs[].started_at") {
		return openArrays(s, o, Meta{Format: Vercel, Source: sourceDevtools}, &devtools{hold: holdBytes}, "steps")
	}
	return openArrays(s, o, Meta{Format: Vercel}, vercelMessages{}, vercelPaths...)
}

type vercelMessages struct{}

func (vercelMessages) record(out *emitter, b []byte, line int) error {
	m, err := decode(vercel{}, b)
	if err == nil {
		out.message(line, m)
	}
	return err
}

func (vercelMessages) end(out *emitter, around []byte) error {
	if around != nil {
		vercel{}.meta(&out.meta, around)
	}
	return nil
}

// meta reads the arguments of the SDK's call beside the messages.
func (vercel) meta(m *Meta, around []byte) {
	m.Envelope = around
	for key, field := range rawjson.Root(around).Fields() {
		switch string(key) {
		case "model", "model_id":
			m.Model = field.Value.Text()
		case "provider":
			m.Vendor = protocolOf(field.Value.Text())
		case "system":
			m.System = field.Value.Present()
		case "tools":
			if field.Value.IsArray() {
				m.Tools = field.Value.Raw()
			}
		case "maxOutputTokens", "maxTokens":
			m.MaxTokens = field.Value.Count()
		}
	}
}

func (vercel) write(out Output) ([]byte, error) {
	all, err := out.entries(vercel{})
	if err != nil {
		return nil, err
	}
	list := rawjson.ArrayOf(nativesOf(all))
	if out.Meta.Envelope == nil {
		return list, nil
	}
	return rawjson.PutArray(out.Meta.Envelope, list, vercelPaths[:2]...), nil
}
