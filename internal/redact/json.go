package redact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// kept are keys whose strings stay as they are in a request to a model: what identifies something in it, what its
// vendor signed or encrypted, and binary content. A vendor refuses a request in which one of them was changed.
var kept = map[string]bool{
	"signature": true, "encrypted_content": true, "thoughtSignature": true, "thought_signature": true, "data": true,
	"id": true, "call_id": true, "tool_use_id": true, "tool_call_id": true, "type": true, "role": true, "model": true,
	"media_type": true, "mime_type": true, "mimeType": true, "image_url": true, "file_id": true, "name": true,
	"file_data": true, "format": true, "detail": true,
}

// sealed are types of objects that stay as they are, whole: vendors check that they come back unchanged.
var sealed = map[string]bool{
	"thinking": true, "redacted_thinking": true, "reasoning": true, "compaction": true, "image": true,
	"input_image": true, "image_url": true,
}

// JSON redacts the strings of a request to a model, a JSON document, and changes no other byte of it. The name of a
// string says whether it is secret, as in a text. What a vendor would refuse or could not match if it was changed
// stays: ids, signatures, reasoning, images. The redactor also knows every secret in the document.
func (r Redactor) JSON(ctx context.Context, body []byte) ([]byte, error) {
	if !gjson.ValidBytes(body) {
		return nil, fmt.Errorf("redact: the request is not JSON")
	}
	w := walker{ctx: ctx}
	w.visit(gjson.ParseBytes(body), 0, "")
	if w.err != nil {
		return nil, w.err
	}
	texts := make([]string, 0, len(w.strings))
	for _, s := range w.strings {
		texts = append(texts, s.named())
	}
	own, err := New(ctx, texts)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	copied := 0
	for _, s := range w.strings {
		text, err := s.redact(ctx, r, own)
		if err != nil {
			return nil, err
		}
		if text == s.text {
			continue
		}
		encoded, err := encode(text)
		if err != nil {
			return nil, err
		}
		out.Write(body[copied:s.at])
		out.Write(encoded)
		copied = s.at + s.size
	}
	out.Write(body[copied:])
	return out.Bytes(), nil
}

// encode writes a string as it is written in requests: without escapes for HTML.
func encode(text string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return nil, fmt.Errorf("redact: encode a text: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// jsonString is a string of a document.
type jsonString struct {
	key, text string
	at, size  int // of its JSON
}

// named returns the string with its name in front of it, as it would be in a text.
func (s jsonString) named() string {
	if s.key == "" {
		return s.text
	}
	return s.key + ": " + s.text
}

// redact returns the string without secrets; it is one as a whole if its name says so.
func (s jsonString) redact(ctx context.Context, all ...Redactor) (string, error) {
	how := strength(s.key)
	whole := value{from: 0, to: len(s.text), quoted: true}
	if how != notSecret && !strings.Contains(s.text, Mark) && secretValue(how, s.key, s.text, whole, signPlain) {
		return Mark, nil
	}
	text := s.text
	for _, r := range all {
		var err error
		if text, err = r.Text(ctx, text); err != nil {
			return "", err
		}
	}
	return text, nil
}

// walker collects the strings of a document that may be changed, in order.
type walker struct {
	ctx     context.Context
	err     error
	strings []jsonString
}

// visit walks a value. at is the place of its JSON in the document, key its name; entries of a list have the list's.
func (w *walker) visit(v gjson.Result, at int, key string) {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return
	}
	switch {
	case v.Type == gjson.String:
		if !kept[key] {
			w.strings = append(w.strings, jsonString{key: key, text: v.Str, at: at, size: len(v.Raw)})
		}
	case v.IsObject() && sealed[typeOf(v)]:
	case v.IsObject() || v.IsArray():
		v.ForEach(func(k, item gjson.Result) bool {
			name := key
			if v.IsObject() {
				name = k.Str
			}
			w.visit(item, item.Index, name)
			return w.err == nil
		})
	}
}

// typeOf returns the type of an object, "" for none. It looks at its own keys alone.
func typeOf(v gjson.Result) (name string) {
	v.ForEach(func(k, item gjson.Result) bool {
		if k.Str == "type" {
			name = item.Str
		}
		return k.Str != "type"
	})
	return name
}
