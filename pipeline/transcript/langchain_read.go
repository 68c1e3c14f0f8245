package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

var langChainPaths = []string{"messages", "values.messages", ""}

func (langChain) detect(s rawjson.Outline) bool {
	for _, at := range []string{"[]", "messages[]", "values.messages[]"} {
		if s.Has(at+".lc") && s.Has(at+".kwargs") {
			return true
		}
		if s.Has(at+".role") || s.Has(at+".ts") {
			continue
		}
		if s.Has(at+".type=human", at+".type=ai") && s.Has(at+".content", at+".data.content") {
			return true
		}
	}
	return false
}

func (langChain) open(s *jsonstream.Reader, o Options) source {
	return openArrays(s, o, Meta{Format: LangChain}, langChainMessages{}, langChainPaths...)
}

type langChainMessages struct{}

func (langChainMessages) record(out *emitter, b []byte, line int) error {
	v := rawjson.Root(b)
	body := langChain{}.body(v)
	if typ := v.Get("type").Text(); typ == "remove" || typ == "RemoveMessage" {
		out.note(line, NoteRecord, typ, "it removes a message from a state and has no content")
		return nil
	}
	m, err := decode(langChain{}, b)
	if err != nil {
		return err
	}
	if m.Kind == pipeline.KindSummary && out.count == 0 {
		out.compaction(line, Compaction{Summary: m})
		return nil
	}
	model := ""
	if data, ok := body.Lookup("response_metadata"); ok {
		for _, key := range []string{"model", "model_name"} {
			if s := data.Get(key).Text(); s != "" {
				model = s
			}
		}
		if vendor := protocolOf(data.Get("model_provider").Text()); vendor != "" {
			out.meta.Vendor = vendor
		}
	}
	if model != "" {
		out.meta.Model = model
	}
	out.message(line, m)
	if at, ok := body.Lookup("usage_metadata"); ok && at.IsObject() {
		out.usage(line, langChain{}.usage(at, model))
	}
	return nil
}

// usage reads usage_metadata, whose input_tokens include tokens from the cache.
func (langChain) usage(at rawjson.Value, model string) *Usage {
	u := &Usage{Model: model, Output: at.Get("output_tokens").Count()}
	all := at.Get("input_tokens").Count()
	if d, ok := at.Lookup("input_token_details"); ok {
		u.CacheRead, u.CacheCreation = d.Get("cache_read").Count(),
			d.Get("cache_creation").Count()
	}
	u.Input = max(all-u.CacheRead-u.CacheCreation, 0)
	if u.Used = at.Get("total_tokens").Count(); u.Used == 0 {
		u.Used = all + u.Output
	}
	return u
}

func (langChainMessages) end(out *emitter, around []byte) error {
	if around == nil {
		return nil
	}
	out.meta.Envelope = around
	// Deep Agents leave the messages of a state unchanged and record how many of them the summary covers.
	for _, path := range [][]string{{"_summarization_event"}, {"values", "_summarization_event"}} {
		event, ok := rawjson.Root(around).Lookup(path...)
		if !ok || !event.IsObject() {
			continue
		}
		cut := event.Get("cutoff_index").Count()
		summary := event.Get("summary_message")
		if !summary.IsObject() || cut < 1 || cut > out.count {
			continue
		}
		m, err := decode(langChain{}, summary.Raw())
		if err != nil {
			return out.fault(1, err)
		}
		out.compaction(1, Compaction{Summary: m, Kept: out.count - cut})
	}
	return nil
}

func (f langChain) write(out Output) ([]byte, error) {
	all, err := out.entries(f)
	if err != nil {
		return nil, err
	}
	form := f.form(all)
	for i, e := range all {
		if e.made != nil {
			all[i].native = form(e.native)
		}
	}
	list := rawjson.ArrayOf(nativesOf(all))
	if out.Meta.Envelope == nil {
		return list, nil
	}
	// The new summary is one of the messages, so the record of the old one no longer applies.
	around, _ := rawjson.Root(out.Meta.Envelope).DropKeys(func(key string,
		_ rawjson.Value,
	) bool {
		return key == "_summarization_event"
	})
	return rawjson.PutArray(around, list, langChainPaths[:2]...), nil
}

// form returns a function that puts a flat message into the form of the stored messages.
func (f langChain) form(all []entry) func([]byte) []byte {
	for _, e := range all {
		v := rawjson.Root(e.native)
		switch {
		case e.made != nil:
			continue
		case v.Get("type").Text() == "constructor":
			return f.constructor
		case f.body(v).Start() != v.Start():
			return f.dict
		}
		break
	}
	return func(flat []byte) []byte { return flat }
}

// dict puts a flat message into {"type":…,"data":…}.
func (langChain) dict(flat []byte) []byte {
	typ := rawjson.Root(flat).Get("type")
	return fmt.Appendf(nil, `{"type":%s,"data":%s}`, typ.Raw(), flat)
}

// constructor puts a flat message into a constructor.
func (langChain) constructor(flat []byte) []byte {
	v := rawjson.Root(flat)
	class := map[string]string{
		"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage",
		"tool": "ToolMessage",
	}[v.Get("type").Text()]
	return fmt.Appendf(nil, `{"lc":1,"type":"constructor","id":["langchain","schema","messages",%s],"kwargs":%s}`,
		rawjson.Quote(class), flat)
}
