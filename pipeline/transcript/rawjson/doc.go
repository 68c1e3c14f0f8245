// Package rawjson reads values out of JSON text and edits the text without touching a byte beside the edit.
//
// A Value is a place in a document. It is found by key or path, read as a Go value, and replaced by splicing other text
// into a copy of the document:
//
//	doc := []byte(`{"role": "user",  "content": "hello"}`)
//	if err := rawjson.Check(doc); err != nil { … }
//	content := rawjson.Root(doc).Get("content")
//	edited := content.With(rawjson.Quote("goodbye")) // {"role": "user",  "content": "goodbye"}
//
// Everything but Check, Prefix, Scanner and OutlineOf expects text that Check accepts and may panic on other text.
// A key that an object has twice counts with its last value, as for encoding/json.
package rawjson
