package request

import (
	"fmt"
	"strings"

	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

func (r Input) googleEnvelope(w *envelopeWriter) {
	if s := PlainText(r.System); strings.TrimSpace(s) != "" {
		key := w.spelled("systemInstruction")
		if PlainText(w.value(key)) != s {
			b := fmt.Appendf(nil, `{"parts":[%s`, google.Text(rawjson.Quote(s)))
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

// spelled returns the key as the envelope writes it.
func (w *envelopeWriter) spelled(key string) string {
	for have := range w.have {
		if have != key && rawjson.Camel([]byte(have)) == key {
			return have
		}
	}
	return key
}

// unforceGoogle removes a forced call and a forced schema.
func unforceGoogle(w *envelopeWriter) {
	calling := w.have[w.spelled("toolConfig")].GetCamel("functionCallingConfig")
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
	for key, field := range at.Fields() {
		switch rawjson.Camel(key) {
		case "responseMimeType":
			w.all = append(w.all, field.Value.Replace([]byte(`"text/plain"`)))
		case "responseSchema", "responseJsonSchema":
			w.all = append(w.all, field.Value.Replace([]byte("null")))
		}
	}
}
